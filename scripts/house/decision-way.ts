/**
 * The way of one decision through the files, as Node's inspector shows it. A service of the checkout makes a few
 * decisions with the same choices, each on a connection of its own. V8's coverage of one of them shows which functions
 * ran in the serving process and in the engine process; those that also run while the service is idle are left out.
 * Then, for one more decision, a breakpoint in each such function of the serving process shows who called it. A call
 * over a layer's border is a pair of a function and its nearest caller in another layer; each pair counts once.
 * Returns, and what goes on after an `await`, are not calls.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { startTarget } from '../attacks/target.ts';
import { attach, type Inspector } from './inspector.ts';

/** The protocols over which a decision is followed. */
export const PROTOCOLS = ['REST', 'gRPC'] as const;
/** One of them. */
export type Protocol = (typeof PROTOCOLS)[number];

/** What one decision passes through. Files are paths from the root of the checkout. */
export interface DecisionWay {
  readonly protocol: Protocol;
  /** Files entered in the serving process. */
  readonly serving: readonly string[];
  /** Files entered in the engine process. */
  readonly engine: readonly string[];
  /** Lines of both together. */
  readonly lines: number;
  /** Calls over a layer's border, as `caller → called`. */
  readonly crossings: readonly string[];
}

/** The port of the serving process's inspector. */
const SERVER_PORT = 9338;
/** The port of the engine process's inspector: Node's default, since an engine process is given none. */
const ENGINE_PORT = 9229;
/** Decisions before the one that is followed, which fill caches. */
const WARM_UPS = 3;
/** Milliseconds without a decision, in which everything that runs by a timer runs. */
const IDLE = 2_000;
/** Milliseconds after an answer, in which its log line and its metrics are written. */
const AFTER = 500;

const QUESTION = {
  model: 'minilm-l6',
  input: 'I was charged twice',
  instruction: 'Which team should handle this?',
  choices: ['charges', 'parcels', 'logins'],
};

