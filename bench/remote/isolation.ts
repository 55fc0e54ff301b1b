/**
 * What a remote model in trouble takes from a local one: the local model's decisions, one after another, in turns
 * without callers of the remote model and with eight of them while its server hangs.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import type { DecisionServer } from './decision-server.ts';

/** How it is measured. */
export interface IsolationOptions {
  readonly url: string;
  readonly server: DecisionServer;
  readonly choices: readonly string[];
  readonly rounds: number;
  /** Of each turn. */
  readonly seconds: number;
}

/** What became of a decision; milliseconds until it may be asked again. */
interface Decided {
  readonly status: number;
  readonly retryAfter: number;
}

const CALLERS = 8;
/** Between two decisions of one caller. Milliseconds. */
const PAUSE = 10;
/** How long the remote model may take to serve again. Milliseconds. */
const PATIENCE = 30_000;

/** Prints a table; both figures of a round are of the same minute. */
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
        // As clients do that are told when to come back.
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
  // Neither is measured before it has decided.
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
