/**
 * How the effect of attacks grows with their size: of D2 and D3 with the bytes of a body, of D4, D5 and D7 with
 * connections.
 */
import { ATTACKS } from './attacks.ts';
import { COSTLY_BODIES } from './bodies.ts';
import { ask } from './calls.ts';
import { openUnread, storeLargeCatalog } from './holding.ts';
import { startNeighbour } from './neighbour.ts';
import { sleep } from './shown.ts';
import { startTarget, type Target } from './target.ts';

/** Bytes of the bodies: up to the most that a body may have. */
export const BODY_SIZES = [1 << 16, 1 << 18, 1 << 20];
/** Numbers of connections. */
const CONNECTIONS = [10, 100, 1000];
/** Seconds that connections are held. */
const HELD = 5;
/** Seconds after the connections are gone at which the memory is measured again. */
const AFTER = 10;
/** Milliseconds that a service gets to end by itself. */
const PATIENCE = 5_000;

/** What one body of a size cost. */
export interface BodyGrowth {
  readonly size: number;
  /** Milliseconds until one such body by itself was answered, the median of the rounds. */
  readonly ms: number;
  /** The status of that answer. */
  readonly status: number;
  /** Engine processes killed so far. */
  readonly killed: number;
}

/** Sends bodies of each size, one at a time, to one service. */
export async function measureBodies(kind: keyof typeof COSTLY_BODIES, checkout: string): Promise<BodyGrowth[]> {
  const target = await startTarget(checkout);
  const grown: BodyGrowth[] = [];
  try {
    for (const size of BODY_SIZES) {
      const answers = [];
      // A body that takes seconds is not repeated.
      for (let round = 0; round < 3 && (answers[0]?.ms ?? 0) < 1000; round += 1)
        answers.push(await ask(target.port, { body: COSTLY_BODIES[kind](size) }));
      const sorted = answers.toSorted((a, b) => a.ms - b.ms);
      const { ms, status } = sorted[Math.floor(sorted.length / 2)] as (typeof sorted)[number];
      grown.push({ size, ms, status, killed: target.log().split('it made no progress').length - 1 });
    }
  } finally {
    await target.stop(PATIENCE);
  }
  return grown;
}

/** What a number of connections cost. */
export interface Growth {
  readonly connections: number;
  /** MiB of the serving process: before, while the connections are held, and ten seconds after they are gone. */
  readonly memory: readonly [before: number, held: number, after: number];
  /** The neighbour's decisions while the connections are held; `after`: 8 to 10 s after they are gone. */
  readonly held: string;
  readonly after: string;
  /** The neighbour's longest time without an answer while the connections are held, milliseconds. */
  readonly gap: number;
  /** Whether decisions were not answered 8 to 10 s after they are gone. */
  readonly refused: boolean;
}

type Hold = (target: Target, count: number, key: string) => Promise<unknown>;

/** The functions that hold so many connections for `HELD` seconds. */
const HOLDS: Readonly<Record<'D4' | 'D5' | 'D7', Hold>> = {
  D4: (target, count) => ATTACKS.watches?.(target, HELD, count, 30) as Promise<string>,
  D5: (target, count) => ATTACKS['connections-kept']?.(target, HELD, count) as Promise<string>,
  async D7(target, count, key) {
    const leave = openUnread(target.port, key, count);
    await sleep(HELD * 1000);
    leave();
  },
};

/** Holds 10, 100 and 1,000 connections, one number after another, against one service. */
export async function measureConnections(kind: keyof typeof HOLDS, checkout: string): Promise<Growth[]> {
  const target = await startTarget(checkout);
  const neighbour = startNeighbour(target, 50);
  const grown: Growth[] = [];
  try {
    const key = kind === 'D7' ? await target.issueKey('reader') : '';
    if (kind === 'D7') await storeLargeCatalog(target.port, key);
    await sleep(2000);
    for (const connections of CONNECTIONS) {
      const before = target.memory() ?? Number.NaN;
      let most = before;
      const look = setInterval(() => {
        most = Math.max(most, target.memory() ?? 0);
      }, 100);
      neighbour.read();
      await HOLDS[kind](target, connections, key);
      clearInterval(look);
      const { decisions: held } = neighbour.read();
      await sleep((AFTER - 2) * 1000);
      neighbour.read();
      await sleep(2000);
      const { decisions: after } = neighbour.read();
      grown.push({
        connections,
        memory: [before, most, target.memory() ?? Number.NaN],
        held: `${held.answered}/${held.asked}, p99 ${held.p99.toFixed(0)} ms, gap ${(held.gap / 1000).toFixed(1)} s`,
        after: `${after.answered}/${after.asked}`,
        gap: held.gap,
        refused: after.answered < after.asked,
      });
    }
  } finally {
    await neighbour.stop();
    await target.stop(PATIENCE);
  }
  return grown;
}
