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
import { startTraceReceiver } from '../load/trace-receiver.ts';
import { median } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import { type DecisionBody, large, small } from './requests.ts';

/** Sends one request and resolves when it is answered. */
type Send = () => Promise<unknown>;

interface Row {
  readonly name: string;
  /** A kind of server.ts; Umpire's is followed by what is switched on. */
  readonly server: string;
  readonly body: DecisionBody;
  readonly send: (port: number, body: DecisionBody) => Send;
  /** The row that this one is divided by. */
  readonly baseline?: string;
  readonly bound?: number;
}

const CALLERS = 8;
const WARM_UP = 3000;

const all: readonly Row[] = [
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
  ...observed('Umpire REST, 5 choices', rest),
  ...observed('Umpire gRPC', grpc),
];

/** A row again, with what an operator may switch on, beside the row without. */
function observed(baseline: string, send: Row['send']): readonly Row[] {
  return [
    { name: `${baseline}, metrics`, server: 'umpire metrics', body: small, send, baseline, bound: 1.03 },
    { name: `${baseline}, 1 % traced`, server: 'umpire traces 0.01', body: small, send, baseline, bound: 1.1 },
    { name: `${baseline}, all traced`, server: 'umpire traces 1', body: small, send, baseline },
  ];
}

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
  const once: Send = () =>
    new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`));
        response.resume().on('end', resolve);
      });
      // While other rows had their turn, the server may have closed an idle connection.
      sent.on('error', (error) => (sent.reusedSocket ? resolve(once()) : reject(error))).end(bytes);
    });
  return once;
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

async function startServer(
  name: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const kind = name.split(' ')[0] as string;
  const nowhere = openSync('/dev/null', 'w');
  const child = fork(new URL('./server.ts', import.meta.url), [kind, JSON.stringify(settings)], {
    stdio: ['ignore', nowhere, 'inherit', 'ipc'],
  });
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

/** Measures all rows and prints the table. `--requests N`: requests a row and round, `--rounds N`, `--observed 1`: without the bare servers. */
export async function run(
  options: { readonly requests?: number; readonly rounds?: number; readonly observed?: number } = {},
): Promise<void> {
  const { requests = 3000, rounds = 7 } = options;
  const compared = all.filter(({ server }) => server.includes(' ')).flatMap(({ name, baseline }) => [name, baseline]);
  const rows = options.observed === 1 ? all.filter(({ name }) => compared.includes(name)) : all;
  const receiver = await startTraceReceiver();
  const settingsOf = (server: string): Readonly<Record<string, string>> => {
    const [, what, share] = server.split(' ');
    if (what === 'metrics') return { UMPIRE_METRICS_PORT: '0' };
    return what === 'traces' ? receiver.settings(Number(share)) : {};
  };
  const servers = new Map<string, Awaited<ReturnType<typeof startServer>>>();
  for (const { server } of rows) {
    if (!servers.has(server)) servers.set(server, await startServer(server, settingsOf(server)));
  }
  const senders = rows.map((row) => row.send((servers.get(row.server) as { port: number }).port, row.body));
  const samples = rows.map((): number[] => []);
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, row] of rows.entries()) {
      const { child } = servers.get(row.server) as { child: ChildProcess };
      const each = row.send === rest ? 2 * requests : requests;
      // The first round only warms up.
      const count = round < 0 ? Math.max(WARM_UP, each) : each;
      const before = await cpuOf(child);
      await drive(senders[index] as Send, count);
      if (round >= 0) samples[index]?.push(((await cpuOf(child)) - before) / count);
    }
  }
  /** Rounds are compared one by one: a machine that is slow for one of them is slow for both rows. */
  const ratioOf = ({ name, baseline }: Row): number | undefined => {
    const [own, other] = [name, baseline].map((wanted) => samples[rows.findIndex((row) => row.name === wanted)] ?? []);
    return other?.length ? median((own ?? []).map((each, round) => each / (other[round] as number))) : undefined;
  };
  const microseconds = new Map(rows.map((row, index) => [row.name, median(samples[index] ?? [])]));
  printTable(
    ['CPU time of one request', 'µs', 'ratio', 'at most'],
    rows.map((row) => {
      const own = microseconds.get(row.name) as number;
      const ratio = ratioOf(row)?.toFixed(2) ?? '';
      return [row.name, own.toFixed(0), ratio, row.bound === undefined ? '' : String(row.bound)];
    }),
  );
  for (const { child } of servers.values()) child.disconnect();
  receiver.close();
}
