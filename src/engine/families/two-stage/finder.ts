/** Scores how much each segment of a long text matters to the question. Trained by `training/two_stage/finder.py`. */
import { Checker, InvalidOptions } from '../../packages/manifest.ts';
import { dot } from '../vectors.ts';

/**
 * What is known about a long text: the vectors of its segments and of the instruction, and each segment's cosines with
 * every choice.
 */
export interface FinderView {
  readonly segments: readonly Float32Array[];
  readonly instruction: Float32Array;
  readonly cosines: readonly Float64Array[];
}

/** Says how much each segment matters; higher is more. */
export type Finder = (view: FinderView) => readonly number[];

/** Reads the content of a finder's file. Throws InvalidOptions with every problem. */
export function readFinder(content: unknown): Finder {
  const problems: string[] = [];
  const fields = new Checker(content, 'finder', problems);
  const near = fields.number('near', -1e6, 1e6);
  const asked = fields.number('asked', -1e6, 1e6);
  const own = vectorsOf([fields.value('own')]);
  const segment = vectorsOf(fields.value('segment'));
  const instruction = vectorsOf(fields.value('instruction'));
  const lengths = new Set([...own, ...segment, ...instruction].map(({ length }) => length));
  if (own.length !== 1 || segment.length !== instruction.length || lengths.size !== 1) {
    fields.problem('must have vectors of one length: one of its own, as many for segments as for instructions');
  }
  if (problems.length > 0) throw new InvalidOptions(problems);

  return (view) => {
    const sought = Float32Array.from(own[0] as Float32Array);
    for (const [j, direction] of segment.entries()) {
      const weight = dot(instruction[j] as Float32Array, view.instruction);
      for (const [i, value] of direction.entries()) sought[i] = (sought[i] as number) + weight * value;
    }
    const nearest = nearestOf(view.cosines);
    const questions = standardised(view.segments.map((vector) => dot(vector, view.instruction)));
    return view.segments.map((vector, w) => {
      return near * (nearest[w] as number) + asked * (questions[w] as number) + dot(vector, sought);
    });
  };
}

/**
 * How much nearer each segment is to a choice than the text's segments are on average: the greatest value over the
 * choices, in standard deviations.
 */
function nearestOf(cosines: readonly Float64Array[]): readonly number[] {
  const nearest = new Array<number>(cosines.length).fill(Number.NEGATIVE_INFINITY);
  for (let choice = 0; choice < (cosines[0]?.length ?? 0); choice++) {
    const values = standardised(cosines.map((segment) => segment[choice] as number));
    for (const [w, value] of values.entries()) nearest[w] = Math.max(nearest[w] as number, value);
  }
  return nearest;
}

function standardised(values: readonly number[]): readonly number[] {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const square = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return values.map((value) => (value - mean) / (Math.sqrt(square) + 1e-6));
}

/** Lists of finite numbers as vectors; an empty list if the value is anything else. */
function vectorsOf(value: unknown): readonly Float32Array[] {
  if (!Array.isArray(value)) return [];
  const whole = value.every((row) => Array.isArray(row) && row.length > 0 && row.every(Number.isFinite));
  return whole ? value.map((row) => Float32Array.from(row)) : [];
}

// Rewrites a text before it is tokenised: symbols are read by their names, and identifiers as words.

/** A text as it is read. `symbols`: character → the words that it is read as, with their own spaces. */
export function plainText(text: string, symbols: ReadonlyMap<string, string>): string {
  if (isAscii(text)) return text;
  let read = '';
  for (const character of text) read += symbols.get(character) ?? character;
  return read;
}

/** A choice as it is read, before its symbols are: one that is written as an identifier becomes words. */
export function wordsOf(choice: string): string {
  let words = choice.replace(/_+/g, ' ');
  if (!/\s/.test(choice)) {
    words = words.replace(/(?<=[A-Za-z])-(?=[A-Za-z])/g, ' ').replace(/(?<=[A-Za-z][a-z])(?=[A-Z])/g, ' ');
  }
  return words.trim() === '' ? choice : words;
}

/** Reads the content of `symbols.json`. Throws if it is not an object of strings. */
export function readSymbols(content: unknown): ReadonlyMap<string, string> {
  const entries = typeof content === 'object' && content !== null ? Object.entries(content) : [];
  if (entries.length === 0 || entries.some(([, words]) => typeof words !== 'string')) {
    throw new Error('the symbols are not an object of strings');
  }
  return new Map(entries);
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}
