/**
 * `umpire review …`: a person goes over decided texts, from the least sure on, and gives them labels. On a terminal it
 * shows a page on which a key is an answer; `--plain` writes and reads line by line.
 */
import { readArguments } from '../arguments.ts';
import { type Command, flag, option, type Terminal, UsageError } from '../command.ts';
import { choicesIn } from '../decide/decide.ts';
import { linesOf, readTextFile } from '../decide/lines.ts';
import { interruptible } from '../decide/pace.ts';
import { RECORD_OPTIONS, readingFrom } from '../decide/records.ts';
import { type Decided, Deck, decidedIn, offerOf } from './deck.ts';
import { linesIn, ReviewPage } from './page.ts';

const OPTIONS = {
  choices: option('FILE', 'all choices: a JSON array, or one a line', 'those that FILE has'),
  out: option('FILE', 'where the labels go, for learn and teach', 'FILE.reviewed.jsonl'),
  disagreeing: flag('only texts on which the catalog and its teacher disagree'),
  plain: flag('line by line in place of a page, as for screen readers'),
  ...RECORD_OPTIONS,
} as const;

/** What is said with `--plain`: after each text, and of what can be typed. */
const PROMPT = 'Your answer, or ? for help:';
const HELP =
  'Enter alone: as decided. A key, or the beginning of a choice: that choice. -: skip. <: undo. + TEXT: a note. .: end';

/** The command `umpire review`. */
export const REVIEW_COMMAND: Command = {
  name: 'review',
  usage: '[OPTION]… FILE',
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
    const showPage = values.plain === true ? undefined : terminal.screen;
    if (values.plain !== true && showPage === undefined)
      throw new UsageError('this is not a terminal that can show a page: --plain reads line by line');
    const { texts, others } = decidedIn(await readTextFile(file), readingFrom(values));
    if (others > 0) terminal.err(`${others} records have no answer; left out`);
    if (texts.length === 0) throw new Error(`${file} has no decided texts`);
    const choices =
      values.choices === undefined
        ? new Set(texts.flatMap(({ probabilities }) => [...probabilities.keys()]))
        : await choicesIn(values.choices, terminal);
    const some = values.disagreeing === true ? texts.filter(({ isDisputed }) => isDisputed) : texts;
    const out = values.out ?? `${file}.reviewed.jsonl`;
    const deck = await Deck.open(out, some, [...choices].toSorted());
    const { signal } = interruptible(terminal);
    try {
      if (deck.text === undefined) return;
      if (showPage === undefined) await askEach(deck, terminal, signal);
      else await showPage(new ReviewPage(deck), signal);
    } finally {
      terminal.err(`${out}: ${deck.progress}`);
    }
  },
};

/** Writes each text and reads an answer in a line. */
async function askEach(deck: Deck, terminal: Terminal, signal: AbortSignal): Promise<void> {
  const show = (text: Decided): void => {
    terminal.out(deck.progress);
    for (const line of linesIn(text.instruction)) terminal.out(`Question: ${line}`);
    for (const line of linesIn(text.input)) terminal.out(`Text: ${line}`);
    terminal.out(text.decision);
    for (const offered of deck.choices.filter(({ key }) => key !== undefined))
      terminal.out(`Choice ${offerOf(offered)}`);
    terminal.out(PROMPT);
  };
  if (deck.text !== undefined) show(deck.text);
  for await (const { text: line } of linesOf(terminal.pieces(signal))) {
    const typed = line.replace(/\r$/, '');
    if (typed === '.') return;
    const said = typed === '?' ? HELP : deck.answer(typed);
    if (deck.text === undefined) return;
    if (said === '') show(deck.text);
    else terminal.out(`${said}. ${PROMPT}`);
  }
  signal.throwIfAborted();
}
