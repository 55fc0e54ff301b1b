/**
 * The server of one package, whatever protocol it speaks: its connection, the calls to it, which are bounded, counted
 * and made again where that is safe, and whether it is fit to decide.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { InferenceCalls, TokensUsed } from '../../engine.ts';
import { type FamilyServer, JobStopped, type RunControl, type ServerProblems } from '../family.ts';
import { CallFailed, reasonOf } from './call-failed.ts';
import { type CallBounds, type CallSize, type InferenceJob, type InferenceTerms, noCalls, Semaphore } from './calls.ts';

/** One connection, as a protocol makes it. */
export interface Connection {
  /** Why the server cannot be asked now; undefined if it can. Never rejects. */
  readinessProblem(): Promise<string | undefined>;
  /** How the server's description of its model differs from the package, if it gives one. Never rejects. */
  modelProblems?(): Promise<readonly string[]>;
  /** Calls under way fail. */
  close(): void;
}

/** What a `RemoteServer` is made of. */
export interface RemoteServerOptions<C extends Connection> {
  /** Makes a connection. Rejects if what the package says about it cannot be used. */
  open(): Promise<C>;
  readonly bounds: CallBounds;
  /** Called when a server that serves is no longer fit, and not again until it serves again. */
  unready(problems: readonly string[]): void;
}

/** Milliseconds between two questions whether a server is ready, and before one is repeated after a problem. */
const INTERVAL = 1000;
const AGAIN = 100;
/** Decisions in a row at which a server failed that make it unfit. */
const TOLERATED = 5;
/** Milliseconds that a decision whose time was up must have waited to count as a failure of the server. */
const MEANINGFUL = 1000;
/** The time for work that no caller asked for, milliseconds: longer than that of any request. */
const PATIENCE = 60_000;
/** A deadline within this many milliseconds counts as passed: timers of two processes do not agree exactly. */
const CLOCK_SLACK = 5;
/** The least wait before a call is made again, milliseconds; up to as much again is added at random. */
const RETRY_WAIT = 20;
/**
 * Retries must not add to the load of a server in trouble: as in gRPC's own throttling (gRFC A6, the values of its
 * examples) a failed call takes a token, a successful one gives a part back, and while half of them or less are left no
 * call is made again.
 */
const RETRY_TOKENS = 10;
const TOKEN_GAIN = 0.1;

/**
 * `apart`: there is no connection. `probing`: there is one, and the canary tries it; nobody is told of failures.
 * `closed`, as a circuit: the canary was right and decisions go over the connection; the server is asked again and
 * again whether it is ready, and failures count. `open`: it was found unfit and makes no decisions; the next
 * connection, and its canary, find out whether it is well again.
 */
type State<C> = { readonly kind: 'apart' } | { readonly kind: 'probing' | 'open'; readonly connection: C } | Closed<C>;

interface Closed<C> {
  readonly kind: 'closed';
  readonly connection: C;
  readonly timer: NodeJS.Timeout;
  /** Whether it is being asked if it is ready. */
  asking: boolean;
  /** Decisions in a row at which it failed, and when it last made one. */
  failures: number;
  lastAnswer: number;
}

/** A server, apart at first. */
export class RemoteServer<C extends Connection> implements FamilyServer {
  readonly #options: RemoteServerOptions<C>;
  readonly #semaphore: Semaphore;
  #state: State<C> = { kind: 'apart' };
  #retryTokens = RETRY_TOKENS;
  #counts = noCalls();
  /** The milliseconds of the longest call that the connection answered, and when the server last said anything. */
  #longest = 0;
  #heardAt = 0;

  constructor(options: RemoteServerOptions<C>) {
    this.#options = options;
    this.#semaphore = new Semaphore(options.bounds);
  }

  async connect(): Promise<ServerProblems> {
    this.close();
    try {
      const connection = await this.#options.open();
      this.#state = { kind: 'probing', connection };
      this.#longest = 0;
      const problem = await connection.readinessProblem();
      if (problem !== undefined) return { problems: [problem], away: true };
      return { problems: (await connection.modelProblems?.()) ?? [], away: false };
    } catch (error) {
      return { problems: [reasonOf(error)], away: false };
    }
  }

