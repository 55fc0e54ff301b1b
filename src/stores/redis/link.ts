/**
 * The link to Redis. It keeps one connection open and opens a new one when that is lost. It does not let requests wait
 * for a server that does not answer: every store call is bounded by its budget, and each server has a breaker of its
 * own, so that a cluster's node that is away affects only the owners whose data it has.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreBudget, spend } from '../budget.ts';
import { messageOf, type StoreLog, StoreUnavailable } from '../stores.ts';
import { Breaker } from './breaker.ts';
import { type OpenRedis, type RedisConnection, within } from './connection.ts';
import { type CallKind, isWrongServer, storeError } from './reply-errors.ts';

/** How a link opens connections, and what is told of them. */
export interface RedisLinkOptions {
  readonly open: OpenRedis;
  readonly log: StoreLog;
  /** Called with each new connection, before store calls use it. */
  readonly onConnection?: (connection: RedisConnection) => void;
}

/** A connection with what is known of its servers. */
interface Connected {
  readonly kind: 'connected';
  readonly connection: RedisConnection;
  readonly breakers: Map<string, Breaker>;
  /** When any of its servers last answered a heartbeat. */
  heardAt: number;
  /** Resolved when it is to be replaced. */
  readonly replace: PromiseWithResolvers<void>;
}

/** The states of a link: without a connection, for the first time or again; with one; closed for good. */
type LinkState = { readonly kind: 'connecting' } | Connected | { readonly kind: 'closed' };

/** Milliseconds between heartbeats while all breakers are closed. */
const HEARTBEAT_MS = 500;
/** Milliseconds between heartbeats while a breaker is open: its server is to be used soon after it answers again. */
const HEARTBEAT_DOWN_MS = 150;
/** Milliseconds for the answer to a heartbeat. */
const HEARTBEAT_TIMEOUT_MS = 250;
/** Milliseconds of silence after which a connection is replaced: it may be half open, or lead to a former master. */
const REPLACE_MS = 1_500;
/** Milliseconds before each attempt to connect; the last holds for all further ones. */
const RETRY_MS = [50, 100, 200, 400] as const;
/** Milliseconds that a store call must have had before its lack of an answer counts against the server. */
const FAIR_MS = 50;

/** A service's link to Redis, which lasts over all its connections. Ended by `close`. */
export class RedisLink {
  readonly #options: RedisLinkOptions;
  #state: LinkState = { kind: 'connecting' };
  #lostAt: number | undefined;
  /** Why the last attempt to connect failed. */
  #failure = 'not connected yet';
  #connections = 0;
  #latencyMs: number | undefined;
  readonly #closing = new AbortController();
  readonly #firstOpen = Promise.withResolvers<void>();
  readonly #ended: Promise<unknown>;

