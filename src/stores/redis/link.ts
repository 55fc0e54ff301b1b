/**
 * The line to Redis. It keeps one connection open for as long as it lives, opens a new one when that is lost, and
 * spares requests a server that does not answer: every call is raced against its budget, and each server has a breaker,
 * so that one node of a cluster that is away takes nobody but its own owners along.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreBudget, spend } from '../budget.ts';
import { StoreUnavailable } from '../errors.ts';
import type { StoreLog } from '../log.ts';
import { type Breaker, createBreaker } from './breaker.ts';
import { type OpenRedis, type RedisConnection, within } from './connection.ts';
import { race, TOO_LATE } from './race.ts';
import { type CallKind, isWrongServer, storeError } from './reply-errors.ts';

/** One service's line to Redis, over all connections that it has one after the other. Ended by `close`. */
export interface RedisLink {
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
  ): Promise<T>;
  /** Resolves when the first connection is open, or after so many milliseconds. Whether it is. */
  opened(milliseconds: number): Promise<boolean>;
  /** Whether every server answers. */
  readonly up: boolean;
  /** Connections after the first. */
  readonly reconnects: number;
  /** Of the last heartbeat, milliseconds. */
  readonly latencyMs: number | undefined;
  close(): Promise<void>;
}

/** How a line opens connections, and who hears of them. */
export interface RedisLinkOptions {
  readonly open: OpenRedis;
  readonly log: StoreLog;
  /** Called with each new connection, before calls get it. */
  readonly onConnection?: (connection: RedisConnection) => void;
}

/** The present connection with what is known of its servers. */
interface Current {
  readonly connection: RedisConnection;
  readonly breakers: Map<string, Breaker>;
  /** When any of its servers last answered a heartbeat. */
  heardAt: number;
  /** Resolved when it is to be replaced. */
  readonly replace: PromiseWithResolvers<void>;
}

const HEARTBEAT_MS = 500;
const HEARTBEAT_DOWN_MS = 150;
const HEARTBEAT_TIMEOUT_MS = 250;
/** A connection that is silent for so long is replaced: it may be half open, or lead to a master of the past. */
const REPLACE_MS = 1_500;
const RETRY_MS = [50, 100, 200, 400] as const;
/** A call that had less time than this proves nothing when it is cut off. */
const FAIR_MS = 50;

/** Starts connecting; never rejects for that. */
export function createRedisLink({ open, log, onConnection }: RedisLinkOptions): RedisLink {
  let current: Current | undefined;
  let lostAt: number | undefined;
  let connections = 0;
  let latencyMs: number | undefined;
  let closed = false;
  const closing = new AbortController();
  const firstOpen = Promise.withResolvers<void>();
  const pause = (milliseconds: number): Promise<void> =>
    sleep(milliseconds, undefined, { signal: closing.signal }).catch(() => {});
  const running = keepOpen();
  const beating = heartbeat();

  return {
    call: (kind, key, budget, work) => spend(budget, () => attempt(kind, key, budget.remaining, work)),
    async opened(milliseconds) {
      await within(milliseconds, firstOpen.promise).catch(() => {});
      return current !== undefined;
    },
    get up() {
      return current !== undefined && allClosed(current);
    },
    get reconnects() {
      return Math.max(0, connections - 1);
    },
    get latencyMs() {
      return latencyMs;
    },
    async close() {
      closed = true;
      closing.abort();
      drop(current);
      await Promise.all([running, beating]);
    },
  };

  async function attempt<T>(
    kind: CallKind,
    key: string | undefined,
    milliseconds: number,
    work: (connection: RedisConnection) => Promise<T>,
  ): Promise<T> {
    const used = current;
    const breaker = used === undefined || key === undefined ? undefined : breakerOf(used, used.connection.shardOf(key));
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
        drop(used);
      }
      throw storeError(error, kind);
    }
  }

  function breakerOf({ breakers }: Current, shard: string): Breaker {
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
  function drop(lost: Current | undefined): void {
    if (lost === undefined || lost !== current) return;
    current = undefined;
    lostAt = performance.now();
    lost.connection.destroy();
    lost.replace.resolve();
  }

  async function keepOpen(): Promise<void> {
    for (let failed = 0; !closed; failed++) {
      try {
        let mine: Current | undefined;
        const connection = await open((cause) => {
          if (mine === undefined || mine !== current || closed) return;
          log.warn(
            { store: 'redis' },
            `the connection to Redis was lost (${text(cause)}): catalogs wait, inline decisions go on`,
          );
          drop(mine);
        });
        if (closed) {
          connection.destroy();
          return;
        }
        onConnection?.(connection);
        mine = {
          connection,
          breakers: new Map(),
          heardAt: performance.now(),
          replace: Promise.withResolvers<void>(),
        };
        current = mine;
        connections++;
        failed = 0;
        const downMs = lostAt === undefined ? undefined : Math.round(performance.now() - lostAt);
        log.info({ store: 'redis', ...(downMs === undefined ? {} : { downMs }) }, 'connected to Redis');
        firstOpen.resolve();
        await mine.replace.promise;
      } catch (error) {
        if (failed === 0 && !closed) log.warn({ store: 'redis', err: error }, 'cannot connect to Redis; trying again');
      }
      // Replicas that lost the same server should not all come back at the same instant.
      await pause((RETRY_MS[Math.min(failed, RETRY_MS.length - 1)] ?? 400) * (0.75 + Math.random() / 2));
    }
  }

  async function heartbeat(): Promise<void> {
    while (!closed) {
      await pause(current === undefined || allClosed(current) ? HEARTBEAT_MS : HEARTBEAT_DOWN_MS);
      const used = current;
      if (closed || used === undefined) continue;
      const outcomes = await Promise.all(used.connection.shards().map((shard) => beat(used, shard)));
      if (used !== current) continue;
      if (outcomes.includes('wrong_server')) drop(used);
      if (outcomes.includes('healthy')) used.heardAt = performance.now();
      else if (performance.now() - used.heardAt > REPLACE_MS) drop(used);
    }
  }

  /** Asks one server, and tells its breaker. */
  async function beat(used: Current, shard: string): Promise<'healthy' | 'silent' | 'wrong_server'> {
    const breaker = breakerOf(used, shard);
    const started = performance.now();
    try {
      const isMaster = await race(HEARTBEAT_TIMEOUT_MS, used.connection.probe(shard));
      latencyMs = performance.now() - started;
      if (isMaster) {
        breaker.close();
        return 'healthy';
      }
      breaker.trip('the server is not the master any more');
      return 'wrong_server';
    } catch {
      if (used === current) breaker.silent('Redis does not answer its heartbeat');
      return 'silent';
    }
  }
}

function allClosed({ breakers }: Current): boolean {
  for (const breaker of breakers.values()) if (breaker.openSince !== undefined) return false;
  return true;
}

function text(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
