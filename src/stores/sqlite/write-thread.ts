/**
 * The thread that writes to the embedded store. A commit waits for the disk, milliseconds at a time, and must not block
 * the event loop that answers requests. Writes that arrive during a commit are committed together after it, so that a
 * hundred writes at a time wait for the disk once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { StoreCorrupt } from '../stores.ts';
import { identityOf, isFull, isLocked, openThere, Reserve, sqliteFailure, statementsOf } from './folder.ts';
import { type Acknowledgement, type Order, READY, sharedNow, type Write, type WriteResult } from './write-queue.ts';

/** Writes that one transaction may have, which then share one wait for the disk. */
const MOST_AT_ONCE = 128;
/** Milliseconds before the next attempt of a transaction that found the file locked. */
const RETRY_MS = 3;
/** Milliseconds between attempts to make the reserve again. */
const RESERVE_INTERVAL = 10_000;

const port = parentPort;
if (port === null) throw new Error('this is the entry of a thread');
const { file } = workerData as { readonly file: string };
// The second statement reads the file, so that all parts of the database exist.
const { connection, identity } = openThere(file, 0, (opening) =>
  opening.exec('PRAGMA synchronous = FULL; PRAGMA user_version'),
);
const prepare = statementsOf(connection);
const reserve = new Reserve(file);
reserve.keep();
let reservedAt = sharedNow();

const orders: Order[] = [];
let working = false;

port.on('message', (order: Order) => {
  orders.push(order);
  if (!working) void work();
});

port.postMessage({ number: READY, outcome: { kind: 'done', result: { changes: 0 } } } satisfies Acknowledgement);

async function work(): Promise<void> {
  working = true;
  while (orders.length > 0) {
    // Messages that have arrived by now are read first, so that their writes join this batch.
    await new Promise(setImmediate);
    const batch = orders.splice(0, MOST_AT_ONCE);
    const expired = batch.filter(({ deadline }) => sharedNow() >= deadline);
    acknowledge(expired, { kind: 'unavailable', message: 'another process holds the database' });
    const due = batch.filter((order) => !expired.includes(order));
    if (due.length === 0) continue;
    if (identityOf(file) !== identity) {
      acknowledge(due, { kind: 'unavailable', message: `${file} is not the file that was opened` });
      continue;
    }
    try {
      connection.exec('BEGIN IMMEDIATE');
    } catch (error) {
      if (isLocked(error)) {
        orders.unshift(...due);
        await sleep(RETRY_MS);
      } else {
        acknowledge(due, failure(error));
      }
      continue;
    }
    commit(due);
  }
  working = false;
}

/** Makes one write, within the transaction. */
function make({ sql, rows, before }: Write): WriteResult {
  const [first = {}] = rows;
  const found = before === undefined ? undefined : prepare(before).get(first);
  return { changes: rows.reduce((sum, row) => sum + Number(prepare(sql).run(row).changes), 0), before: found };
}

function commit(batch: readonly Order[]): void {
  try {
    const results: (readonly [Order, WriteResult])[] = batch.map((order) => [order, make(order.write)]);
    connection.exec('COMMIT');
    // A write is made if whoever opens the path finds it there.
    if (identityOf(file) !== identity) {
      acknowledge(batch, { kind: 'unconfirmed', message: `${file} was replaced` });
      return;
    }
    for (const [order, result] of results) acknowledge([order], { kind: 'done', result });
  } catch (error) {
    // No write of the batch was made, since a transaction is all or nothing.
    if (connection.isTransaction) connection.exec('ROLLBACK');
    // The reserve serves writes that make room and those that keys need, and no others.
    if (isFull(error)) makeUrgent(batch, error);
    else acknowledge(batch, failure(error));
    return;
  }
  if (sharedNow() - reservedAt < RESERVE_INTERVAL) return;
  reservedAt = sharedNow();
  reserve.keep();
}

/**
 * Refuses the writes of a batch that only take room, and puts the others first in the queue again: they may fit by
 * themselves, and if not, then in place of the reserve.
 */
function makeUrgent(batch: readonly Order[], full: unknown): void {
  const { growing = [], urgent = [] } = Object.groupBy(batch, ({ write }) => (write.grows ? 'growing' : 'urgent'));
  acknowledge(growing, failure(full));
  if (growing.length > 0 || reserve.giveUp()) orders.unshift(...urgent);
  else acknowledge(urgent, failure(full));
}

function failure(error: unknown): Acknowledgement['outcome'] {
  const known = sqliteFailure(error);
  return { kind: known instanceof StoreCorrupt ? 'corrupt' : 'unavailable', message: String(error) };
}

function acknowledge(batch: readonly Order[], outcome: Acknowledgement['outcome']): void {
  for (const { number } of batch) port?.postMessage({ number, outcome } satisfies Acknowledgement);
}