  /** Begins to connect. Never throws: a failed attempt is made again. */
  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.#ended = Promise.all([this.#keepOpen(), this.#heartbeat()]);
  }

  /**
   * Makes one store call: does `work` with the connection. `key`: a key that the work is about; undefined for work that
   * scans all servers. Throws StoreUnavailable, StoreCorrupt, or, for a write that was cut off, StoreWriteUnconfirmed;
   * also those of them that the work itself throws.
   */
  call<T>(
    kind: CallKind,
    key: string | undefined,
    budget: StoreBudget,
    work: (connection: RedisConnection) => Promise<T>,
  ): Promise<T> {
    return spend(budget, () => this.#attempt(kind, key, budget.remaining, work));
  }

  /** Resolves when the first connection is open, or after so many milliseconds, to whether there is one. */
  async opened(milliseconds: number): Promise<boolean> {
    await within(milliseconds, this.#firstOpen.promise).catch(() => {});
    return this.#connected !== undefined;
  }

  /** Whether every server answers. */
  get up(): boolean {
    return this.#connected !== undefined && allClosed(this.#connected);
  }

  /** The number of connections after the first. */
  get reconnects(): number {
    return Math.max(0, this.#connections - 1);
  }

  /** The round trip of the last heartbeat, milliseconds. */
  get latencyMs(): number | undefined {
    return this.#latencyMs;
  }

  /** Drops the connection, and resolves when all work of the link has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#drop(this.#connected);
    this.#state = { kind: 'closed' };
    await this.#ended;
  }

  get #connected(): Connected | undefined {
    return this.#state.kind === 'connected' ? this.#state : undefined;
  }

  get #isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  async #attempt<T>(
    kind: CallKind,
    key: string | undefined,
    milliseconds: number,
    work: (connection: RedisConnection) => Promise<T>,
  ): Promise<T> {
    const used = this.#connected;
    const breaker =
      used === undefined || key === undefined ? undefined : this.#breakerOf(used, used.connection.shardOf(key));
    if (used === undefined) throw new StoreUnavailable(`Redis is away (${this.#failure})`);
    if (breaker?.openSince !== undefined) throw new StoreUnavailable('Redis is away');
    if (milliseconds <= 0) throw new StoreUnavailable('the time for store work is used up');
    try {
      const result = await race(milliseconds, work(used.connection));
      breaker?.answered();
      return result;
    } catch (error) {
      if (error === TOO_LATE && milliseconds >= FAIR_MS) breaker?.silent('Redis does not answer in time');
      if (isWrongServer(error)) {
        breaker?.trip('Redis is read-only: it is not the master any more');
        this.#drop(used);
      }
      throw storeError(error, kind);
    }
  }

  #breakerOf({ breakers }: Connected, shard: string): Breaker {
    const { log } = this.#options;
    let breaker = breakers.get(shard);
    if (breaker === undefined) {
      const fields = shard === '' ? { store: 'redis' } : { store: 'redis', node: shard };
      breaker = new Breaker({
        opened: (reason) => log.warn(fields, `${reason}: catalogs wait, inline decisions go on`),
        closed: (openMs) => log.info({ ...fields, downMs: Math.round(openMs) }, 'Redis answers again'),
      });
      breakers.set(shard, breaker);
    }
    return breaker;
  }

  /** Drops a connection, so that keepOpen() makes a new one. */
  #drop(lost: Connected | undefined): void {
    if (lost === undefined || lost !== this.#state) return;
    this.#state = { kind: 'connecting' };
    this.#lostAt = performance.now();
    lost.connection.destroy();
    lost.replace.resolve();
  }

  async #keepOpen(): Promise<void> {
    for (let failed = 0; !this.#isClosed; failed++) {
      try {
        const connected = await this.#open();
        if (connected === undefined) return;
        failed = 0;
        await connected.replace.promise;
      } catch (error) {
        this.#failure = messageOf(error);
        if (failed === 0 && !this.#isClosed)
          this.#options.log.warn({ store: 'redis', err: error }, 'cannot connect to Redis; trying again');
      }
      // Replicas that lost the same server should not all come back at the same instant.
      await this.#pause((RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] ?? 400) * (0.75 + Math.random() / 2));
    }
  }

  /** Opens a connection; undefined if the link has been closed meanwhile. Rejects if it cannot be opened. */
  async #open(): Promise<Connected | undefined> {
    const { open, log, onConnection } = this.#options;
    let connected: Connected | undefined;
    const connection = await open((cause) => {
      if (connected === undefined || connected !== this.#state) return;
      const message = `the connection to Redis was lost (${messageOf(cause)}): catalogs wait, inline decisions go on`;
      log.warn({ store: 'redis' }, message);
      this.#drop(connected);
    });
    if (this.#isClosed) {
      connection.destroy();
      return undefined;
    }
    onConnection?.(connection);
    const replace = Promise.withResolvers<void>();
    connected = { kind: 'connected', connection, breakers: new Map(), heardAt: performance.now(), replace };
    this.#state = connected;
    this.#connections++;
    const downMs = this.#lostAt === undefined ? undefined : Math.round(performance.now() - this.#lostAt);
    log.info({ store: 'redis', ...(downMs === undefined ? {} : { downMs }) }, 'connected to Redis');
    this.#firstOpen.resolve();
    return connected;
  }

  async #heartbeat(): Promise<void> {
    while (!this.#isClosed) {
      const now = this.#connected;
      await this.#pause(now === undefined || allClosed(now) ? HEARTBEAT_MS : HEARTBEAT_DOWN_MS);
      const used = this.#connected;
      if (used === undefined) continue;
      const outcomes = await Promise.all(used.connection.shards().map((shard) => this.#beat(used, shard)));
      if (used !== this.#state) continue;
      if (outcomes.includes('wrong_server')) this.#drop(used);
      if (outcomes.includes('healthy')) used.heardAt = performance.now();
      else if (performance.now() - used.heardAt > REPLACE_MS) this.#drop(used);
    }
  }

  /** Sends one server a heartbeat, and tells its breaker the outcome. */
  async #beat(used: Connected, shard: string): Promise<'healthy' | 'silent' | 'wrong_server'> {
    const breaker = this.#breakerOf(used, shard);
    const started = performance.now();
    try {
      const isMaster = await race(HEARTBEAT_TIMEOUT_MS, used.connection.probe(shard));
      this.#latencyMs = performance.now() - started;
      if (isMaster) {
        breaker.close();
        return 'healthy';
      }
      breaker.trip('the server is not the master any more');
      return 'wrong_server';
    } catch {
      if (used === this.#state) breaker.silent('Redis does not answer its heartbeat');
      return 'silent';
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return sleep(milliseconds, undefined, { signal: this.#closing.signal }).catch(() => {});
  }
}

function allClosed({ breakers }: Connected): boolean {
  for (const breaker of breakers.values()) if (breaker.openSince !== undefined) return false;
  return true;
}

// Bounds the time of one store call. A command that the client has written cannot be taken back, so the caller stops
// waiting instead.

/** What a call that took too long is rejected with; always this object, so that it can be compared. */
const TOO_LATE = new Error('Redis did not answer in time');

/** Milliseconds by which a timer may be late; a later one shows that this process was busy, and perhaps not Redis. */
const BUSY_MS = 20;
/** Milliseconds that are then added, since the answer may have arrived and wait to be read. */
const GRACE_MS = 50;

/** The work's outcome, or a rejection with `TOO_LATE` once the time is up; what comes of the work later is ignored. */
async function race<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  const cut = Promise.withResolvers<never>();
  const due = performance.now() + milliseconds;
  let timer = setTimeout(() => {
    const busy = performance.now() - due > BUSY_MS;
    timer = setTimeout(() => cut.reject(TOO_LATE), busy ? GRACE_MS : 0);
  }, milliseconds);
  work.catch(() => {});
  try {
    return await Promise.race([work, cut.promise]);
  } finally {
    clearTimeout(timer);
  }
}
