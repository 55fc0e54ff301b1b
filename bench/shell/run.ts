/**
 * What the shell around a decision costs: CPU time of the serving process for one request, with an engine that answers
 * at once and the log as in production, compared with the barest server of the same protocol in the same run; and with
 * 300 choices compared with the CPU time that the engines of the default model and of the cheapest one take for the
 * same decision, with cached choices. Each server is a process of its own. They take turns, so that a machine which
 * slows down slows all of them. The first quartile of the rounds is shown.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { startTraceReceiver, type TraceReceiver } from '../load/trace-receiver.ts';
import { quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import { type DecisionBody, LARGE, SMALL } from './requests.ts';

/** Sends one request and resolves when it is answered. */
type Send = () => Promise<unknown>;

interface Row {
  readonly name: string;
  /** Rows with the same server share a process. */
  readonly server: 'decisions' | 'echo' | 'echo-engine' | 'connect-http1' | 'connect-http2' | 'umpire' | 'observed';
  /** Which of the process's servers, if it has several. */
  readonly port?: number;
  readonly body: DecisionBody;
  readonly send: (port: number, body: DecisionBody) => Send;
  /** The row by which this one is divided, or the engines' CPU time for the same requests. */
  readonly baseline?: string | typeof ENGINE;
  readonly bound?: number;
}

/** A baseline that is no row: the engine processes of the row's own server. */
const ENGINE = Symbol('engine');

/** Callers of a server at a time. */
const CALLERS = 8;
/** Requests of the round that only warms up, at least. */
const WARM_UP = 3000;

/** All rows, in the order in which they are printed. */
const ALL: readonly Row[] = [
  { name: 'node:http echo, 5 choices', server: 'echo', body: SMALL, send: rest },
  {
    name: 'echo and messages to an engine, 5 choices',
    server: 'echo-engine',
    body: SMALL,
    send: rest,
    baseline: 'node:http echo, 5 choices',
  },
  {
    name: 'Umpire REST, 5 choices',
    server: 'umpire',
    body: SMALL,
    send: rest,
    baseline: 'node:http echo, 5 choices',
    bound: 3,
  },
  { name: 'node:http echo, 300 choices', server: 'echo', body: LARGE, send: rest },
  {
    name: 'echo and messages to an engine, 300 choices',
    server: 'echo-engine',
    body: LARGE,
    send: rest,
    baseline: 'node:http echo, 300 choices',
  },
  {
    name: 'Umpire REST, 300 choices',
    server: 'umpire',
    body: LARGE,
    send: rest,
    baseline: 'node:http echo, 300 choices',
  },
  ...['umpire-mini', 'minilm-l6'].map(
    (model): Row => ({
      name: `Umpire REST, 300 cached choices, by the engine of ${model}`,
      server: 'decisions',
      body: { ...LARGE, model },
      send: rest,
      baseline: ENGINE,
      bound: 0.05,
    }),
  ),
  { name: 'bare connect-node, gRPC', server: 'connect-http2', body: SMALL, send: grpc },
  { name: 'Umpire gRPC', server: 'umpire', body: SMALL, send: grpc, baseline: 'bare connect-node, gRPC', bound: 1.3 },
  { name: 'bare connect-node, Connect JSON', server: 'connect-http1', body: SMALL, send: connect },
  {
    name: 'Umpire Connect JSON',
    server: 'umpire',
    body: SMALL,
    send: connect,
    baseline: 'bare connect-node, Connect JSON',
    bound: 1.3,
  },
  ...observed('REST', rest),
  ...observed('gRPC', grpc),
];

/**
 * Rows for what an operator may switch on, compared with a row without it: four services in one process, so that they
 * differ in nothing else.
 */
