/**
 * Finds out what a server does with a text that is too long. Two texts are sent whose first halves are alike and whose
 * second halves say different things: a server that reads them whole returns different numbers, one that cuts returns
 * the same. They grow until the server refuses or cuts.
 */

/** What became of the texts. Their lengths are in words, each of which is a token or more. */
export type LongTexts =
  /**
   * `accepted`: the length of the longest text that was not refused; 0 if there is none. `limit`: tokens, as the server
   * says.
   */
  | { readonly kind: 'refused'; readonly accepted: number; readonly limit: number | undefined }
  | { readonly kind: 'cut'; readonly words: number }
  /** All were read whole; `slow`: longer ones took too much time. */
  | { readonly kind: 'read'; readonly words: number; readonly slow: boolean };

/** What the server said to a text. */
export type LongAnswer =
  | { readonly kind: 'numbers'; readonly numbers: readonly number[] }
  | { readonly kind: 'refused'; readonly limit: number | undefined }
  | { readonly kind: 'slow' };

/** What the second halves say, over and over. */
export const SAYINGS = ['alpha', 'omega'] as const;

/** The word that fills the first halves. */
const FILLER = 'a';
const FIRST = 16;
/**
 * The longest text that is tried: as long as any model is used for here. Twice as long would not be worth its price at
 * a server that charges.
 */
const LAST = 16_384;
const HALVINGS = 3;
/**
 * A server that takes more than `SLOW` milliseconds over a text of at least `ENOUGH` words is not asked for a longer
 * one.
 */
const SLOW = 700;
const ENOUGH = 1024;

/**
 * Sends texts until one is refused or cut. `known`: the server's limit in tokens, if it says one. `tolerance`: numbers
 * that differ by no more are the same. Rejects with what `ask` does.
 */
export async function tryLongTexts(
  ask: (text: string) => Promise<LongAnswer>,
  { known, tolerance }: { readonly known: number | undefined; readonly tolerance: number },
): Promise<LongTexts> {
  let accepted = 0;
  for (const words of sizes(known)) {
    const answers: LongAnswer[] = [];
    const began = performance.now();
    for (const saying of SAYINGS) {
      const answer = await ask(textOf(words, saying));
      if (answer.kind === 'refused') {
        const limit = answer.limit ?? known;
        return {
          kind: 'refused',
          accepted: limit === undefined ? await between(accepted, words, ask) : accepted,
          limit,
        };
      }
      if (answer.kind === 'slow') return { kind: 'read', words: accepted, slow: true };
      answers.push(answer);
    }
    const [one, other] = answers.map((answer) => (answer.kind === 'numbers' ? answer.numbers : []));
    if (alike(one ?? [], other ?? [], tolerance)) return { kind: 'cut', words };
    accepted = words;
    if (words >= ENOUGH && performance.now() - began > SAYINGS.length * SLOW)
      return { kind: 'read', words, slow: true };
  }
  return { kind: 'read', words: accepted, slow: false };
}

/** The lengths to try: doubling, or, where a limit is known, the last two up to the first whose half is beyond it. */
function sizes(known: number | undefined): readonly number[] {
  const all: number[] = [];
  for (let words = FIRST; words <= LAST; words *= 2) {
    all.push(words);
    if (known !== undefined && words / 2 > known) break;
  }
  return known === undefined ? all : all.slice(-2);
}

/** The longest length that is accepted, between one that was and one that was not: to an eighth of their distance. */
async function between(accepted: number, refused: number, ask: (text: string) => Promise<LongAnswer>): Promise<number> {
  let [low, high] = [accepted, refused];
  for (let halving = 0; halving < HALVINGS; halving++) {
    const words = (low + high) / 2;
    const answer = await ask(textOf(words, SAYINGS[0]));
    if (answer.kind === 'numbers') low = words;
    else high = words;
  }
  return low;
}

function textOf(words: number, saying: string): string {
  const half = Math.floor(words / 2);
  return `${`${FILLER} `.repeat(half)}${`${saying} `.repeat(half)}`.trimEnd();
}

function alike(one: readonly number[], other: readonly number[], tolerance: number): boolean {
  return one.length === other.length && one.every((value, i) => Math.abs(value - (other[i] as number)) <= tolerance);
}