/** Makes one decision on a new connection. @throws Error if it is not made. */
async function decide(protocol: Protocol, port: number): Promise<void> {
  if (protocol === 'gRPC') {
    const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` });
    await createClient(DecisionService, transport).createDecision(QUESTION);
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const options = { port, host: '127.0.0.1', path: '/v1/decisions', method: 'POST', agent: false };
    request({ ...options, headers: { 'content-type': 'application/json' } }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      answer.once('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(body))));
    })
      .once('error', reject)
      .end(JSON.stringify(QUESTION));
  });
}

/** A function that ran: its script, and where in it the function begins and ends. */
interface Ran {
  readonly scriptId: string;
  readonly file: string;
  readonly start: number;
  readonly end: number;
}

/** Follows a decision through a service of a checkout. */
export async function followDecision(checkout: string, protocol: Protocol): Promise<DecisionWay> {
  const target = await startTarget(checkout, { NODE_OPTIONS: `--inspect-port=127.0.0.1:${SERVER_PORT}` });
  const prefix = `file://${checkout}/`;
  const open: Inspector[] = [];
  try {
    const children = readFileSync(`/proc/${target.pid}/task/${target.pid}/children`, 'utf8').trim().split(' ');
    const server = await attach(target.pid, SERVER_PORT);
    const engine = await attach(Number(children[0]), ENGINE_PORT);
    open.push(server, engine);
    for (let count = 0; count < WARM_UPS; count++) await decide(protocol, target.port);
    for (const inspector of open) {
      await inspector.send('Profiler.enable');
      await inspector.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    }
    const ran = async (action: () => Promise<void>): Promise<readonly (readonly Ran[])[]> => {
      await Promise.all(open.map((inspector) => coverage(inspector, prefix)));
      await action();
      await wait(AFTER);
      return Promise.all(open.map((inspector) => coverage(inspector, prefix)));
    };
    const idle = await ran(() => wait(IDLE));
    const busy = await ran(() => decide(protocol, target.port));
    const [serving = [], asked = []] = busy.map((functions, process) => {
      const always = new Set(idle[process]?.map(({ file, start }) => `${file}:${start}`));
      return functions.filter(({ file, start }) => !always.has(`${file}:${start}`));
    });
    await server.send('Profiler.stopPreciseCoverage');
    const crossings = await callsOverBorders(server, serving, prefix, () => decide(protocol, target.port));
    const filesOf = (functions: readonly Ran[]): readonly string[] =>
      [...new Set(functions.map(({ file }) => file))].sort();
    const files = new Set([...serving, ...asked].map(({ file }) => file));
    return {
      protocol,
      serving: filesOf(serving),
      engine: filesOf(asked),
      lines: [...files]
        .map((file) => readFileSync(join(checkout, file), 'utf8').split('\n').length - 1)
        .reduce((sum, lines) => sum + lines, 0),
      crossings,
    };
  } finally {
    for (const inspector of open) inspector.close();
    await target.stop();
  }
}

/** The functions of `src` that ran since the last call. */
async function coverage(inspector: Inspector, prefix: string): Promise<readonly Ran[]> {
  interface Coverage {
    readonly result: readonly {
      readonly scriptId: string;
      readonly url: string;
      readonly functions: readonly {
        readonly ranges: readonly [
          { readonly startOffset: number; readonly endOffset: number; readonly count: number },
        ];
      }[];
    }[];
  }
  const { result } = await inspector.send<Coverage>('Profiler.takePreciseCoverage');
  return result
    .filter(({ url }) => url.startsWith(`${prefix}src/`))
    .flatMap(({ scriptId, url, functions }) =>
      functions
        .map(({ ranges: [{ startOffset, endOffset, count }] }) => ({ start: startOffset, end: endOffset, count }))
        .filter(({ count }) => count > 0)
        .map(({ start, end }) => ({ scriptId, file: url.slice(prefix.length), start, end })),
    );
}

interface Place {
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The layer of a file; undefined for files at the root of `src`, which put the layers together. */
const layerOf = (file: string): string | undefined => /^src\/(\w+)\//.exec(file)?.[1];

/**
 * Runs `action` with a breakpoint in each function, and returns the calls from another layer. A breakpoint's condition
 * records the stack and is false, so that nothing stops: a decision that stopped would miss its deadline.
 */
async function callsOverBorders(
  inspector: Inspector,
  functions: readonly Ran[],
  prefix: string,
  action: () => Promise<void>,
): Promise<readonly string[]> {
  const evaluate = (expression: string) =>
    inspector.send<{ readonly result: { readonly value: string } }>('Runtime.evaluate', { expression });
  await evaluate('Error.stackTraceLimit = 100; globalThis.houseStacks = new Set();');
  await inspector.send('Debugger.enable');
  for (const each of functions) await breakIn(inspector, each);
  await action();
  await wait(AFTER);
  await inspector.send('Debugger.disable');
  const stacks: readonly string[] = JSON.parse((await evaluate('JSON.stringify([...houseStacks])')).result.value);
  const calls = new Set<string>();
  for (const stack of stacks) {
    // Frames named `async …` await what runs, and did not call it.
    const [called, caller] = [...stack.matchAll(/^ +at (?!async )(?:([^(\n]*) \()?file:\/\/([^:]*):\d+:\d+\)?$/gm)]
      .map(([, name = '(anonymous)', path = '']) => ({ name, file: path.slice(prefix.length - 'file://'.length) }))
      .filter(({ file }) => layerOf(file) !== undefined);
    if (called === undefined || caller === undefined || layerOf(called.file) === layerOf(caller.file)) continue;
    calls.add(`${caller.file} ${caller.name} → ${called.file} ${called.name}`);
  }
  return [...calls].sort();
}

/** Sets a breakpoint at the first place in a function that can have one. */
async function breakIn(inspector: Inspector, { scriptId, start, end }: Ran): Promise<void> {
  const { scriptSource } = await inspector.send<{ scriptSource: string }>('Debugger.getScriptSource', { scriptId });
  const at = (offset: number): Place => {
    const lines = scriptSource.slice(0, offset).split('\n');
    return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
  };
  const { locations } = await inspector.send<{ locations: readonly Place[] }>('Debugger.getPossibleBreakpoints', {
    start: at(start),
    end: at(end),
  });
  const [first] = locations;
  // Two functions may begin at the same place, as in `(a) => (b) => …`; the second breakpoint is refused.
  if (first !== undefined) {
    const condition = 'houseStacks.add(new Error().stack), false';
    await inspector.send('Debugger.setBreakpoint', { location: first, condition }).catch(() => {});
  }
}

const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));
