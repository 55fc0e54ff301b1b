/** Texts without labels from a file, and which of them are worth looking at: none nearly twice. */
import { firstOfEach } from '../../learning/near-repeats.ts';
import type { Terminal } from '../command.ts';
import { headerProblem, questionOf, type Reading, recordsOf } from '../decide/records.ts';
import { byDigest, type LineProblem, problemLines, type Text } from './examples.ts';

/** Texts that are looked at, at most: a random sample of more. Bounds memory. */
const MOST_TEXTS = 20_000;
/** Lines with problems that are named, at most. */
const MOST_NAMED = 20;

/**
 * The texts of a file, without those of lines that cannot be read, which are named. Throws Error for a header without
 * the columns.
 */
export function textsIn(content: string, reading: Reading, terminal: Terminal): readonly Text[] {
  const { fields } = reading;
  const { entries, form } = recordsOf(content, reading.separator);
  const header = headerProblem(form, reading);
  if (header !== undefined) throw new Error(header);
  const texts: Text[] = [];
  const problems: LineProblem[] = [];
  for (const { line, read } of entries) {
    const { input, instruction } = questionOf('value' in read ? read.value : {}, reading);
    if ('problem' in read) problems.push({ line, problem: read.problem });
    else if (typeof input === 'string' && input !== '' && typeof instruction === 'string')
      texts.push({ line, input, instruction });
    else problems.push({ line, problem: `${fields.input} and ${fields.instruction} must be texts that are not empty` });
  }
  nameSkipped(problems, terminal);
  return texts;
}

/** The texts that are unlike one another and the known ones. */
export function newTexts(
  texts: readonly Text[],
  known: readonly Pick<Text, 'input'>[],
  terminal: Terminal,
): readonly Text[] {
  const distinct = [...new Map(texts.map((text) => [JSON.stringify(asked(text)), text])).values()];
  const sample = byDigest(distinct, asked).slice(0, MOST_TEXTS);
  if (sample.length < distinct.length)
    terminal.err(`of ${distinct.length} texts ${MOST_TEXTS}, drawn at random, are looked at`);
  const repeats = repeatsOf(sample, known);
  const kept = sample.filter((text) => !repeats.has(text));
  terminal.out(`${texts.length} texts, ${kept.length} of them new and unlike one another`);
  return kept;
}

/** The texts that are nearly the same as a known one, or as one before them. */
export function repeatsOf<T extends Pick<Text, 'input'>>(
  texts: readonly T[],
  known: readonly Pick<Text, 'input'>[],
): ReadonlySet<T> {
  const first = firstOfEach([...known, ...texts].map(({ input }) => ({ input, label: '' })));
  return new Set(texts.filter((_, place) => first[known.length + place] !== known.length + place));
}

/** Names lines that are left out. */
export function nameSkipped(problems: readonly LineProblem[], terminal: Terminal): void {
  for (const line of problemLines(problems).slice(0, MOST_NAMED)) terminal.err(`${line}; left out`);
  if (problems.length > MOST_NAMED) terminal.err(`and ${problems.length - MOST_NAMED} more, left out`);
}

/** What is asked, by which a text is told from others. */
export function asked({ instruction, input }: Text): readonly string[] {
  return [instruction, input];
}
