/**
 * The server of one package, whatever protocol it speaks: its connection, its calls, and whether it is fit to decide.
 */
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import type { InferenceCalls } from '../../engine.ts';
import { type FamilyServer, JobStopped, type RunControl, type ServerProblems } from '../family.ts';
import { CallFailed, reasonOf } from './call-failed.ts';
import { type CallBounds, type CallSize, type Calls, type CallTerms, createCalls, type JobCall } from './calls.ts';

/** One connection, as a protocol makes it. */
export interface Connection {
  /** Why the server cannot be asked now; undefined if it can. Never rejects. */
  readinessProblem(): Promise<string | undefined>;
  /** How the server's description of its model differs from the package. Never rejects. */
  modelProblems(): Promise<readonly string[]>;
  /** Calls under way fail. */
  close(): void;
}

/** What a `RemoteServer` is made of. */
export interface RemoteServerOptions<C extends Connection> {
  /** Makes a connection. Rejects if what the package says about it cannot be used. */
  open(): Promise<C>;
  readonly bounds: CallBounds;
  /** Called when a watched server is no longer fit, and not again until it is watched again. */
  unready(problems: readonly string[]): void;
}

/** The time for work that no caller asked for, milliseconds: longer than that of any request. */
const PATIENCE = 60_000;
/** A deadline within this many milliseconds counts as passed: timers of two processes do not agree exactly. */
const CLOCK_SLACK = 5;

/**
 * `apart`: there is no connection. `connected`: there is one, and nobody is told if the server fails. `watched`: the
 * canary was right; the server is asked again and again whether it is ready, and failures are counted against it.
 */
type State<C> =
  | { readonly kind: 'apart' }
  | { readonly kind: 'connected'; readonly connection: C }
  | { readonly kind: 'watched'; readonly connection: C; readonly monitor: Monitor };

/** A server, apart at first. */
export class RemoteServer<C extends Connection> implements FamilyServer {
  readonly #options: RemoteServerOptions<C>;
  readonly #calls: Calls;
  readonly #breaker: Breaker;
  #state: State<C> = { kind: 'apart' };

