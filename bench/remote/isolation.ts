/**
 * How much a remote model in trouble slows a local one down: the local model makes decisions one after another, in
 * turns alone and beside eight callers of the remote model, whose server hangs.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import type { DecisionServer } from './decision-server.ts';

/** What is measured, and for how long. */
export interface IsolationOptions {
  readonly url: string;
  readonly server: DecisionServer;
  readonly choices: readonly string[];
  readonly rounds: number;
  /** The length of each turn. */
  readonly seconds: number;
}

/** The status of an answer, and the milliseconds that its Retry-After names. */
interface Decided {
  readonly status: number;
  readonly retryAfter: number;
}

/** Callers of the remote model. */
const CALLERS = 8;
/** Milliseconds between two decisions of one caller. */
const PAUSE = 10;
/** Milliseconds in which the remote model must serve again. */
const PATIENCE = 30_000;

/** Measures and prints a table. Both turns of a round follow each other, so that they see the same machine. */
export async function measureIsolation({ url, server, choices, rounds, seconds }: IsolationOptions): Promise<void> {
  const alone: number[] = [];
  const beside: number[] = [];
  const statuses = new Map<number, number>();
  const decide = async (model: string, input: string): Promise<Decided> => {
    const body = JSON.stringify({ model, input, instruction: 'What does the customer want?', choices });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/v1/decisions`, { method: 'POST', headers, body });
    await response.arrayBuffer();
    return { status: response.status, retryAfter: 1000 * Number(response.headers.get('retry-after') ?? 0) };
  };
  const turn = async (samples: number[]): Promise<void> => {
    for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
      const began = performance.now();
      const { status } = await decide('minilm-l6', 'my card was not accepted at the shop');
      if (status !== 200) throw new Error(`the local model answered ${status}`);
      samples.push(performance.now() - began);
      await delay(PAUSE);
    }
  };
  const whileHanging = async (work: () => Promise<void>): Promise<void> => {
    let done = false;
    server.hang(true);
    const callers = Array.from({ length: CALLERS }, async () => {
      while (!done) {
        const { status, retryAfter } = await decide('shortlisted', 'where is my card');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        // Clients respect Retry-After.
        await delay(status === 503 ? retryAfter : PAUSE);
      }
    });
    await work();
    done = true;
    server.hang(false);
    await Promise.all(callers);
    const end = performance.now() + PATIENCE;
    while ((await decide('shortlisted', 'where is my card')).status !== 200) {
      if (performance.now() > end) throw new Error('the remote model does not come back');
      await delay(100);
    }
  };
  // The first decision is not measured.
  await decide('minilm-l6', 'hello');
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) {
      await turn(alone);
      await whileHanging(() => turn(beside));
    } else {
      await whileHanging(() => turn(beside));
      await turn(alone);
    }
  }
  const row = (name: string, samples: readonly number[]): readonly string[] => [
    name,
    String(samples.length),
    ...[median(samples), quantile(samples, 0.9), quantile(samples, 0.99)].map((each) => each.toFixed(1)),
  ];
  printTable(
    ['decisions of minilm-l6', 'n', 'p50, ms', 'p90, ms', 'p99, ms'],
    [row('alone', alone), row(`beside ${CALLERS} callers of a remote model that hangs`, beside)],
  );
  const ratio = (q: number): string => (quantile(beside, q) / quantile(alone, q)).toFixed(2);
  console.log(`\np99: ${ratio(0.99)} times, p50: ${ratio(0.5)} times; at most 1.2`);
  console.log(
    `what callers of the remote model got: ${[...statuses].map(([status, n]) => `${n} × ${status}`).join(', ')}`,
  );
}
