/** One engine process, seen from the pool: messages, models, work in flight, and its end. */
import { fork } from 'node:child_process';
import { getPriority } from 'node:os';
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls } from '../engine.ts';
import type { EngineSettings } from '../options.ts';
import type { Revision } from '../packages/revisions.ts';
import type { FromEngine, JobResult, PrepareMessage, ScoreMessage, ToEngine } from '../worker/messages.ts';
import { type Death, deathOf } from './deaths.ts';
import { createKnownChoiceSets, type KnownChoiceSets } from './known-choice-sets.ts';

/** What a process tells its owner. */
export interface EngineEvents {
  /** `occupied`: milliseconds for which the job kept the process from the next one, messages included. */
  finished(job: number, result: JobResult, occupied: number): void;
  memory(resident: number): void;
  /** A model that was loaded cannot serve for now. */
  unready(key: string, problems: readonly string[]): void;
  calls(calls: InferenceCalls): void;
  /** The process is gone; `lost` are the jobs that it had in flight, in the order in which they were sent. Called once. */
  gone(death: Death, lost: readonly number[]): void;
}

/** How loading a model into one process ended. */
export type LoadOutcome =
  | { readonly kind: 'ready' }
  /** `away`: the package may be sound, but its inference server cannot be asked. `measured`: it was too slow here and now. */
  | {
      readonly kind: 'failed';
      readonly problems: readonly string[];
      readonly away?: boolean;
      readonly measured?: boolean;
    }
  /** The process ended before the model was loaded; `killed` if somebody else killed it. */
  | { readonly kind: 'gone'; readonly killed: boolean };

/** A process. All but `kill` do nothing once it is gone. */
export interface EngineProcess {
  readonly pid: number | undefined;
  /** Models that are loaded and whose canary was right. */
  readonly models: ReadonlyMap<string, CostProfile>;
  readonly choiceSets: KnownChoiceSets;
  /** Resident bytes when it last told; 0 before. */
  readonly resident: number;
  /** Jobs that it works on at a time. */
  readonly concurrency: number;
  /** Jobs sent and not finished. */
  readonly inFlight: number;
  /** Milliseconds that what is in flight will still take, by its estimates. */
  remaining(): number;
  /** Verifies and loads a model and makes its canary decision, up to three times. Never rejects. */
  load(revision: Revision): Promise<LoadOutcome>;
  unload(key: string): void;
  /** Takes no more jobs for these models, which another process has now; those that it has go on. */
  cede(keys: Iterable<string>): void;
  /** Sends a job whose estimated cost is `cost` milliseconds. */
  send(message: ScoreMessage | PrepareMessage, cost: number): void;
  /** Stops a job between two graph runs; it still finishes, as canceled. */
  cancel(job: number): void;
  /** Lets the process end when its work is done. */
  drain(): void;
  kill(death: Death): void;
  /** Milliseconds since the last sign of progress while there is work; 0 without work. */
  silence(): { readonly loading: boolean; readonly milliseconds: number };
}

const canaryTries = 3;

// What loading a graph frees lies between what it keeps: with one arena the next graph is loaded into it, and what is free at the end goes back
// to the system. Buffers of runs stay below 16 MiB, so none of them is mapped anew with every run, which would cost a tenth of its time.
const mallocTunables = [
  'glibc.malloc.arena_max=1',
  'glibc.malloc.mmap_threshold=16777216',
  'glibc.malloc.trim_threshold=16777216',
].join(':');

