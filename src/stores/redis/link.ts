/**
 * The line to Redis. It keeps one connection open for as long as it lives, opens a new one when that is lost, and spares requests a Redis
 * that does not answer: every call is raced against its budget, after three calls in a row without an answer the line counts as down, calls
 * then fail at once, and a heartbeat finds out when it is up again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type StoreBudget, spend } from '../budget.ts';
import { StoreCorrupt, StoreUnavailable, StoreWriteUnconfirmed } from '../errors.ts';
import type { StoreLog } from '../log.ts';
import { type OpenRedis, type RedisConnection, within } from './connection.ts';
import { troubleOf } from './reply-errors.ts';

/** Whether a call that is cut off may have changed something. */
export type CallKind = 'read' | 'write';

export interface RedisLink {
  /**
   * Does one piece of work on the connection. Throws StoreUnavailable, StoreCorrupt, or for a write that was cut off StoreWriteUnconfirmed.
   * What the work itself throws of these goes through.
   */
  call<T>(kind: CallKind, budget: StoreBudget, work: (connection: RedisConnection) => Promise<T>): Promise<T>;
  /** Resolves when the first connection is open, or after so many milliseconds. Whether it is. */
  opened(milliseconds: number): Promise<boolean>;
  readonly up: boolean;
  readonly reconnects: number;
  readonly latencyMs: number | undefined;
  close(): Promise<void>;
}

export interface RedisLinkOptions {
  readonly open: OpenRedis;
  readonly log: StoreLog;
  /** Called with each new connection, before calls get it. */
  readonly onConnection?: (connection: RedisConnection) => void;
}

const FAILURES_BEFORE_DOWN = 3;
const HEARTBEAT_MS = 500;
const HEARTBEAT_DOWN_MS = 150;
const HEARTBEAT_TIMEOUT_MS = 200;
/** A connection that has not answered for so long is replaced: it may be half open, or lead to a master of the past. */
const REPLACE_MS = 1_000;
const LATE_MS = 20;
const GRACE_MS = 50;
const RETRY_MS = [50, 100, 200, 400] as const;

