/**
 * The smallest server that answers over HTTP and runs the graph in another process, as it must, since a run blocks its
 * thread: node:http, `fork` and two graph runs, without text, queue or a real answer. Beyond a bare run its caller
 * waits only for processes to wake each other, four times. Run as `node bench/latency/nearest-server.ts <model folder>
 * <tokens of each run>…`, it sends its parent its port.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadBareModel } from '../baseline/bare-model.ts';

const [role = '', ...rest] = process.argv.slice(2);

async function serveRuns([folder = '', ...runs]: readonly string[]): Promise<void> {
  const decide = await loadBareModel(folder, runs.map(Number));
  process.on('message', async (body) => {
    await decide();
    process.send?.(body);
  });
  process.send?.('ready');
}

async function serveHttp(args: readonly string[]): Promise<void> {
  const engine: ChildProcess = fork(import.meta.filename, ['run', ...args], { serialization: 'advanced' });
  await once(engine, 'message');
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      engine.send(JSON.parse(Buffer.concat(chunks).toString()));
      const [answer] = await once(engine, 'message');
      const body = JSON.stringify(answer);
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
      response.end(body);
    });
  });
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
}

process.on('disconnect', () => process.exit(0));
await (role === 'run' ? serveRuns(rest) : serveHttp([role, ...rest]));
