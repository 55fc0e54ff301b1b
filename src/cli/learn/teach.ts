/**
 * `umpire teach …`: lets a catalog learn from texts without labels, which another model of the folder is asked about.
 * Nobody is asked twice about a text: every answer is in a file as soon as it is there, and the command goes on from
 * that. The order of choices is no part of a question to a model, so no answer has to be confirmed in another order.
 */
import { Learned } from '../../domain/learned.ts';
import { messageOf } from '../../engine/errors.ts';
import { MIN_EXAMPLES } from '../../learning/learn.ts';
import type { ScoredExample } from '../../learning/regression.ts';
import { chooseTexts, confidenceOf, learnTaught, type PooledText, type TaughtLesson } from '../../learning/teaching.ts';
import { basisOf } from '../../stores/catalog-additions.ts';
import { ownerFrom, readArguments, wholeWithin } from '../arguments.ts';
import { CATALOG_OPTIONS, type Command, flag, Interrupted, option, type Terminal, UsageError } from '../command.ts';
import { readTextFile } from '../decide/lines.ts';
import { interruptible } from '../decide/pace.ts';
import { RECORD_OPTIONS, readingFrom } from '../decide/records.ts';
import { patience, STORE_ENVIRONMENT, withStores } from '../with-stores.ts';
import { byDigest, type ExampleFile, type LineProblem, readExamples, type Text } from './examples.ts';
import { existing, keepLesson, type LearningCatalog, lessonLines, scoredExamples } from './learn.ts';
import { type Heard, type Scored, withOwnEngine } from './own-engine.ts';
import { percent } from './report-page.ts';
import {
  type AskedTerms,
  type AskedText,
  addAsked,
  answerFields,
  asked,
  nameSkipped,
  newTexts,
  readAsked,
  repeatsOf,
  textsIn,
} from './teach-files.ts';

const OPTIONS = {
  ...CATALOG_OPTIONS,
  teacher: option('MODEL', 'the model that is asked, or one revision of it; needed'),
  budget: option('N', 'texts that are asked about in all', '500'),
  sure: option('P', 'the confidence from which on an answer is learned from', '0.5'),
  examples: option('FILE', "people's labels, by which all is judged", 'those kept beside the catalog'),
  out: option('FILE', 'what was asked, for learn and review', 'TEXTS.asked.jsonl'),
  'dry-run': flag('asks nobody and changes nothing; says what would be asked and learned'),
  ...RECORD_OPTIONS,
} as const;

/** Texts that may be asked about, at most: each is compared with all others. */
const MOST_BUDGET = 10_000;
/** Texts without an answer, one after the other, from which on the teacher is taken for being away. */
const MOST_FAILED = 8;

/** The command `umpire teach`. */
export const TEACH_COMMAND: Command = {
  name: 'teach',
  usage: '--owner NAME --catalog ID --teacher MODEL [OPTION]… TEXTS',
  summary: 'lets a catalog learn from what another model says of texts without labels',
  notes: [
    'Half of the texts are taken as they come, and half are those that promise most: texts that the catalog is unsure of, unlike one another, of all choices. Of texts that are nearly the same one is asked about.',
    'Answers are written to the file of --out as they come. The same command goes on from there, and with a larger --budget it asks for more. A label that a person changes there counts as theirs.',
    'If nothing that is learned helps on held-out texts by more than chance, the catalog stays as it is.',
  ],
  positionals: [['TEXTS', 'JSON lines {"input": …, "instruction": …}, or CSV with such a header']],
  options: OPTIONS,
  environment: [...STORE_ENVIRONMENT, 'UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'],
  failure: 'learning does not help',
  async run(args, terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, ['TEXTS']);
    const [file = ''] = positionals;
    const owner = ownerFrom(values.owner);
    const { catalog: id, teacher, out = `${file}.asked.jsonl` } = values;
    if (id === undefined || teacher === undefined) throw new UsageError('--catalog ID and --teacher MODEL are needed');
    const budget = wholeWithin('--budget', values.budget ?? '500', 1, MOST_BUDGET);
    const sure = Number(values.sure ?? 0.5);
    if (!(sure > 0 && sure < 1)) throw new UsageError('--sure: must be between 0 and 1');
    const texts = textsIn(await readTextFile(file), readingFrom(values), terminal);
    const given = values.examples === undefined ? undefined : await readTextFile(values.examples);
    await withStores(terminal, async ({ catalogs }) => {
      const found = await existing(catalogs, owner, id);
      const { model, choices, additions } = found.record;
      if (teacher === model || teacher.startsWith(`${model}@`))
        throw new Error(`'${id}' decides with ${model} itself, which would teach it nothing: name another --teacher`);
      const labelled = given ?? (await catalogs.examples(owner, id, patience()));
      const people = readExamples(labelled, choices, readingFrom({ instruction: values.instruction }));
      for (const note of people.notes) terminal.err(note);
      const terms = { teacher, choices: choices.toSorted(), basis: basisOf(choices, additions?.descriptions) };
      const earlier = await readAsked(out, terms);
      const where = { catalogs, owner, found, terminal };
      const school = { where, terms, out, sure, people, earlier };
      const fresh = newTexts(texts, [...people.examples, ...earlier], terminal);
      const scores = await scoreAll(school, fresh);
      const picks = choose(scores, budget, terminal);
      const isDry = values['dry-run'] === true;
      if (picks.length > 0 && !isDry) await ask(school, picks);
      sayCost(school, scores.pool, terminal);
      const { lesson } = lessonFrom(school, scores);
      if (!isDry) await keepLesson(where, lesson);
      else for (const line of [...lessonLines(lesson), 'nothing was changed']) terminal.out(line);
    });
  },
};

