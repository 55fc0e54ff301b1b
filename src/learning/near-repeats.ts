/**
 * Finds examples that are nearly the same text: another greeting, a signature, a reply with what it replies to. Held
 * out on their own, such twins would be decided by each other, and what is said of new texts would be too good.
 *
 * Texts are compared by their pairs of neighbouring words. A pair counts the more the rarer it is among all texts, so
 * that a signature which many texts share makes no twins of them.
 */

/** The share of the rarer text's weight from which two texts are nearly the same. */
const NEARLY = 0.7;
/** Of the texts that have a pair of words, how many a text is compared with: the first of a group is among them. */
const MOST_TEXTS = 24;

/**
 * The place of the first text that each is nearly the same as, itself if there is none before it. Texts with different
 * labels are never taken for the same: the difference may be a `not`. Linear in the number of words.
 */
export function firstOfEach(texts: readonly { readonly input: string; readonly label: string }[]): readonly number[] {
  const pairs = texts.map(({ input }) => pairsOf(input));
  const holders = new Map<string, number[]>();
  for (const [place, each] of pairs.entries()) {
    for (const pair of each) {
      const known = holders.get(pair);
      if (known === undefined) holders.set(pair, [place]);
      else known.push(place);
    }
  }
  const weightOf = (pair: string): number => Math.log((texts.length + 1) / (holders.get(pair) as number[]).length);
  const weights = pairs.map((each) => [...each].reduce((sum, pair) => sum + weightOf(pair), 0));
  const first: number[] = [];
  for (const [place, each] of pairs.entries()) {
    const shared = new Map<number, number>();
    for (const pair of each) {
      for (const other of (holders.get(pair) as number[]).slice(0, MOST_TEXTS)) {
        if (other >= place) break;
        shared.set(other, (shared.get(other) ?? 0) + weightOf(pair));
      }
    }
    const twin = [...shared].find(([other, weight]) => {
      const least = Math.min(weights[place] as number, weights[other] as number);
      return weight >= NEARLY * least && texts[other]?.label === texts[place]?.label;
    });
    first.push(twin === undefined ? place : (first[twin[0]] as number));
  }
  return first;
}

/** Runs of letters and digits, single ones in scripts that put no spaces between words. */
const WORDS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]|[\p{L}\p{N}]+/gu;

/** Neighbouring words without case and punctuation; of a text with one word or none, that alone. */
function pairsOf(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(WORDS) ?? [text];
  if (words.length === 1) return new Set(words);
  return new Set(words.slice(1).map((word, place) => `${words[place]} ${word}`));
}
