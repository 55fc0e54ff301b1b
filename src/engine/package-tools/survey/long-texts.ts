/**
 * What a server does with a text that is too long. Two texts are sent whose first halves are alike and whose second
 * halves say different things: one that reads them whole says different numbers, one that cuts says the same. They grow
 * until the server refuses or cuts.
 */

/** What became of the texts. Words, each of which is a token or more. */
export type LongTexts =
  /** `accepted`: of the longest text that was not refused; 0 if there is none. `limit`: tokens, as the server says. */
  | { readonly kind: 'refused'; readonly accepted: number; readonly limit: number | undefined }
  | { readonly kind: 'cut'; readonly words: number }
  /** All were read whole; `slow`: longer ones took too much time. */
  | { readonly kind: 'read'; readonly words: number; readonly slow: boolean };

/** What the server said of a text. */
export type LongAnswer =
  | { readonly kind: 'numbers'; readonly numbers: readonly number[] }
  | { readonly kind: 'refused'; readonly limit: number | undefined }
  | { readonly kind: 'slow' };

/** What the second halves say, over and over. */
export const SAYINGS = ['alpha', 'omega'] as const;

/** What fills the first. */
const FILLER = 'a';
const FIRST = 16;
/** As many as any model is used for here; twice as many again are not worth what they cost at a server that charges. */
const LAST = 16_384;
const HALVINGS = 3;
/** A server that takes so long over a text of so many words is not asked for a longer one. Milliseconds. */
const SLOW = 700;
const ENOUGH = 1024;

/**
 * Sends texts. `known`: the server's limit in tokens, if it says one. `tolerance`: numbers that differ by less are the
 * same. Rejects with what `ask` does.
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

/** Doubling; where a limit is known, the first whose half is beyond it is the last. */
function sizes(known: number | undefined): readonly number[] {
  const all: number[] = [];
  for (let words = FIRST; words <= LAST; words *= 2) {
    all.push(words);
    if (known !== undefined && words / 2 > known) break;
  }
  return known === undefined ? all : all.slice(-2);
}

/** How much of what lies between two lengths, one accepted and one refused, is accepted: to an eighth of it. */
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