  watch(): void {
    if (this.#state.kind === 'apart') return;
    if (this.#state.kind === 'closed') clearInterval(this.#state.timer);
    const { connection } = this.#state;
    const timer = setInterval(() => void this.#ask(state), INTERVAL);
    const state: Closed<C> = { kind: 'closed', connection, timer, asking: false, failures: 0, lastAnswer: 0 };
    this.#state = state;
  }

  takeCounts(): InferenceCalls | undefined {
    const taken = this.#counts;
    if (Object.values(taken.outcomes).every((count) => count === 0)) return undefined;
    this.#counts = noCalls();
    return taken;
  }

  close(): void {
    if (this.#state.kind === 'closed') clearInterval(this.#state.timer);
    if (this.#state.kind !== 'apart') this.#state.connection.close();
    this.#state = { kind: 'apart' };
  }

  /**
   * Makes a call over the current connection, within the bounds, and a second time if the first ended as `unavailable`.
   * Rejects with CallFailed, or what `once` throws.
   */
  async call<T>(
    size: CallSize,
    job: InferenceJob,
    once: (connection: C, terms: InferenceTerms) => Promise<T>,
  ): Promise<T> {
    const leave = await this.#semaphore.enter(size.bytes, job.signal).catch(() => {
      throw new CallFailed('canceled', 'nobody waits for it any more');
    });
    try {
      return await this.#callOnce(size, job, once).catch(async (error: unknown) => {
        if (await this.#mayRetry(error, job)) return await this.#callOnce(size, job, once);
        throw error;
      });
    } catch (error) {
      if (isUnavailable(error) && this.#state.kind === 'closed') void this.#ask(this.#state);
      throw error;
    } finally {
      leave();
    }
  }

  /**
   * Does a job's work by calls, and counts a failure against the server. Rejects with JobStopped where nobody waits any
   * more, with CallFailed, or with what `work` throws.
   */
  async attempt<T>(control: RunControl, work: (call: InferenceJob) => Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await work(this.callOf(control));
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      const outOfTime = performance.now() >= control.deadline - CLOCK_SLACK;
      this.#failed(error, began, outOfTime);
      // Its caller has been answered, or is about to be.
      throw control.signal.aborted || outOfTime ? new JobStopped() : error;
    }
  }

  /** The terms of a job's calls; work that no caller asked for has a deadline, too. */
  callOf({ signal, deadline, vectors }: RunControl): InferenceJob {
    return { signal, deadline: Math.min(deadline, performance.now() + PATIENCE), vectors };
  }

  /** The server has made a decision. */
  decided(): void {
    if (this.#state.kind !== 'closed') return;
    this.#state.failures = 0;
    this.#state.lastAnswer = performance.now();
  }

  async #callOnce<T>(
    { rows }: CallSize,
    { signal, deadline }: InferenceJob,
    once: (connection: C, terms: InferenceTerms) => Promise<T>,
  ): Promise<T> {
    const began = performance.now();
    const within = Math.min(this.#options.bounds.timeoutMs, deadline - began);
    if (within <= 0) throw new CallFailed('timed_out', 'its time was up before it was sent');
    try {
      if (this.#state.kind === 'apart') throw new CallFailed('unavailable', 'there is no connection');
      const used = (tokens: TokensUsed): void => {
        this.#counts.tokens.in += tokens.in;
        this.#counts.tokens.out += tokens.out;
      };
      const found = await once(this.#state.connection, { signal, within, used });
      this.#counts.outcomes.answered++;
      this.#counts.rows += rows;
      this.#heardAt = performance.now();
      this.#longest = Math.max(this.#longest, this.#heardAt - began);
      this.#counts.seconds += (this.#heardAt - began) / 1000;
      this.#retryTokens = Math.min(RETRY_TOKENS, this.#retryTokens + TOKEN_GAIN);
      return found;
    } catch (error) {
      if (error instanceof CallFailed) this.#counts.outcomes[error.outcome]++;
      throw error;
    }
  }

  /** Whether a call may be made again; resolves after the wait that it takes. */
  async #mayRetry(error: unknown, { signal, deadline }: InferenceJob): Promise<boolean> {
    // Nothing else is safe to make again: the server may still be at work on the first call. Even if it is at work
    // after this outcome, no harm is done, since scoring has no effects.
    if (!isUnavailable(error)) return false;
    const wait = Math.max(RETRY_WAIT * (1 + Math.random()), error.retryAfter ?? 0);
    this.#retryTokens = Math.max(0, this.#retryTokens - 1);
    if (this.#retryTokens <= RETRY_TOKENS / 2 || performance.now() + wait >= deadline) return false;
    this.#counts.retries++;
    // If the caller leaves meanwhile, the second call ends at once.
    await delay(wait, undefined, { signal }).catch(() => {});
    return true;
  }

  /**
   * Counts a decision that failed, `since` when it began. One whose time was up counts if the server made no other
   * meanwhile and the wait was long enough to mean something.
   */
  #failed({ outcome, blame, message }: CallFailed, since: number, outOfTime: boolean): void {
    if (this.#state.kind !== 'closed' || (outcome === 'canceled' && !outOfTime) || blame === 'request') return;
    if (blame === 'unfit') {
      this.#unfit(`the inference server cannot be used: ${message}`);
      return;
    }
    if (outOfTime && (this.#state.lastAnswer > since || performance.now() - since < MEANINGFUL)) return;
    if (++this.#state.failures === TOLERATED)
      this.#unfit(`the inference server cannot be used: it fails again and again: ${message}`);
  }

  /** Asks whether the server is ready, so that its absence is noticed before a decision fails for it. */
  async #ask(state: Closed<C>): Promise<void> {
    if (state.asking) return;
    state.asking = true;
    let problem = await state.connection.readinessProblem();
    // One broken connection does not mean that the server is away.
    if (problem !== undefined && this.#state === state) {
      await delay(AGAIN);
      problem = await state.connection.readinessProblem();
    }
    state.asking = false;
    if (problem === undefined) this.#heardAt = performance.now();
    else if (this.#state === state && !this.#isAtWork()) this.#unfit(problem);
  }

  /** Whether it may be at work on what it was asked: some servers answer nothing else until they are done. */
  #isAtWork(): boolean {
    return this.#semaphore.inside > 0 && performance.now() - this.#heardAt < 2 * this.#longest;
  }

  #unfit(problem: string): void {
    if (this.#state.kind !== 'closed') return;
    clearInterval(this.#state.timer);
    this.#state = { kind: 'open', connection: this.#state.connection };
    this.#options.unready([problem]);
  }
}

function isUnavailable(error: unknown): error is CallFailed {
  return error instanceof CallFailed && error.outcome === 'unavailable';
}