/** What a run is about. `earlier`: texts that were asked about before. */
interface School {
  readonly where: LearningCatalog;
  readonly terms: AskedTerms;
  readonly out: string;
  readonly sure: number;
  readonly people: ExampleFile;
  readonly earlier: readonly AskedText[];
}

/** A text with the scores of the catalog's own model. */
interface Pupil extends Scored, PooledText {
  readonly text: Text;
  word: AskedText | undefined;
}

/** What the catalog's own model, `name`, says of all texts, which are in an order of chance, and of people's. */
interface Scores {
  readonly name: string;
  readonly pool: readonly Pupil[];
  readonly people: readonly ScoredExample[];
}

/** Zero-shot scores. Leaves out texts that the model does not take. Throws Error if it does not take people's. */
function scoreAll({ where, people, earlier }: School, fresh: readonly Text[]): Promise<Scores> {
  const { terminal, found } = where;
  return withOwnEngine(terminal, found.record.model, async (engine) => {
    const wrong = await engine.problemsOf(people);
    if (wrong.length > 0) throw new Error(`${wrong.join('\n')}\nnothing was asked or changed`);
    const texts = byDigest<Text | AskedText>([...earlier, ...fresh], asked);
    const { scored, problems } = await engine.scoreSome(texts, found.record);
    nameSkipped(problems, terminal);
    return {
      name: engine.name,
      pool: texts.flatMap((text, place): readonly Pupil[] => {
        const its = scored[place];
        return its === undefined ? [] : [{ ...its, text, word: 'tokens' in text ? text : undefined }];
      }),
      people: await scoredExamples(engine, found.record, people.examples),
    };
  });
}

/** The texts to ask about, of which all together with those before are `budget`. */
function choose({ pool, name }: Scores, budget: number, terminal: Terminal): readonly Pupil[] {
  const answered = pool.filter(({ word }) => word?.said !== undefined).length;
  const picks = chooseTexts(pool, budget - answered).map((place) => pool[place] as Pupil);
  const tokens = picks.reduce((sum, { inputTokens }) => sum + inputTokens, 0);
  terminal.out(`${answered} texts have answers; ${picks.length} are to ask, ${tokens} tokens as ${name} counts them`);
  return picks;
}

