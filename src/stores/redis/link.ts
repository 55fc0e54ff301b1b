/**
 * The line to Redis. It keeps one connection open for as long as it lives, opens a new one when that is lost, and
 * spares requests a server that does not answer: every call is raced against its budget, and each server has a breaker,
 * so that one node of a cluster that is away takes nobody but its own owners along.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreBudget, spend } from '../budget.ts';
import { messageOf, StoreUnavailable } from '../errors.ts';
import type { StoreLog } from '../log.ts';
import { type Breaker, createBreaker } from './breaker.ts';
import { type OpenRedis, type RedisConnection, within } from './connection.ts';
import { race, TOO_LATE } from './race.ts';
import { type CallKind, isWrongServer, storeError } from './reply-errors.ts';

/** How a line opens connections, and who hears of them. */
export interface RedisLinkOptions {
  readonly open: OpenRedis;
  readonly log: StoreLog;
  /** Called with each new connection, before calls get it. */
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

/** Without a connection, for the first time or again; with one; closed for good. */
type LinkState = { readonly kind: 'connecting' } | Connected | { readonly kind: 'closed' };

/** Milliseconds between heartbeats while the breaker is closed and while it is open, and for the answer to one. */
const HEARTBEAT_MS = 500;
const HEARTBEAT_DOWN_MS = 150;
const HEARTBEAT_TIMEOUT_MS = 250;
/** A connection that is silent for so long is replaced: it may be half open, or lead to a master of the past. */
const REPLACE_MS = 1_500;
const RETRY_MS = [50, 100, 200, 400] as const;
/** A call that had less time than this proves nothing when it is cut off. */
const FAIR_MS = 50;

/** One service's line to Redis, over all connections that it has one after the other. Ended by `close`. */
export class RedisLink {
  readonly #options: RedisLinkOptions;
  #state: LinkState = { kind: 'connecting' };
  #lostAt: number | undefined;
  #connections = 0;
  #latencyMs: number | undefined;
  readonly #closing = new AbortController();
  readonly #firstOpen = Promise.withResolvers<void>();
  readonly #ended: Promise<unknown>;

  /** Starts connecting; never throws for that. */
  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.#ended = Promise.all([this.#keepOpen(), this.#heartbeat()]);
  }

  /**
   * Does one piece of work on the connection. `key`: a key that it is about; undefined for what walks all servers.
   * Throws StoreUnavailable, StoreCorrupt, or for a write that was cut off StoreWriteUnconfirmed. What the work itself
   * throws of these goes through.
   */
  call<T>(
    kind: CallKind,
    key: string | undefined,
    budget: StoreBudget,
    work: (connection: RedisConnection) => Promise<T>,
  ): Promise<T> {
    return spend(budget, () => this.#attempt(kind, key, budget.remaining, work));
  }

  /** Resolves when the first connection is open, or after so many milliseconds. Whether it is. */
  async opened(milliseconds: number): Promise<boolean> {
    await within(milliseconds, this.#firstOpen.promise).catch(() => {});
    return this.#connected !== undefined;
  }

  /** Whether every server answers. */
  get up(): boolean {
    return this.#connected !== undefined && allClosed(this.#connected);
  }

  /** Connections after the first. */
  get reconnects(): number {
    return Math.max(0, this.#connections - 1);
  }

  /** Of the last heartbeat, milliseconds. */
  get latencyMs(): number | undefined {
    return this.#latencyMs;
  }

  /** Drops the connection, and resolves when nothing goes on any more. */
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
    if (used === undefined || breaker?.openSince !== undefined) throw new StoreUnavailable('Redis is away');
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
      breaker = createBreaker({
        opened: (reason) => log.warn(fields, `${reason}: catalogs wait, inline decisions go on`),
        closed: (openMs) => log.info({ ...fields, downMs: Math.round(openMs) }, 'Redis answers again'),
      });
      breakers.set(shard, breaker);
    }
    return breaker;
  }

  /** Forgets a connection and has keepOpen() make a new one. */
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
        if (failed === 0 && !this.#isClosed)
          this.#options.log.warn({ store: 'redis', err: error }, 'cannot connect to Redis; trying again');
      }
      // Replicas that lost the same server should not all come back at the same instant.
      await this.#pause((RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] ?? 400) * (0.75 + Math.random() / 2));
    }
  }

  /** Opens a connection; undefined if the line has been closed meanwhile. Rejects if it cannot be opened. */
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

  /** Asks one server, and tells its breaker. */
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
