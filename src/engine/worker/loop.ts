/**
 * The work of an engine process. Tasks that run graphs, and loads of every kind, are done one at a time in the order in
 * which their messages arrived; only while a job reads long texts, which it does in pieces, short decisions pass it.
 * Jobs that a server scores run at the same time as these and as one another: the pool sends no more than the server
 * may have.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { JobStopped, type RunControl } from '../families/family.ts';
import { isRemote } from '../packages/manifest.ts';
import {
  type FromEngine,
  type LoadMessage,
  PASSING_LENGTH,
  type PrepareMessage,
  type ScoreMessage,
  type ToEngine,
} from './messages.ts';
import { LoadedModels } from './models.ts';
import { releaseSpare } from './release.ts';

/** Milliseconds between two reports of progress in one job. */
const PROGRESS_INTERVAL = 100;
/** A package is not served whose canary decision goes wrong this often in a row. */
const CANARY_TRIES = 3;
/** Milliseconds that a job may read its texts before others pass it. */
const LONG_READING = 10;

type JobMessage = ScoreMessage | PrepareMessage;
/** A message that asks for work. */
type Task = Exclude<ToEngine, { readonly kind: 'cancel' | 'drain' }>;

/** A process's work from its first message to its drain. */
export class WorkerLoop {
  readonly #models: LoadedModels;
  readonly #send: (message: FromEngine) => void;
  readonly #end: () => void;
  readonly #resident: () => number;
  readonly #waiting: { readonly task: Task; readonly arrived: number }[] = [];
  /** Jobs that have begun, and what stops them. */
  readonly #jobs = new Map<number, AbortController>();
  #inTurn: 'idle' | 'working' = 'idle';
  /** Tasks under way that wait for a server. As long as the process lives they count as making progress. */
  #awaiting = 0;
  #lastProgress = 0;
  #draining = false;

  /**
   * `send` delivers to the pool; `end` is called once after a drain, when all work is done; `resident` measures the
   * process; `cacheDir`: see cache.ts.
   */
  constructor(
    cacheBytes: number,
    send: (message: FromEngine) => void,
    end: () => void,
    resident: () => number,
    cacheDir?: string,
  ) {
    this.#models = new LoadedModels(cacheBytes, (key, problems) => send({ kind: 'unready', key, problems }), cacheDir);
    this.#send = send;
    this.#end = end;
    this.#resident = resident;
  }

  /** Takes a message from the pool. */
  receive(message: ToEngine): void {
    switch (message.kind) {
      case 'cancel':
        this.#cancel(message.job);
        break;
      case 'drain':
        this.#draining = true;
        this.#endIfIdle();
        break;
      case 'score':
      case 'prepare':
        if (this.#models.isRemote(message.key)) void this.#runBeside(message);
        else this.#enqueue(message);
        break;
      default:
        this.#enqueue(message);
    }
  }

  /**
   * Tells the pool the counts of inference calls, and that tasks still wait for servers, if there is anything to tell;
   * called often.
   */
  report(): void {
    for (const calls of this.#models.takeCounts()) this.#send({ kind: 'calls', calls });
    if (this.#awaiting > 0) this.#send({ kind: 'progress' });
  }

  #enqueue(task: Task): void {
    this.#waiting.push({ task, arrived: performance.now() });
    if (this.#inTurn === 'idle') void this.#work();
  }

  async #work(): Promise<void> {
    this.#inTurn = 'working';
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await this.#perform(next.task, next.arrived);
      // A turn of the event loop, so that a cancellation is read before the job that it cancels begins.
      await nextTurn();
    }
    this.#inTurn = 'idle';
    this.#endIfIdle();
  }

  async #perform(task: Task, arrived: number): Promise<void> {
    switch (task.kind) {
      case 'load': {
        const load = () => this.#load(task);
        this.#send(await (isRemote(task.manifest.family) ? this.#awaitServer(load) : load()));
        break;
      }
      case 'unload':
        await this.#models.unload(task.key);
        break;
      case 'release':
        await releaseSpare();
        this.#send({ kind: 'released', resident: this.#resident() });
        break;
      default:
        this.#lastProgress = performance.now();
        await this.#run(task, this.#lastProgress - arrived, 'passable');
    }
  }

  /** Loads a package and lets it make its canary decision. */
  async #load(message: LoadMessage): Promise<FromEngine> {
    const { key } = message;
    const outcome = await this.#models.load(message);
    if (outcome.kind === 'load_failed') return { ...outcome, key };
    let problem = '';
    for (let tries = 0; tries < CANARY_TRIES; tries++) {
      const found = await this.#models.canary(key);
      if (found === undefined) return { ...outcome, key, resident: this.#resident() };
      problem = found;
    }
    await this.#models.unload(key);
    return { kind: 'load_failed', key, problems: [problem] };
  }

  async #runBeside(message: JobMessage): Promise<void> {
    await this.#awaitServer(() => this.#run(message, 0, 'alone'));
    this.#endIfIdle();
  }

  /** Runs a job. `passable`: whether decisions may pass it while it reads its texts. */
  async #run(message: JobMessage, waited: number, passable: 'passable' | 'alone'): Promise<void> {
    const { job } = message;
    const stop = new AbortController();
    this.#jobs.set(job, stop);
    const began = performance.now();
    let reading: 'begun' | 'long' | 'over' = passable === 'passable' ? 'begun' : 'over';
    const control: Pick<RunControl, 'checkpoint' | 'pause' | 'signal'> = {
      signal: stop.signal,
      checkpoint: () => {
        if (reading === 'long') this.#send({ kind: 'read', job });
        reading = 'over';
        this.#progress(stop.signal);
      },
      pause: async () => {
        this.#progress(stop.signal);
        await nextTurn();
        if (reading === 'begun' && performance.now() - began > LONG_READING) {
          reading = 'long';
          this.#send({ kind: 'reading', job });
        }
        if (reading === 'long') await this.#letPass();
      },
    };
    const result = await this.#models.run(message, waited, control);
    this.#jobs.delete(job);
    this.#send({ kind: 'finished', job, result });
  }

  /** Throws JobStopped if the job is no longer wanted; otherwise tells now and then that the work goes on. */
  #progress({ aborted }: AbortSignal): void {
    if (aborted) throw new JobStopped();
    const now = performance.now();
    if (now - this.#lastProgress < PROGRESS_INTERVAL) return;
    this.#lastProgress = now;
    this.#send({ kind: 'progress' });
  }

  /** Makes the decision that is next in turn, if there is one and it is short. */
  async #letPass(): Promise<void> {
    const [next] = this.#waiting;
    if (next?.task.kind !== 'score' || lengthOf(next.task) > PASSING_LENGTH) return;
    this.#waiting.shift();
    await this.#run(next.task, performance.now() - next.arrived, 'alone');
  }

  async #awaitServer<T>(work: () => Promise<T>): Promise<T> {
    this.#awaiting++;
    try {
      return await work();
    } finally {
      this.#awaiting--;
    }
  }

  #cancel(job: number): void {
    const place = this.#waiting.findIndex(({ task }) => 'job' in task && task.job === job);
    if (place < 0) {
      this.#jobs.get(job)?.abort();
      return;
    }
    this.#waiting.splice(place, 1);
    this.#send({ kind: 'finished', job, result: { kind: 'canceled' } });
  }

  #endIfIdle(): void {
    if (!this.#draining || this.#inTurn === 'working' || this.#jobs.size > 0) return;
    this.report();
    this.#end();
  }
}

function lengthOf({ input, instruction, choices }: ScoreMessage): number {
  return choices.reduce((sum, choice) => sum + choice.length, input.length + instruction.length);
}
