/** Decided texts, as `decide` and `teach` write them. */
import { questionOf, type Reading, recordsOf } from '../decide/records.ts';

/** A decided text. */
export interface Decided {
  readonly input: string;
  /** `''` if it has none. */
  readonly instruction: string;
  readonly choice: string;
  /** Of the choice and, as far as the file says, of others. */
  readonly probabilities: ReadonlyMap<string, number>;
  /** What was decided and by whom, for a person. */
  readonly decision: string;
  /** Whether a teacher decided, and the catalog's own model otherwise. */
  readonly isDisputed: boolean;
}

/** The decided texts of a file, each once, the least sure first; and how many records have no answer. */
export function decidedIn(
  content: string,
  reading: Reading,
): { readonly texts: readonly Decided[]; readonly others: number } {
  const { entries } = recordsOf(content, reading.separator);
  const found = entries.flatMap(({ read }): (Decided & { readonly confidence: number })[] => {
    const value = 'value' in read ? read.value : {};
    const { input, instruction = '' } = questionOf(value, reading);
    const { choice, model = '' } = value;
    const confidence = Number(value.confidence);
    const isDecided = typeof input === 'string' && typeof choice === 'string' && choice !== '';
    if (!isDecided || !(confidence >= 0 && confidence <= 1)) return [];
    const others = Object.entries(objectOf(value.probabilities)).map(([name, p]) => [name, Number(p)] as const);
    const pupil = objectOf(value.pupil);
    const by = model === '' ? '' : ` by ${model}`;
    const second = pupil.choice === undefined ? '' : `; the catalog: ${pupil.choice} ${shareOf(pupil.confidence)}`;
    return [
      {
        ...{ input, instruction: String(instruction), choice, confidence },
        probabilities: new Map([[choice, confidence], ...others]),
        decision: `Decided: ${choice} ${shareOf(confidence)}${by}${second}`,
        isDisputed: (pupil.choice ?? choice) !== choice,
      },
    ];
  });
  const sorted = found.toSorted((a, b) => a.confidence - b.confidence);
  const texts = [...new Map(sorted.map((text) => [keyOf(text), text])).values()];
  return { texts, others: entries.length - found.length };
}

/** An object of JSON; cells of CSV hold it as text. */
function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  try {
    return Object(typeof value === 'string' ? JSON.parse(value) : value);
  } catch {
    return {};
  }
}

/** A probability for a person. */
export function shareOf(probability: unknown): string {
  return Number(probability).toFixed(3);
}

/** What tells texts apart. */
export function keyOf({ input, instruction }: Pick<Decided, 'input' | 'instruction'>): string {
  return JSON.stringify([instruction, input]);
}
