/**
 * Runs a command against a proxy of BASE_URL that adds a field to every object in every answer, as a later version of
 * the contract may: `with-added-field.ts COMMAND [ARGUMENT…]`. The command gets the proxy's address as BASE_URL; its
 * exit status is the script's.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [command = '', ...args] = process.argv.slice(2);
const { BASE_URL: upstream = '' } = process.env;
/** Headers that belong to one connection, or that the proxy sets anew. */
const HOP_BY_HOP = [
  'host',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'upgrade',
  'http2-settings',
];

/** An answer with one field more in each of its objects, except in the probabilities, whose names are choices. */
function added(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => added(item));
  if (typeof value !== 'object' || value === null || name === 'probabilities') return value;
  return {
    ...Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, added(inner, key)])),
    added: { later: 1 },
  };
}

const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  const kept = Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.includes(name)) as [string, string][];
  const answer = await fetch(new URL(request.url ?? '/', upstream), {
    method: request.method ?? 'GET',
    headers: kept,
    ...(body.length === 0 ? {} : { body }),
  });
  const text = await answer.text();
  response.writeHead(
    answer.status,
    Object.fromEntries([...answer.headers].filter(([name]) => !HOP_BY_HOP.includes(name))),
  );
  response.end(text === '' ? text : JSON.stringify(added(JSON.parse(text))));
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
const child = spawn(command, args, {
  stdio: 'inherit',
  env: { ...process.env, BASE_URL: `http://127.0.0.1:${port}` },
});
const [status] = (await once(child, 'exit')) as [number | null];
server.close();
server.closeAllConnections();
process.exitCode = status ?? 1;
