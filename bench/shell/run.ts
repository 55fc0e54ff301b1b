/**
 * What Umpire costs around a decision: CPU time of the serving process for one request, with an engine that answers at once and the log as in
 * production, beside the barest server of the same protocol in the same run. Servers are processes of their own and take turns, so that a
 * machine which slows down slows all of them.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { median } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import { type DecisionBody, large, small } from './requests.ts';

/** Sends one request and resolves when it is answered. */
type Send = () => Promise<unknown>;

interface Row {
  readonly name: string;
  readonly server: string;
  readonly body: DecisionBody;
  readonly send: (port: number, body: DecisionBody) => Send;
  /** The row that this one is divided by. */
  readonly baseline?: string;
  readonly bound?: number;
}

const CALLERS = 8;
const ROUNDS = 7;

const rows: readonly Row[] = [
  { name: 'node:http echo, 5 choices', server: 'echo', body: small, send: rest },
  {
    name: 'Umpire REST, 5 choices',
    server: 'umpire',
    body: small,
    send: rest,
    baseline: 'node:http echo, 5 choices',
    bound: 3,
  },
  { name: 'node:http echo, 300 choices', server: 'echo', body: large, send: rest },
  {
    name: 'Umpire REST, 300 choices',
    server: 'umpire',
    body: large,
    send: rest,
    baseline: 'node:http echo, 300 choices',
    bound: 2,
  },
  { name: 'bare connect-node, gRPC', server: 'connect-http2', body: small, send: grpc },
  { name: 'Umpire gRPC', server: 'umpire', body: small, send: grpc, baseline: 'bare connect-node, gRPC', bound: 1.3 },
  { name: 'bare connect-node, Connect JSON', server: 'connect-http1', body: small, send: connect },
  {
    name: 'Umpire Connect JSON',
    server: 'umpire',
    body: small,
    send: connect,
    baseline: 'bare connect-node, Connect JSON',
    bound: 1.3,
  },
];

function rest(port: number, body: DecisionBody): Send {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  const bytes = Buffer.from(JSON.stringify(body));
  const options = {
    port,
    host: '127.0.0.1',
    agent,
    method: 'POST',
    path: '/v1/decisions',
    headers: { 'content-type': 'application/json', 'content-length': bytes.length },
  };
  return () =>
    new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
        response.resume().on('end', resolve);
      });
      sent.on('error', reject).end(bytes);
    });
}

function grpc(port: number, body: DecisionBody): Send {
  const client = createClient(DecisionService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` }));
  return () => client.createDecision({ ...body, choices: [...body.choices] });
}

function connect(port: number, body: DecisionBody): Send {
  const transport = createConnectTransport({
    baseUrl: `http://127.0.0.1:${port}`,
    httpVersion: '1.1',
    nodeOptions: { agent: new Agent({ keepAlive: true, maxSockets: CALLERS }) },
  });
  const client = createClient(DecisionService, transport);
  return () => client.createDecision({ ...body, choices: [...body.choices] });
}

async function startServer(kind: string): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const nowhere = openSync('/dev/null', 'w');
  const child = fork(new URL('./server.ts', import.meta.url), [kind], { stdio: ['ignore', nowhere, 'inherit', 'ipc'] });
  child.once('exit', (code) => {
    if (code !== 0) throw new Error(`the server '${kind}' ended with ${code}`);
  });
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  return { child, port };
}

async function cpuOf(child: ChildProcess): Promise<number> {
  child.send('cpu');
  const [{ cpu }] = (await once(child, 'message')) as [{ cpu: number }];
  return cpu;
}

/** Sends `count` requests from as many callers as there are. */
async function drive(send: Send, count: number): Promise<void> {
  let left = count;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await send();
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

/** Measures all rows and prints the table. `--requests N`: requests a row and round. */
export async function run(options: { readonly requests?: number } = {}): Promise<void> {
  const requests = options.requests ?? 3000;
  const servers = new Map<string, Awaited<ReturnType<typeof startServer>>>();
  for (const { server } of rows) if (!servers.has(server)) servers.set(server, await startServer(server));
  const senders = rows.map((row) => row.send((servers.get(row.server) as { port: number }).port, row.body));
  const samples = rows.map((): number[] => []);
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [index, row] of rows.entries()) {
      const { child } = servers.get(row.server) as { child: ChildProcess };
      const count = row.send === rest ? 2 * requests : requests;
      const before = await cpuOf(child);
      await drive(senders[index] as Send, count);
      // The first round only warms up.
      if (round >= 0) samples[index]?.push(((await cpuOf(child)) - before) / count);
    }
  }
  const microseconds = new Map(rows.map((row, index) => [row.name, median(samples[index] ?? [])]));
  printTable(
    ['CPU time of one request', 'µs', 'ratio', 'at most'],
    rows.map((row) => {
      const own = microseconds.get(row.name) as number;
      const ratio = row.baseline === undefined ? '' : (own / (microseconds.get(row.baseline) as number)).toFixed(2);
      return [row.name, own.toFixed(0), ratio, row.bound === undefined ? '' : String(row.bound)];
    }),
  );
  for (const { child } of servers.values()) child.disconnect();
}