/** Asks the teacher, and writes each answer as it comes. Throws Error if it is away; what is done is kept. */
async function ask(school: School, picks: readonly Pupil[]): Promise<void> {
  const { where, terms, out, sure } = school;
  const { terminal } = where;
  const revision = school.earlier[0]?.model;
  const problems: LineProblem[] = [];
  let done = 0;
  let failed = 0;
  const stop = interruptible(terminal);
  try {
    await withOwnEngine(terminal, terms.teacher, async (engine) => {
      if (revision !== undefined && revision !== engine.name)
        throw new Error(
          `${out} has answers of ${revision}, and ${engine.name} is served now: --out names another file`,
        );
      terminal.out(`asking ${engine.name} about ${picks.length} texts`);
      const by = { ...terms, model: engine.name };
      const heard = (outcome: Heard, place: number): void => {
        const pick = picks[place] as Pupil;
        const { text } = pick;
        if (outcome instanceof Error) {
          // One text may be at fault: it is asked about again by the next run.
          if (++failed >= MOST_FAILED) throw outcome;
          problems.push({ line: text.line, problem: `got no answer (${outcome.message})` });
        } else if ('problem' in outcome) {
          problems.push(outcome);
          pick.word = addAsked(out, text, { error: outcome.problem }, by);
        } else {
          failed = 0;
          pick.word = addAsked(out, text, answerFields(outcome, pick, terms.choices, sure), by);
          done++;
        }
      };
      const texts = picks.map(({ text }) => text);
      await engine.scoreEach(texts, where.found.record, heard, stop.signal);
    });
  } catch (error) {
    const cause = stop.signal.aborted ? stop.signal.reason : error;
    const text = `${messageOf(cause)}; ${done} of ${picks.length} texts got answers: the same command goes on after them (${out})`;
    throw cause instanceof Interrupted ? new Interrupted(text) : new Error(text, { cause });
  } finally {
    stop.abort(new Interrupted('over'));
  }
  nameSkipped(problems, terminal);
}

function sayCost({ out, sure }: School, pool: readonly Pupil[], terminal: Terminal): void {
  const all = pool.flatMap(({ word }) => word ?? []);
  const answers = all.filter(({ said }) => said !== undefined);
  const isSure = answers.filter((word) => confidenceOf(word) >= sure).length;
  const tokens = all.reduce((sum, each) => sum + each.tokens, 0);
  const seconds = all.reduce((sum, each) => sum + each.milliseconds, 0) / 1000;
  terminal.out(`cost so far: ${answers.length} answers, ${tokens} tokens read, ${seconds.toFixed(1)} s (${out})`);
  terminal.out(`${isSure} of them are sure at ${sure} or more; the others are not learned from`);
}

/** Learns, and says how far the catalog agrees with those who taught it. Throws Error if there is too little. */
function lessonFrom(school: School, { name, pool, people }: Scores): TaughtLesson {
  const { where, terms, sure } = school;
  const { terminal } = where;
  // What people have labelled is not learned from a second time.
  const repeats: ReadonlySet<Text> = repeatsOf(school.earlier, school.people.examples);
  const texts = pool.map((each): PooledText => (repeats.has(each.text) ? { ...each, word: {} } : each));
  const taught = learnTaught({ pool: texts, people, sure }, terms.choices, { model: name, basis: terms.basis });
  if (taught === undefined)
    throw new Error(
      `fewer than ${MIN_EXAMPLES} sure answers and labels are too few: --budget asks for more, --sure takes less sure ones`,
    );
  const judges = taught.byPeople
    ? 'on the labels nothing may become worse'
    : 'a fair sample judges, so a confidence says how likely the teacher agrees';
  terminal.out(`learning from ${taught.answers} answers and ${taught.labels} labels of people; ${judges}`);
  for (const [whom, { texts, before, after }] of [
    [terms.teacher, taught.withTeacher],
    ['people', taught.withPeople],
  ] as const) {
    if (texts === 0) continue;
    const [was, is] = [before, after].map((count) => percent(count / texts));
    terminal.out(`agrees with ${whom} on ${texts} held-out texts: ${was} as it is, ${is} after learning`);
  }
  const { learned } = where.found.record.additions ?? {};
  if (learned?.model !== name) return taught;
  const state = new Learned(learned);
  const alike = texts.filter(({ probabilities, vector, word = {} }) => {
    const decided = state.decide(probabilities, vector);
    const label = word.corrected ?? word.said?.indexOf(confidenceOf(word));
    return decided.indexOf(Math.max(...decided)) === label;
  });
  const of = texts.filter(({ word }) => word?.said !== undefined).length;
  terminal.out(`what it learned before agrees with ${percent(alike.length / of)} of all answers, and is replaced`);
  return taught;
}
