/**
 * `umpire review …`: a person goes over decided texts, from the least sure on, and gives them labels. On a terminal it
 * shows a page on which a key is an answer; `--plain` writes and reads line by line.
 */
import { readArguments } from '../arguments.ts';
import { type Command, flag, option, type Terminal, UsageError } from '../command.ts';
import { choicesIn } from '../decide/decide.ts';
import { linesOf, readTextFile } from '../decide/lines.ts';
import { interruptible } from '../decide/pace.ts';
import { RECORD_OPTIONS, recordOptions } from '../decide/records.ts';
import { decisionOf, linesOfText, meantBy, offeredFor, offerOf, progressOf } from './answers.ts';
import { type Decided, Deck, decidedIn } from './deck.ts';
import { ReviewPage } from './page.ts';

const OPTIONS = {
  choices: option('FILE', 'all choices: a JSON array, or one a line', 'those that FILE has'),
  out: option('FILE', 'where the labels go, for learn and teach', 'FILE.reviewed.jsonl'),
  disagreeing: flag('only texts on which the catalog and its teacher disagree'),
  plain: flag('line by line in place of a page, as for screen readers'),
  instruction: option('TEXT', 'the instruction of texts that have none'),
  ...RECORD_OPTIONS,
} as const;

/** What can be typed with `--plain`. */
const HELP =
  'Enter alone: as decided. A key, or the beginning of a choice: that choice. -: skip. <: undo. + TEXT: a note. .: end';

/** The command `umpire review`. */
export const REVIEW_COMMAND: Command = {
  name: 'review',
  usage:
    '[--choices FILE] [--out FILE] [--disagreeing] [--plain] [--instruction TEXT] [--separator SIGN] [--input-column NAME] [--instruction-column NAME] FILE',
  summary: 'shows decided texts, the least sure first, and keeps the labels that you give',
  notes: [
    'Each choice has a key, and Enter takes what was decided. / finds a choice by its name, - skips a text, < takes the last answer back, + adds a note, > shows more of a long text, and . ends.',
    'Labels are in the file of --out as they are given, so a review goes on where it ended.',
  ],
  positionals: [['FILE', 'what decide or teach wrote: CSV or JSON lines']],
  options: OPTIONS,
  environment: [],
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, ['FILE']);
    const [file = ''] = positionals;
    const plain = values.plain === true;
    if (!plain && terminal.screen === undefined)
      throw new UsageError('this is not a terminal that can show a page: --plain reads line by line');
    const options = { ...recordOptions(values), instruction: values.instruction };
    const { texts, others } = decidedIn(await readTextFile(file), options);
    if (others > 0) terminal.err(`${others} records have no answer; left out`);
    if (texts.length === 0) throw new Error(`${file} has no decided texts`);
    const choices = values.choices === undefined ? choicesOf(texts) : await choicesIn(values.choices, terminal);
    const some =
      values.disagreeing === true ? texts.filter(({ choice, pupil }) => (pupil?.choice ?? choice) !== choice) : texts;
    const deck = await Deck.open(values.out ?? `${file}.reviewed.jsonl`, some);
    const stop = interruptible(terminal);
    try {
      if (deck.text !== undefined && plain) await askEach(deck, choices.toSorted(), terminal, stop.signal);
      else if (deck.text !== undefined) await terminal.screen?.(new ReviewPage(deck, choices.toSorted()), stop.signal);
    } finally {
      const { labelled, skipped, all } = deck.counts;
      terminal.err(`${labelled} of ${all} texts have a label in ${deck.file}, ${skipped} were skipped`);
    }
  },
};

/** The choices that occur in a file. */
function choicesOf(texts: readonly Decided[]): readonly string[] {
  return [...new Set(texts.flatMap(({ choice, probabilities }) => [choice, ...Object.keys(probabilities)]))];
}

/** Writes each text and reads an answer in a line. */
async function askEach(deck: Deck, choices: readonly string[], terminal: Terminal, signal: AbortSignal): Promise<void> {
  let note = '';
  const show = (): boolean => {
    const { text } = deck;
    if (text === undefined) return false;
    terminal.out(progressOf(deck));
    for (const line of linesOfText(text.instruction ?? '')) terminal.out(`Question: ${line}`);
    for (const line of linesOfText(text.input)) terminal.out(`Text: ${line}`);
    terminal.out(decisionOf(text));
    for (const offered of offeredFor(text, choices)) terminal.out(`Choice ${offerOf(offered)}`);
    terminal.out('Your answer, or ? for help:');
    return true;
  };
  const label = (choice: string): void => {
    deck.label(choice, note);
    note = '';
  };
  if (!show()) return;
  for await (const { text: line } of linesOf(terminal.pieces(signal))) {
    const typed = line.replace(/\r$/, '');
    const text = deck.text as Decided;
    const meant = meantBy(typed, choices);
    const [first = ''] = meant;
    const keyed = offeredFor(text, choices).find(({ key }) => key === typed);
    if (typed === '.') return;
    if (typed === '') label(text.choice);
    else if (keyed !== undefined) label(keyed.choice);
    else if (typed === '-') deck.skip();
    else if (typed === '<') terminal.out(deck.undo() ?? 'taken back');
    else if (typed.startsWith('+')) {
      note = typed.slice(1).trim();
      terminal.out('noted; the answer:');
      continue;
    } else if (meant.length === 1 || first === typed) label(first);
    else {
      const many = meant.length === 0 ? 'No choice is like that' : `That may be ${meant.slice(0, 9).join(', ')}`;
      terminal.out(typed === '?' ? HELP : `${many}. ? for help:`);
      continue;
    }
    if (!show()) return;
  }
  signal.throwIfAborted();
}