/** Starts connecting; never rejects for that. */
export function createRedisLink({ open, log, onConnection }: RedisLinkOptions): RedisLink {
  let connection: RedisConnection | undefined;
  let failures = 0;
  let downSince: number | undefined = performance.now();
  let reconnects = -1;
  let latencyMs: number | undefined;
  let closed = false;
  /** Since when the present connection has been silent. */
  let silentSince = 0;
  /** Resolved when the present connection is to be replaced. */
  let wake = Promise.withResolvers<void>();
  const closing = new AbortController();
  const firstOpen = Promise.withResolvers<void>();
  const running = keepOpen();
  const beating = heartbeat();

  return {
    call(kind, budget, work) {
      return spend(budget, () => race(kind, budget.remaining, work));
    },
    async opened(milliseconds) {
      await within(milliseconds, firstOpen.promise).catch(() => {});
      return connection !== undefined;
    },
    get up() {
      return downSince === undefined;
    },
    get reconnects() {
      return Math.max(0, reconnects);
    },
    get latencyMs() {
      return latencyMs;
    },
    async close() {
      closed = true;
      closing.abort();
      drop(connection);
      wake.resolve();
      await Promise.all([running, beating]);
    },
  };

  async function race<T>(
    kind: CallKind,
    milliseconds: number,
    work: (connection: RedisConnection) => Promise<T>,
  ): Promise<T> {
    const current = connection;
    if (current === undefined || downSince !== undefined) throw new StoreUnavailable('Redis is away');
    if (milliseconds <= 0) throw new StoreUnavailable('the time for store work is used up');
    const cut = Promise.withResolvers<never>();
    const due = performance.now() + milliseconds;
    let timer = setTimeout(() => {
      // A timer that is late itself shows that this process was busy, not Redis: the answer may be waiting to be read.
      const excused = performance.now() - due > LATE_MS;
      timer = setTimeout(() => cut.reject(late), excused ? GRACE_MS : 0);
    }, milliseconds);
    const done = work(current);
    done.catch(() => {});
    try {
      const result = await Promise.race([done, cut.promise]);
      failures = 0;
      return result;
    } catch (error) {
      throw judge(kind, current, error);
    } finally {
      clearTimeout(timer);
    }
  }

  function judge(kind: CallKind, used: RedisConnection, error: unknown): unknown {
    if (error instanceof StoreCorrupt || error instanceof StoreUnavailable || error instanceof StoreWriteUnconfirmed)
      return error;
    if (error === late) {
      if (used === connection) failures++;
      if (failures >= FAILURES_BEFORE_DOWN) markDown('Redis does not answer in time');
    }
    const trouble = error === late ? 'broken' : troubleOf(error);
    if (trouble === 'corrupt') return new StoreCorrupt('a key of Umpire holds another type of data', { cause: error });
    if (trouble === 'wrong_server') {
      markDown('Redis is read-only: it is not the master any more');
      drop(used);
    }
    if (trouble === 'broken' && kind === 'write') {
      return new StoreWriteUnconfirmed('Redis did not confirm the write', { cause: error });
    }
    return new StoreUnavailable(error instanceof Error ? error.message : String(error), { cause: error });
  }

  function markDown(reason: string): void {
    if (downSince !== undefined) return;
    downSince = performance.now();
    if (!closed) log.warn({ store: 'redis' }, `${reason}: catalogs wait, inline decisions go on`);
  }

  function markUp(): void {
    failures = 0;
    if (downSince === undefined) return;
    log.info({ store: 'redis', downMs: Math.round(performance.now() - downSince) }, 'Redis answers');
    downSince = undefined;
  }

  /** Forgets a connection and has keepOpen() make a new one. */
  function drop(lost: RedisConnection | undefined): void {
    if (lost === undefined || lost !== connection) return;
    connection = undefined;
    lost.destroy();
    wake.resolve();
  }

  async function keepOpen(): Promise<void> {
    for (let attempt = 0; !closed; ) {
      try {
        let mine: RedisConnection | undefined;
        const opened = await open((cause) => {
          if (mine === undefined || mine !== connection) return;
          markDown(`the connection to Redis was lost (${cause instanceof Error ? cause.message : String(cause)})`);
          drop(mine);
        });
        mine = opened;
        if (closed) {
          opened.destroy();
          return;
        }
        onConnection?.(opened);
        wake = Promise.withResolvers<void>();
        connection = opened;
        silentSince = performance.now();
        reconnects++;
        attempt = 0;
        markUp();
        firstOpen.resolve();
        await wake.promise;
      } catch (error) {
        if (attempt === 0 && !closed) log.warn({ store: 'redis', err: error }, 'cannot connect to Redis; trying again');
      }
      const delay = RETRY_MS[Math.min(attempt++, RETRY_MS.length - 1)] ?? 400;
      // Replicas that lost the same server should not all come back at the same instant.
      await sleep(delay * (0.75 + Math.random() / 2), undefined, { signal: closing.signal }).catch(() => {});
    }
  }

  async function heartbeat(): Promise<void> {
    while (!closed) {
      const pause = downSince === undefined ? HEARTBEAT_MS : HEARTBEAT_DOWN_MS;
      await sleep(pause, undefined, { signal: closing.signal, ref: false }).catch(() => {});
      const current = connection;
      if (closed || current === undefined) continue;
      const started = performance.now();
      try {
        const healthy = await within(HEARTBEAT_TIMEOUT_MS, current.healthy());
        if (current !== connection) continue;
        latencyMs = performance.now() - started;
        silentSince = performance.now();
        if (healthy) markUp();
        else {
          markDown('the server is not the master any more');
          drop(current);
        }
      } catch {
        if (current !== connection) continue;
        failures++;
        if (failures >= FAILURES_BEFORE_DOWN) markDown('Redis does not answer its heartbeat');
        if (performance.now() - silentSince > REPLACE_MS) drop(current);
      }
    }
  }
}

/** A call that took longer than its budget. */
const late = new Error('Redis did not answer in time');
