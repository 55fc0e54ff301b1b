/**
 * A process with one or more servers under test: `node bench/shell/server.ts <kind> [settings of each Umpire, as
 * JSON]`. It sends its parent the ports, and, whenever it is asked, the CPU time of itself and of its engine processes
 * so far, in microseconds.
 */
import { fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { createApp } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { processUsage } from '../../src/engine/processes/recycling.ts';
import { createLogSink } from '../../src/logger.ts';
import { processVitals, type Vitals } from '../../src/wire/watchdog.ts';
import { createInstantEngine } from './instant-engine.ts';
import type { DecisionBody } from './requests.ts';

/** Reads a JSON body and sends it back, after `between`: what any JSON service over node:http costs at least. */
function echo(between: (body: DecisionBody, go: () => void) => void) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const content = JSON.parse(Buffer.concat(chunks).toString());
      between(content, () => {
        const body = JSON.stringify(content);
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
        response.end(body);
      });
    });
  };
}

/** An echo with a message to an engine process and back before it, as the pool sends them. */
function echoThroughEngine() {
  const engine = fork(fileURLToPath(new URL('./echo-engine.ts', import.meta.url)), [], { serialization: 'advanced' });
  const waiting = new Map<number, () => void>();
  let jobs = 0;
  engine.on('message', ({ job }: { job: number }) => {
    waiting.get(job)?.();
    waiting.delete(job);
  });
  return echo(({ input, instruction, choices }, go) => {
    const job = ++jobs;
    waiting.set(job, go);
    engine.send({ kind: 'score', job, key: 'instant@r1', input, instruction, choices, timeLeft: 10_000 });
  });
}

/** The simplest connect-node service, as in its documentation: the handler only fills the message. */
const bareConnect = connectNodeAdapter({
  routes: (router) =>
    router.service(DecisionService, {
      createDecision: ({ choices }) => ({
        decision: {
          id: 'dec_0',
          object: 'decision',
          model: 'instant@r1',
          output: {
            choice: choices[0] ?? '',
            confidence: 0.2,
            probabilities: Object.fromEntries(choices.map((choice) => [choice, 1 / choices.length])),
          },
          usage: { inputTokens: 24 },
        },
      }),
    }),
});

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
}

async function umpire(settings: Readonly<Record<string, string>>, engine?: Engine): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  // The settings are those of production, but for the limits that this benchmark would exceed.
  const config = readConfig({
    PORT: '0',
    HOST: '127.0.0.1',
    UMPIRE_DATA_DIR: folder,
    UMPIRE_RATE_ANONYMOUS: '1000000/s',
    UMPIRE_BODIES_ANONYMOUS: 'off',
    UMPIRE_BODIES_KEY: 'off',
    UMPIRE_BODIES_ALL: 'off',
    UMPIRE_REQUEST_RATE: '1000000/s, burst 1000000',
    ...settings,
  });
  const { logger } = createLogSink(config.logLevel, process.stdout);
  // The process is watched as in production, but must not refuse requests because the machine has other work.
  const watched = processVitals();
  const vitals: Vitals = { ...watched, loopDelay: () => Math.min(0, watched.loopDelay()) };
  const app = await createApp(config, logger, { ...(engine === undefined ? {} : { engine }), vitals });
  return app.start();
}

const kinds: Readonly<Record<string, () => Promise<number | readonly number[]>>> = {
  echo: () => listen(createServer(echo((_body, go) => go()))),
  'echo-engine': () => listen(createServer(echoThroughEngine())),
  'connect-http1': () => listen(createServer(bareConnect)),
  'connect-http2': () => listen(createHttp2Server(bareConnect)),
  umpire: () =>
    Promise.all(
      (JSON.parse(process.argv[3] ?? '[{}]') as Record<string, string>[]).map((settings) =>
        umpire(settings, createInstantEngine()),
      ),
    ),
  decisions: () => umpire({ UMPIRE_ENGINES: '1', UMPIRE_MODELS: 'umpire-mini,minilm-l6', UMPIRE_LISTEN_WHEN: 'ready' }),
};

/** CPU time of this process's children, microseconds; 0 if the system does not list them. */
function enginesCpu(): number {
  try {
    const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
    return children.reduce((sum, pid) => sum + 1000 * (processUsage(Number(pid))?.cpu ?? 0), 0);
  } catch {
    return 0;
  }
}

const start = kinds[process.argv[2] ?? ''];
if (start === undefined || process.send === undefined)
  throw new Error(`usage: server.ts ${Object.keys(kinds).join('|')}, as a child`);
process.send({ ports: [await start()].flat() });
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: user + system, engines: enginesCpu() });
});
process.on('disconnect', () => process.exit(0));
