/**
 * Decided texts on their way to a person's labels, the least sure first. Labels go to a file of JSON lines as they are
 * given, `{"input", "instruction"?, "label", "note"?}`, from which `umpire learn` reads examples, and a later review
 * what is done.
 */
import { truncateSync } from 'node:fs';
import { addedTo, addTo, type recordOptions, recordsOf, sizeOf } from '../decide/records.ts';

/** A decided text. */
export interface Decided {
  readonly input: string;
  /** Undefined if the file has none. */
  readonly instruction: string | undefined;
  readonly choice: string;
  readonly confidence: number;
  /** Of some choices, or of all. */
  readonly probabilities: Readonly<Record<string, number>>;
  /** Who decided. */
  readonly model: string;
  /** What the catalog's own model said where a teacher decided. */
  readonly pupil: { readonly choice: string; readonly confidence: number } | undefined;
}

/** How a file of decided texts is read. `instruction`: of texts that have none. */
export type DecidedOptions = ReturnType<typeof recordOptions> & { readonly instruction: string | undefined };

/** The decided texts of a file, each once, the least sure first; and how many records have no answer. */
export function decidedIn(
  content: string,
  { separator, fields, instruction }: DecidedOptions,
): { readonly texts: readonly Decided[]; readonly others: number } {
  const { entries } = recordsOf(content, separator);
  const found = entries.flatMap(({ read }): Decided[] => {
    const { [fields.input]: input, [fields.instruction]: own, ...value } = 'value' in read ? read.value : {};
    const { choice, model = '' } = value;
    const confidence = Number(value.confidence);
    const isDecided = typeof input === 'string' && typeof choice === 'string' && choice !== '';
    if (!isDecided || !(confidence >= 0 && confidence <= 1)) return [];
    const asked = typeof own === 'string' && own !== '' ? own : instruction;
    const pupil = objectOf(value.pupil);
    return [
      {
        ...{ input, choice, confidence, instruction: asked, model: String(model) },
        probabilities: objectOf(value.probabilities) as Record<string, number>,
        pupil: typeof pupil.choice === 'string' ? (pupil as unknown as Decided['pupil']) : undefined,
      },
    ];
  });
  const sorted = found.toSorted((a, b) => a.confidence - b.confidence);
  return {
    texts: [...new Map(sorted.map((text) => [keyOf(text), text])).values()],
    others: entries.length - found.length,
  };
}

/** An object of JSON; cells of CSV hold it as text. */
function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  try {
    const object: unknown = typeof value === 'string' ? JSON.parse(value) : value;
    return typeof object === 'object' && object !== null ? (object as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

/** A step that can be undone. `size`: bytes of the file before and after a label. */
interface Step {
  readonly size: readonly [before: number, after: number] | undefined;
}

/** The texts that are left, one of them at hand. */
export class Deck {
  readonly file: string;
  readonly #texts: readonly Decided[];
  readonly #steps: Step[] = [];
  /** Texts that had a label before. */
  readonly #before: number;

  private constructor(file: string, texts: readonly Decided[], before: number) {
    this.file = file;
    this.#texts = texts;
    this.#before = before;
  }

  /** The texts that have no label in the file yet. Throws Error for a file with a line that is no label. */
  static async open(file: string, texts: readonly Decided[]): Promise<Deck> {
    const done = new Set<string>();
    for await (const { line, value } of addedTo(file)) {
      const { input, instruction, label } = value as Partial<Record<string, string>>;
      if (input === undefined || label === undefined) throw new Error(`${file}, line ${line}: is not a label`);
      done.add(keyOf({ input, instruction }));
    }
    const left = texts.filter((text) => !done.has(keyOf(text)));
    return new Deck(file, left, texts.length - left.length);
  }

  /** The text at hand; undefined when none is left. */
  get text(): Decided | undefined {
    return this.#texts[this.#steps.length];
  }

  /** The number of the text at hand, that of all, and how many have a label and how many were skipped. */
  get counts() {
    const skipped = this.#steps.filter(({ size }) => size === undefined).length;
    const done = this.#before + this.#steps.length;
    return { place: done + 1, all: this.#before + this.#texts.length, labelled: done - skipped, skipped };
  }

  /** Gives the text at hand its label, and goes on. */
  label(label: string, note: string): void {
    const { input, instruction } = this.text as Decided;
    const fields = { input, instruction, label, ...(note === '' ? {} : { note }) };
    this.#steps.push({ size: addTo(this.file, fields) });
  }

  /** Goes on without a label: the text comes again in a later review. */
  skip(): void {
    this.#steps.push({ size: undefined });
  }

  /** Goes back by a text, and takes its label away. Returns why that cannot be, if it cannot. */
  undo(): string | undefined {
    const step = this.#steps.at(-1);
    if (step === undefined) return 'there is nothing to undo';
    const [before, after] = step.size ?? [];
    if (after !== undefined && sizeOf(this.file) !== after) return `${this.file} was changed by another program`;
    if (before !== undefined) truncateSync(this.file, before);
    this.#steps.pop();
    return undefined;
  }
}

function keyOf({ input, instruction }: { readonly input: string; readonly instruction?: string | undefined }): string {
  return JSON.stringify([instruction, input]);
}
