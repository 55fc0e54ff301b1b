/**
 * D6: tries to learn from times which choices somebody has. A victim stores choices in a private catalog; an attacker
 * asks for decisions with a guess among the choices and sorts the guesses by how long they took. Every phrase is
 * guessed twice, with two numbers of equally many tokens after it, one of which is stored and the other not, so that
 * the two guesses differ in nothing else.
 */
import type { Agent } from 'node:http';
import { ask, decisionText, keptAgent } from './calls.ts';
import type { Scene, Shown } from './shown.ts';

const ADJECTIVES = ['secret', 'final', 'early', 'hidden', 'major', 'silent', 'double', 'northern', 'former', 'urgent'];
const NOUNS = ['merger', 'lawsuit', 'layoff', 'recall', 'patent', 'audit', 'strike', 'breach', 'bonus', 'closure'];
const PHRASES = ADJECTIVES.flatMap((adjective) => NOUNS.map((noun) => `${adjective} ${noun} of the whole company`));
/** Requests with one guess. */
const REPEATED = 3;

/** A guess, and whether it is right. */
export interface Guess {
  readonly text: string;
  readonly stored: boolean;
}

/**
 * 200 guesses in random order: each phrase with the numbers `first` and `first + 1`, one of them stored and one not,
 * and each number as often stored as not.
 */
export function makeGuesses(first: number, random: () => number = Math.random): Guess[] {
  const storedFirst = new Set(shuffled(PHRASES, random).slice(0, PHRASES.length / 2));
  const guesses = PHRASES.flatMap((phrase) => [
    { text: `${phrase} ${first}`, stored: storedFirst.has(phrase) },
    { text: `${phrase} ${first + 1}`, stored: !storedFirst.has(phrase) },
  ]);
  return shuffled(guesses, random);
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const keyed = list.map((item) => ({ item, at: random() }));
  return keyed.toSorted((a, b) => a.at - b.at).map(({ item }) => item);
}

/**
 * How well times tell what is stored: the share of pairs, one stored and one not, in which the stored one took less
 * (ties count half). 0.5 is chance; `chance` is three standard deviations of the share if nothing can be told (Mann and
 * Whitney).
 */
export function toldApart(stored: readonly number[], others: readonly number[]): { share: number; chance: number } {
  let less = 0;
  for (const a of stored) for (const b of others) less += a < b ? 1 : a === b ? 0.5 : 0;
  const [n, m] = [stored.length, others.length];
  return { share: less / (n * m), chance: 3 * Math.sqrt((n + m + 1) / (12 * n * m)) };
}

interface Guesser {
  readonly port: number;
  readonly agent: Agent;
  readonly key?: string;
}

/** Milliseconds of one request with a guess: those of the engine, by `Server-Timing`, or of the whole request. */
async function timeOf({ port, agent, key }: Guesser, text: string): Promise<number> {
  const body = decisionText({ input: 'hello', instruction: 'Which?', choices: [text, 'aa', 'bb'] });
  const { status, ms, headers } = await ask(port, { body, agent, ...(key === undefined ? {} : { key }) });
  if (status !== 200) return Number.NaN;
  const infer = /infer;dur=([\d.]+)/.exec(String(headers['server-timing'] ?? ''))?.[1];
  return infer === undefined ? ms : Number(infer);
}

/** Tries every guess `REPEATED` times. */
async function guessAll(guesser: Guesser, guesses: readonly Guess[]): Promise<Shown> {
  const times: { readonly stored: boolean; readonly first: number; readonly all: number }[] = [];
  for (const { text, stored } of guesses) {
    const took: number[] = [];
    for (let round = 0; round < REPEATED; round += 1) took.push(await timeOf(guesser, text));
    const all = took.reduce((sum, ms) => sum + ms, 0);
    if (!Number.isNaN(all)) times.push({ stored, first: took[0] as number, all });
  }
  const of = (which: 'first' | 'all') =>
    toldApart(
      times.filter(({ stored }) => stored).map((time) => time[which]),
      times.filter(({ stored }) => !stored).map((time) => time[which]),
    );
  const [first, all] = [of('first'), of('all')];
  const told = [first, all].some(({ share, chance }) => !(Math.abs(share - 0.5) <= chance));
  return {
    figure: `${first.share.toFixed(2)} by the first request, ${all.share.toFixed(2)} by all ${REPEATED} (chance 0.50 ± ${first.chance.toFixed(2)}, ${times.length} guesses)`,
    defect: told,
  };
}

/** D6: guesses without a key, and with the key of another owner. */
export async function showOracle({ target }: Scene): Promise<Shown> {
  const { port } = target;
  const agent = keptAgent();
  const victim = await target.issueKey('victim');
  const attacker = await target.issueKey('attacker');
  const parts: string[] = [];
  let defect = false;
  try {
    for (const [who, first, key] of [
      ['without a key', 1, undefined],
      ["with another owner's key", 3, attacker],
    ] as const) {
      const guesses = makeGuesses(first);
      const choices = guesses.filter(({ stored }) => stored).map(({ text }) => text);
      const body = JSON.stringify({ id: `private-${first}`, model: 'minilm-l6', choices });
      const { status } = await ask(port, { path: '/v1/catalogs', key: victim, body, from: '127.0.0.3' });
      if (status !== 201) return { figure: `the catalog was not made: ${status}`, defect: true };
      const guesser = { port, agent, ...(key === undefined ? {} : { key }) };
      for (let warm = 0; warm < 5; warm += 1) await timeOf(guesser, `warm ${who}`);
      const shown = await guessAll(guesser, guesses);
      parts.push(`${who} ${shown.figure}`);
      defect ||= shown.defect;
    }
  } finally {
    agent.destroy();
  }
  return { figure: `stored ones took less in this share of pairs: ${parts.join('; ')}`, defect };
}