  constructor(options: RemoteServerOptions<C>) {
    this.#options = options;
    this.#calls = createCalls(options.bounds, () => {
      if (this.#state.kind === 'watched') this.#state.monitor.hurry();
    });
    this.#breaker = createBreaker((reason) => this.#unfit(`the inference server cannot be used: ${reason}`));
  }

  async connect(): Promise<ServerProblems> {
    this.close();
    try {
      const connection = await this.#options.open();
      this.#state = { kind: 'connected', connection };
      const problem = await connection.readinessProblem();
      if (problem !== undefined) return { problems: [problem], away: true };
      return { problems: await connection.modelProblems(), away: false };
    } catch (error) {
      return { problems: [reasonOf(error)], away: false };
    }
  }

  watch(): void {
    if (this.#state.kind === 'apart') return;
    if (this.#state.kind === 'watched') this.#state.monitor.stop();
    const { connection } = this.#state;
    this.#breaker.reset();
    const monitor = startMonitor(
      () => connection.readinessProblem(),
      (problem) => this.#unfit(problem),
    );
    this.#state = { kind: 'watched', connection, monitor };
  }

  takeCounts(): InferenceCalls | undefined {
    return this.#calls.takeCounts();
  }

  /** Makes a call over the current connection. Rejects with CallFailed. */
  call<T>(size: CallSize, job: JobCall, once: (connection: C, terms: CallTerms) => Promise<T>): Promise<T> {
    return this.#calls.make(size, job, async (terms) => {
      if (this.#state.kind === 'apart') throw new CallFailed('unavailable', 'there is no connection');
      return await once(this.#state.connection, terms);
    });
  }

  /**
   * Does a job's work by calls, and counts a failure against the server. Rejects with JobStopped where nobody waits any
   * more, with CallFailed, or with what `work` throws.
   */
  async attempt<T>(control: RunControl, work: (call: JobCall) => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work(this.callOf(control));
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      const outOfTime = performance.now() >= control.deadline - CLOCK_SLACK;
      this.#breaker.failed(error, began, outOfTime);
      // Its caller has been answered, or is about to be.
      throw control.signal.aborted || outOfTime ? new JobStopped() : error;
    }
  }

  /** The terms of a job's calls; work that no caller asked for has a deadline, too. */
  callOf({ signal, deadline, vectors }: RunControl): JobCall {
    return { signal, deadline: Math.min(deadline, performance.now() + PATIENCE), vectors };
  }

  /** The server has made a decision. */
  decided(): void {
    this.#breaker.succeeded();
  }

  close(): void {
    if (this.#state.kind === 'watched') this.#state.monitor.stop();
    if (this.#state.kind !== 'apart') this.#state.connection.close();
    this.#state = { kind: 'apart' };
  }

  #unfit(problem: string): void {
    if (this.#state.kind !== 'watched') return;
    this.#state.monitor.stop();
    this.#state = { kind: 'connected', connection: this.#state.connection };
    this.#options.unready([problem]);
  }
}

// Decides when a server is not asked any more: after several decisions in a row that it failed at, or at once after an
// answer that makes asking again pointless. A decision that ran out of its caller's time counts as a failure if the
// server made no other meanwhile and the wait was long enough to mean something. Whether the server is well again is
// found out by the canary.

/** Watches the decisions of one server. */
interface Breaker {
  succeeded(): void;
  /** `since`: when the decision began, on the clock of `performance.now()`. `outOfTime`: whether its time was up. */
  failed(error: CallFailed, since: number, outOfTime: boolean): void;
  /** Forgets all failures. */
  reset(): void;
}

/** Failures in a row after which the server is not asked any more. */
const TOLERATED = 5;
/** Milliseconds that a decision whose time was up must have waited to count as a failure of the server. */
const MEANINGFUL = 1000;

/**
 * `open` is called once, at the last tolerated failure or the first that is beyond doubt, and again only after a
 * success or a reset.
 */
export function createBreaker(open: (reason: string) => void): Breaker {
  let failures = 0;
  let lastAnswer = 0;
  return {
    succeeded() {
      failures = 0;
      lastAnswer = performance.now();
    },
    failed({ outcome, blame, message }, since, outOfTime) {
      if ((outcome === 'canceled' && !outOfTime) || blame === 'request') return;
      if (blame === 'unfit') {
        if (failures < TOLERATED) open(message);
        failures = TOLERATED;
        return;
      }
      if (outOfTime && (lastAnswer > since || performance.now() - since < MEANINGFUL)) return;
      if (++failures === TOLERATED) open(`it fails again and again: ${message}`);
    },
    reset() {
      failures = 0;
    },
  };
}

// Asks a server regularly whether it is ready, so that its absence is noticed before a decision fails for it.

/** A server that is asked regularly, until `stop`. */
interface Monitor {
  /** Asks now, in addition to the regular times. */
  hurry(): void;
  stop(): void;
}

/** Milliseconds between two questions, and before the question is repeated after a problem. */
const INTERVAL = 1000;
const AGAIN = 100;

/** `problem` asks once; `gone` is called, and the asking ends, when it has found a problem twice in a row. */
function startMonitor(problem: () => Promise<string | undefined>, gone: (problem: string) => void): Monitor {
  let stopped = false;
  let asking = false;

  const ask = async (): Promise<void> => {
    if (asking || stopped) return;
    asking = true;
    let found = await problem();
    // One broken connection does not mean that the server is away.
    if (found !== undefined && !stopped) {
      await delay(AGAIN);
      found = await problem();
    }
    asking = false;
    if (found === undefined || stopped) return;
    stop();
    gone(found);
  };

  const timer = setInterval(() => void ask(), INTERVAL);
  const stop = (): void => {
    stopped = true;
    clearInterval(timer);
  };
  return { hurry: () => void ask(), stop };
}

// Keeps long work from holding up the process: other decisions, cancellations and reports of progress get their turn in
// between.

/** Called between two steps of work. Throws JobStopped when the job is no longer wanted. */
export type Pace = () => Promise<void>;

/** The longest that work may go on without a pause, milliseconds. */
const LONGEST = 8;

/** The pace of one job. */
export function createPace(signal: AbortSignal): Pace {
  let since = performance.now();
  return async () => {
    if (performance.now() - since >= LONGEST) {
      await nextTurn();
      since = performance.now();
    }
    if (signal.aborted) throw new JobStopped();
  };
}