function observed(protocol: string, send: Row['send']): readonly Row[] {
  const baseline = `${protocol}, nothing observed`;
  const row = { server: 'observed', body: SMALL, send } as const;
  return [
    { ...row, name: baseline, port: 0 },
    { ...row, name: `${protocol}, metrics`, port: 1, baseline, bound: 1.03 },
    { ...row, name: `${protocol}, 1 % traced`, port: 2, baseline, bound: 1.1 },
    { ...row, name: `${protocol}, all traced`, port: 3, baseline },
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
      // The server may have closed an idle connection while other rows had their turn.
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
  name: Row['server'],
  receiver: TraceReceiver,
): Promise<{ readonly child: ChildProcess; readonly ports: readonly number[] }> {
  const kind = name === 'observed' ? 'umpire' : name;
  const observing = [{}, { UMPIRE_METRICS_PORT: '0' }, receiver.settings(0.01), receiver.settings(1)];
  const settings = name === 'observed' ? observing : [{}];
  const nowhere = openSync('/dev/null', 'w');
  const child = fork(new URL('./server.ts', import.meta.url), [kind, JSON.stringify(settings)], {
    stdio: ['ignore', nowhere, 'inherit', 'ipc'],
  });
  child.once('exit', (code) => {
    if (code !== 0) throw new Error(`the server '${kind}' ended with ${code}`);
  });
  const [{ ports }] = (await once(child, 'message')) as [{ ports: readonly number[] }];
  return { child, ports };
}

/** CPU time so far, microseconds: of the serving process, and of its engine processes. */
async function cpuOf(child: ChildProcess): Promise<{ readonly cpu: number; readonly engines: number }> {
  child.send('cpu');
  const [times] = (await once(child, 'message')) as [{ cpu: number; engines: number }];
  return times;
}

/** Sends `count` requests, `CALLERS` at a time. */
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

/**
 * Measures all rows and prints the table. `--requests N` of a row in a round, `--rounds N`; `--observed 1` measures
 * only the last rows, `--rest 1` only the first.
 */
export async function run(
  options: {
    readonly requests?: number;
    readonly rounds?: number;
    readonly observed?: number;
    readonly rest?: number;
  } = {},
): Promise<void> {
  const { requests = 3000, rounds = 7 } = options;
  const rows = ALL.filter(
    ({ server, send }) =>
      (options.observed !== 1 || server === 'observed') &&
      (options.rest !== 1 || (send === rest && server !== 'observed')),
  );
  const receiver = await startTraceReceiver();
  const servers = new Map<string, Awaited<ReturnType<typeof startServer>>>();
  for (const { server } of rows) if (!servers.has(server)) servers.set(server, await startServer(server, receiver));
  const senders = rows.map(({ server, port = 0, send, body }) => send(servers.get(server)?.ports[port] ?? 0, body));
  const samples = rows.map((): number[] => []);
  const engines = rows.map((): number[] => []);
  // The first request encodes its choices; several such at a time would be refused.
  for (const send of senders) await send();
  for (let round = -1; round < rounds; round += 1) {
    for (let turn = 0; turn < rows.length; turn += 1) {
      // Each round begins with another row, so that no row is always the first.
      const index = (turn + Math.max(0, round)) % rows.length;
      const row = rows[index] as Row;
      const { child } = servers.get(row.server) as { child: ChildProcess };
      // A decision by an engine takes a hundred times as long as one without.
      const [each, least] =
        row.server === 'decisions'
          ? [requests / 10, WARM_UP / 3]
          : [row.send === rest ? 2 * requests : requests, WARM_UP];
      // The first round only warms up.
      const count = Math.ceil(round < 0 ? Math.max(least, each) : each);
      const before = await cpuOf(child);
      await drive(senders[index] as Send, count);
      const after = await cpuOf(child);
      if (round < 0) continue;
      samples[index]?.push((after.cpu - before.cpu) / count);
      engines[index]?.push((after.engines - before.engines) / count);
    }
  }
  // Other work of the machine can only add to a round, so the quieter rounds tell more.
  const microseconds = new Map(rows.map(({ name }, index) => [name, quantile(samples[index] ?? [], 0.25)]));
  printTable(
    ['CPU time of one request', 'µs', 'ratio', 'at most'],
    rows.map((row, index) => {
      const own = microseconds.get(row.name) as number;
      const { baseline } = row;
      const other = baseline === ENGINE ? quantile(engines[index] ?? [], 0.25) : microseconds.get(baseline ?? '');
      const ratio = other === undefined ? '' : (own / other).toFixed(baseline === ENGINE ? 3 : 2);
      return [row.name, own.toFixed(0), ratio, row.bound === undefined ? '' : String(row.bound)];
    }),
  );
  for (const { child } of servers.values()) child.disconnect();
  receiver.close();
}
