/**
 * Decided texts, as `decide` and `teach` write them, on their way to a person's labels. Labels go to a file of JSON
 * lines as they are given, `{"input", "instruction"?, "label", "note"?}`, from which `umpire learn` reads examples, and
 * a later review what is done. What a person may answer is the same on a page and line by line.
 */
import { truncateSync } from 'node:fs';
import { messageOf } from '../../engine/errors.ts';
import { plainly } from '../decide/decide.ts';
import { addedTo, addTo, questionOf, type Reading, recordsOf, sizeOf } from '../decide/records.ts';

/** A choice of the text at hand. */
export interface Offered {
  /** The key that answers it, if it has one. */
  readonly key: string | undefined;
  readonly choice: string;
  /** Undefined if the file does not say. */
  readonly probability: number | undefined;
}

/** Keys of choices, in their order. */
const KEYS = [...'1234567890abcdefghijklmnopqrstuvwxyz'];
/** Choices that are named, at most, where an answer may mean several. */
const MOST_NAMED = 9;

/** The texts that are left, one of them at hand. */
export class Deck {
  readonly #file: string;
  readonly #texts: readonly Decided[];
  readonly #choices: readonly string[];
  /** Texts that had a label before. */
  readonly #before: number;
  /** Where the label of each text that is done begins and ends in the file; undefined if it was skipped. */
  readonly #done: (ReturnType<typeof addTo> | undefined)[] = [];
  /** Of the next label. */
  #note = '';

  private constructor(file: string, texts: readonly Decided[], choices: readonly string[], before: number) {
    this.#file = file;
    this.#texts = texts;
    this.#choices = choices;
    this.#before = before;
  }

  /**
   * The texts that have no label in the file yet. `choices`: in code-unit order. Throws Error for a file with a line
   * that is no label.
   */
  static async open(file: string, texts: readonly Decided[], choices: readonly string[]): Promise<Deck> {
    const done = new Set<string>();
    for await (const { line, value } of addedTo(file)) {
      const { input, instruction = '', label } = value as Partial<Record<string, string>>;
      if (input === undefined || label === undefined) throw new Error(`${file}, line ${line}: is not a label`);
      done.add(keyOf({ input, instruction }));
    }
    const left = texts.filter((text) => !done.has(keyOf(text)));
    return new Deck(file, left, choices, texts.length - left.length);
  }

  /** The text at hand; undefined when none is left. */
  get text(): Decided | undefined {
    return this.#texts[this.#done.length];
  }

  /** How much is done, in a line. */
  get progress(): string {
    const skipped = this.#done.filter((label) => label === undefined).length;
    const labelled = this.#before + this.#done.length - skipped;
    return `${labelled} of ${this.#before + this.#texts.length} have a label, ${skipped} skipped`;
  }

  /**
   * All choices, the likeliest first, with keys that are the same for every text; of more choices than there are keys,
   * the likeliest have them. A choice whose name is a key has that one.
   */
  get choices(): readonly Offered[] {
    const all = this.#choices.map((choice) => ({ choice, probability: this.text?.probabilities.get(choice) }));
    const sorted = all.toSorted((a, b) => (b.probability ?? -1) - (a.probability ?? -1));
    const free = KEYS.filter((key) => !this.#choices.includes(key)).values();
    const first = all.length > KEYS.length ? sorted : all;
    const keys = new Map(first.map(({ choice }) => [choice, KEYS.includes(choice) ? choice : free.next().value]));
    return sorted.map((each) => ({ ...each, key: keys.get(each.choice) }));
  }

  /** The choices that a name may mean: the one of that name, or those that begin with it, or those that have it. */
  find(name: string): readonly Offered[] {
    const sought = plainly(name);
    const { choices } = this;
    const same = choices.filter(({ choice }) => choice === name);
    const begin = choices.filter(({ choice }) => plainly(choice).startsWith(sought));
    const hold = choices.filter(({ choice }) => plainly(choice).includes(sought));
    return [same, begin, hold].find((some) => some.length > 0) ?? [];
  }

  /**
   * Takes an answer to the text at hand: a key, nothing for what was decided, `-` to skip, `<` to go back, `+` with a
   * note, or the name of a choice, before which a `/` may stand. Returns `''` once another text is at hand, or else
   * what is to be said.
   */
  answer(typed: string): string {
    const text = this.text as Decided;
    const keyed = this.choices.find(({ key }) => key === typed);
    try {
      if (typed === '<') return this.#undo();
      if (typed === '') return this.#label(text, text.choice);
      if (keyed !== undefined) return this.#label(text, keyed.choice);
      if (typed === '-') return this.#goOn(undefined);
      if (typed.startsWith('+')) {
        this.#note = typed.slice(1).trim();
        return `Note: ${this.#note}`;
      }
      const [first, ...others] = this.find(typed.replace(/^\//, '')).map(({ choice }) => choice);
      if (first === undefined) return 'No choice is like that';
      if (others.length === 0) return this.#label(text, first);
      return `That may be ${[first, ...others].slice(0, MOST_NAMED).join(', ')}`;
    } catch (error) {
      // The file cannot be written: the text stays at hand.
      return messageOf(error);
    }
  }

  #label({ input, instruction }: Decided, label: string): string {
    const fields = { input, instruction: instruction || undefined, label, note: this.#note || undefined };
    return this.#goOn(addTo(this.#file, fields));
  }

  #goOn(label: ReturnType<typeof addTo> | undefined): string {
    this.#done.push(label);
    this.#note = '';
    return '';
  }

  /** Takes the last label away, unless another program has added to the file. */
  #undo(): string {
    if (this.#done.length === 0) return 'There is nothing to undo';
    const [begin, end] = this.#done.at(-1) ?? [];
    if (end !== undefined && sizeOf(this.#file) !== end) return `${this.#file} was changed by another program`;
    if (begin !== undefined) truncateSync(this.#file, begin);
    this.#done.pop();
    this.#note = '';
    return '';
  }
}

/** A choice with its key, for a person. */
export function offerOf({ key, choice, probability }: Offered): string {
  return `${key ?? ' '} ${choice} ${probability === undefined ? '' : shareOf(probability)}`.trimEnd();
}

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
function shareOf(probability: unknown): string {
  return Number(probability).toFixed(3);
}

/** What tells texts apart. */
function keyOf({ input, instruction }: Pick<Decided, 'input' | 'instruction'>): string {
  return JSON.stringify([instruction, input]);
}
