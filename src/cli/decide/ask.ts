/** `umpire ask …`: one decision through a running service, for whoever tries it. */
import { readArguments } from '../arguments.ts';
import { type Command, flag, option, UsageError } from '../command.ts';
import { keyFrom, SERVICE_OPTIONS, serviceFrom } from './decide.ts';
import { type Answered, DecidingClient, nameOf } from './deciding-client.ts';

/** The model that is asked where none is named: the one that the README begins with. */
export const USUAL_MODEL = 'umpire-mini';

const OPTIONS = {
  question: option('TEXT', 'what is asked about the text; needed'),
  catalog: option('ID', 'a stored catalog, in place of choices'),
  model: option('MODEL', 'the model that decides', USUAL_MODEL),
  ...SERVICE_OPTIONS,
  json: flag('the answer as one line of JSON'),
} as const;

/** Rows that are shown at most, the likeliest choices. */
const ROWS = 12;
/** What helps where nobody answers. */
const ELSEWHERE = "'npm run quickstart' starts a service; --url says where another one is";
/** Characters of a bar that stands for certainty. */
const BAR = 24;

/** The command `umpire ask`. */
export const ASK_COMMAND: Command = {
  name: 'ask',
  usage: '--question TEXT [--key KEY | --key-file FILE] [OPTION]… TEXT (CHOICE… | --catalog ID)',
  summary: 'decides one text through a running service',
  notes: ['Prints the choice, and a bar for the probability of each.'],
  positionals: [
    ['TEXT', 'what is decided about; - reads it from standard input'],
    ['CHOICE…', 'the allowed answers, best with what they mean: "billing: invoices, charges, refunds"'],
  ],
  options: OPTIONS,
  environment: ['PORT', 'UMPIRE_KEY'],
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, ['TEXT'], Number.POSITIVE_INFINITY);
    const [text = '', ...choices] = positionals;
    const { question: instruction, catalog, model = USUAL_MODEL } = values;
    if (instruction === undefined) throw new UsageError('--question TEXT is needed');
    if ((catalog === undefined) === (choices.length === 0))
      throw new UsageError('either choices or --catalog ID are needed; quote a choice that has spaces');
    const input = text === '-' ? (await terminal.input()).replace(/\r?\n$/, '') : text;
    const base = serviceFrom(values.url, terminal);
    const client = new DecidingClient(base, await keyFrom(values, terminal));
    const asked = { model, input, instruction, ...(catalog === undefined ? { choices } : { catalog }) };
    const attempt = await client.attempt(asked, new AbortController().signal);
    if (attempt.kind === 'hopeless') throw new Error(attempt.message);
    if (attempt.kind === 'lost' && !attempt.contact)
      throw new Error(`nobody answers at ${base.href} (${attempt.refusal.message}): ${ELSEWHERE}`);
    if (attempt.kind !== 'answered') throw new Error(`${attempt.refusal.code}: ${attempt.refusal.message}`);
    if (values.json === true) terminal.out(JSON.stringify(attempt.answer));
    else for (const line of lines(attempt.answer)) terminal.out(line);
  },
};

function lines(answer: Answered): readonly string[] {
  const { choice, probabilities } = answer;
  const sorted = Object.entries(probabilities).toSorted(([a, p], [b, q]) =>
    a === choice ? -1 : b === choice ? 1 : q - p,
  );
  const others = sorted.slice(ROWS);
  const rest = others.reduce((sum, [, probability]) => sum + probability, 0);
  const row = (probability: number, name: string): string =>
    `${(100 * probability).toFixed(1).padStart(6)} %  ${'█'.repeat(Math.round(BAR * probability)).padEnd(BAR)}  ${name}`;
  return [
    choice,
    '',
    ...sorted.slice(0, ROWS).map(([name, probability]) => row(probability, name)),
    ...(others.length === 0 ? [] : [row(rest, `(${others.length} other choices)`)]),
    '',
    nameOf(answer),
  ];
}