/** Starts a process that works on `concurrency` jobs at a time. `name` is for the log. */
export function startEngineProcess(
  name: string,
  settings: EngineSettings,
  concurrency: number,
  events: EngineEvents,
): EngineProcess {
  const { logger, workerEntry, choiceCacheBytes, niceness } = settings;
  // The other half is for models and vectors, which lie outside the heap.
  const heap = Math.max(64, Math.floor(settings.engineMemoryBytes / 2 ** 21));
  const priority = Math.min(19, getPriority() + niceness);
  const child = fork(workerEntry, [String(choiceCacheBytes), String(priority), name], {
    serialization: 'advanced',
    // Not the parent's own: a debugger's port or a test runner's loader is not for the engines.
    execArgv: [`--max-old-space-size=${heap}`, '--max-semi-space-size=4', '--disable-warning=ExperimentalWarning'],
    // Engines need no secrets, and this runtime would report on itself over the network if it were let.
    env: {
      ...pick(process.env, [
        'PATH',
        'HOME',
        'TMPDIR',
        'LANG',
        'TZ',
        'LD_LIBRARY_PATH',
        'NODE_COMPILE_CACHE',
        'NODE_EXTRA_CA_CERTS',
      ]),
      ORT_DISABLE_TELEMETRY: '1',
      GLIBC_TUNABLES: mallocTunables,
    },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const models = new Map<string, CostProfile>();
  const inFlight = new Map<number, { readonly cost: number; readonly since: number }>();
  const loads = new Map<
    string,
    { profile: CostProfile | undefined; canaries: number; end(outcome: LoadOutcome): void }
  >();
  let headSince = 0;
  let lastSign = performance.now();
  let over = false;
  let killedFor: Death | undefined;
  let resident = 0;

  const post = (message: ToEngine): void => {
    // A closed channel is reported by the process's end.
    if (!over && child.connected) child.send(message, () => {});
  };

  const endLoad = (key: string, outcome: LoadOutcome): void => {
    const load = loads.get(key);
    loads.delete(key);
    load?.end(outcome);
  };

  const canaryMade = (key: string, problem: string | undefined): void => {
    const load = loads.get(key);
    if (load?.profile === undefined) return;
    if (problem === undefined) {
      models.set(key, load.profile);
      endLoad(key, { kind: 'ready' });
    } else if (++load.canaries < canaryTries) post({ kind: 'canary', key });
    else {
      post({ kind: 'unload', key });
      endLoad(key, { kind: 'failed', problems: [problem] });
    }
  };

  const receive = (message: FromEngine): void => {
    // A process that hangs in a job may still tell its size.
    if (message.kind !== 'memory') lastSign = performance.now();
    if (message.kind === 'memory') {
      resident = message.resident;
      events.memory(resident);
    } else if (message.kind === 'finished') {
      const since = concurrency === 1 ? headSince : (inFlight.get(message.job)?.since ?? lastSign);
      inFlight.delete(message.job);
      const occupied = lastSign - since;
      headSince = lastSign;
      events.finished(message.job, message.result, occupied);
    } else if (message.kind === 'loaded') {
      const load = loads.get(message.key);
      if (load !== undefined) load.profile = message.profile;
      post({ kind: 'canary', key: message.key });
    } else if (message.kind === 'load_failed') {
      endLoad(message.key, { kind: 'failed', problems: message.problems, away: message.away === true });
    } else if (message.kind === 'canary_made') {
      canaryMade(message.key, message.problem);
    } else if (message.kind === 'unready') {
      if (models.delete(message.key)) events.unready(message.key, message.problems);
    } else if (message.kind === 'calls') {
      events.calls(message.calls);
    }
  };

  const ended = (death: Death): void => {
    if (over) return;
    over = true;
    models.clear();
    for (const key of [...loads.keys()]) endLoad(key, { kind: 'gone', killed: death.cause === 'killed' });
    const lost = [...inFlight.keys()];
    inFlight.clear();
    events.gone(death, lost);
  };

  child.on('message', (message) => receive(message as FromEngine));
  child.on('exit', (code, signal) => ended(deathOf(code, signal, killedFor)));
  child.on('error', (error) => {
    // Without a pid it never started, and no exit follows.
    if (child.pid === undefined) ended({ cause: 'crashed', reason: error.message });
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    logger.warn({ engine: name, pid: child.pid, output: text.slice(0, 2000) }, 'an engine wrote to its error output');
  });

  return {
    pid: child.pid,
    models,
    choiceSets: createKnownChoiceSets(),
    get resident() {
      return resident;
    },
    concurrency,
    get inFlight() {
      return inFlight.size;
    },
    remaining() {
      if (inFlight.size === 0) return 0;
      const now = performance.now();
      let sum = 0;
      for (const { cost, since } of inFlight.values())
        sum += concurrency === 1 ? cost : Math.max(0, cost - (now - since));
      return concurrency === 1 ? Math.max(0, sum - (now - headSince)) : sum;
    },
    load({ key, folder, manifest, profile }) {
      if (over) return Promise.resolve({ kind: 'gone', killed: false });
      return new Promise((end) => {
        if (loads.size + inFlight.size === 0) lastSign = performance.now();
        loads.set(key, { profile: undefined, canaries: 0, end });
        post({ kind: 'load', key, folder, manifest, profile });
      });
    },
    unload(key) {
      models.delete(key);
      post({ kind: 'unload', key });
    },
    cede(keys) {
      for (const key of keys) models.delete(key);
    },
    send(message, cost) {
      const now = performance.now();
      if (inFlight.size === 0) headSince = now;
      if (loads.size + inFlight.size === 0) lastSign = now;
      inFlight.set(message.job, { cost, since: now });
      post(message);
    },
    cancel: (job) => post({ kind: 'cancel', job }),
    drain: () => post({ kind: 'drain' }),
    kill(death) {
      killedFor = death;
      child.kill('SIGKILL');
    },
    silence: () => ({
      loading: loads.size > 0,
      milliseconds: loads.size + inFlight.size === 0 ? 0 : performance.now() - lastSign,
    }),
  };
}

function pick(env: NodeJS.ProcessEnv, names: readonly string[]): NodeJS.ProcessEnv {
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}
