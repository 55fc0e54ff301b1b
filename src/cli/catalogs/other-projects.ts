/**
 * Projects that were made for other services of intent detection, as these export them: LUIS and CLU (JSON), Dialogflow
 * ES (a folder of JSON files), Rasa (`nlu.yml`), and CSV. Their intents are the choices of a catalog, their utterances
 * its examples. What a decision cannot use is left out, and counted.
 */
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { messageOf } from '../../engine/errors.ts';
import { readTextFile } from '../decide/lines.ts';
import { headerProblem, questionOf, type Reading, recordsOf, USUAL_READING } from '../decide/records.ts';

/** A labelled text, as `umpire learn` reads it. CSV alone may have instructions. */
export interface ProjectExample {
  readonly input: string;
  readonly instruction?: string;
  readonly label: string;
}

/** What a catalog is made of. */
export interface Project {
  readonly choices: readonly string[];
  readonly examples: readonly ProjectExample[];
  /** The project's own test set: examples to measure on, not to learn from. */
  readonly tests: readonly ProjectExample[];
  /** What was left out and why, and what else the operator should know; a line each. */
  readonly notes: readonly string[];
}

/** A file of a project, and its content: its text for CSV, what JSON or YAML mean for the others. */
interface ProjectFile {
  readonly path: string;
  readonly content: unknown;
}

/** What a project says of an utterance, beside its text and intent. `asked`: the instruction. */
interface Beside {
  readonly language?: unknown;
  readonly asked?: unknown;
  readonly tests?: boolean;
}

/** Collects what readers find. */
class Findings {
  readonly choices = new Set<string>();
  readonly examples: ProjectExample[] = [];
  readonly tests: ProjectExample[] = [];
  readonly languages = new Set<string>();
  readonly notes: string[] = [];
  readonly #leftOut = new Map<string, number>();

  intent(name: unknown): void {
    this.choices.add(textOf(name));
  }

  example(input: unknown, label: unknown, { language, asked, tests = false }: Beside = {}): void {
    const instruction = textOf(asked);
    const question = instruction === '' ? {} : { instruction };
    const example = { input: textOf(input).trim(), ...question, label: textOf(label) };
    if (example.input === '' || example.label === '') this.leave(1, 'utterances without a text or an intent');
    else {
      this.intent(example.label);
      (tests ? this.tests : this.examples).push(example);
      if (typeof language === 'string') this.languages.add(language);
    }
  }

  leave(count: number, what: string): void {
    if (count > 0) this.#leftOut.set(what, (this.#leftOut.get(what) ?? 0) + count);
  }

  project(): Project {
    const others = [...this.languages].filter((language) => !/^en\b/i.test(language));
    const notes = [...this.notes, ...[...this.#leftOut].map(([what, count]) => `left out: ${count} ${what}`)];
    if (others.length > 0) notes.push(`some texts are in ${others.join(', ')}: choose a model that reads that`);
    const { choices, examples, tests } = this;
    return { choices: [...choices].filter((choice) => choice !== ''), examples, tests, notes };
  }
}

type Reader = (found: Findings, files: readonly ProjectFile[], reading: Reading) => void;

/** Why annotations and the like are no part of a catalog. */
const NO_ENTITIES = 'entities, lists and features: a choice is decided from the text alone';

/** The forms of projects: how their files end, and how they are read. */
const FORMS: Readonly<Record<string, { readonly ends: RegExp; readonly read: Reader }>> = {
  luis: { ends: /\.json$/, read: readLuis },
  clu: { ends: /\.json$/, read: readClu },
  dialogflow: { ends: /\.json$/, read: readDialogflow },
  rasa: { ends: /\.ya?ml$/, read: readRasa },
  csv: { ends: /\.(csv|tsv|txt|jsonl?)$/, read: readRecords },
};

/** The names of the forms. */
export const PROJECT_FORMS: readonly string[] = Object.keys(FORMS);

/** Reads a project from files, and from the files in folders. @throws Error if it is not such a project. */
export async function readProject(
  name: string,
  paths: readonly string[],
  reading: Reading = USUAL_READING,
): Promise<Project> {
  const { ends, read } = FORMS[name] as (typeof FORMS)[string];
  const isYaml = name === 'rasa';
  // Loaded here, since no other command needs it.
  const parse: (text: string) => unknown = name === 'csv' ? String : isYaml ? (await import('yaml')).parse : JSON.parse;
  const files: ProjectFile[] = [];
  for (const path of (await Promise.all(paths.map((each) => filesAt(each, ends)))).flat()) {
    if (path.endsWith('.zip')) throw new Error(`${path}: unpack it first, and name the folder`);
    const text = await readTextFile(path);
    try {
      files.push({ path, content: parse(text) });
    } catch (error) {
      throw new Error(`${path}: is not ${isYaml ? 'YAML' : 'JSON'}: ${messageOf(error)}`, { cause: error });
    }
  }
  const found = new Findings();
  read(found, files, reading);
  const project = found.project();
  if (project.choices.length === 0) throw new Error(`no intents were found: is this what ${name} exports?`);
  return project;
}

async function filesAt(path: string, ends: RegExp): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const names = (await readdir(path, { recursive: true })).filter((name) => ends.test(name));
  return names.toSorted().map((name) => join(path, name));
}

/** An application of Language Understanding (LUIS), schema 2 to 7. */
function readLuis(found: Findings, files: readonly ProjectFile[]): void {
  for (const { content } of files) {
    for (const { name } of listOf(content, 'intents')) found.intent(name);
    const { culture: language } = fieldsOf(content);
    for (const { text, intent } of listOf(content, 'utterances')) found.example(text, intent, { language });
    const kinds = ['entities', 'composites', 'closedLists', 'regex_entities', 'patternAnyEntities', 'prebuiltEntities'];
    for (const kind of [...kinds, 'phraselists', 'model_features'])
      found.leave(listOf(content, kind).length, NO_ENTITIES);
    found.leave(listOf(content, 'patterns').length, 'patterns: they have places for entities in their texts');
  }
}

/** A project of Conversational Language Understanding. */
function readClu(found: Findings, files: readonly ProjectFile[]): void {
  for (const { content } of files) {
    const { assets } = fieldsOf(content);
    for (const { category } of listOf(assets, 'intents')) found.intent(category);
    for (const { text, intent, language, dataset } of listOf(assets, 'utterances'))
      found.example(text, intent, { language, tests: dataset === 'Test' });
    found.leave(listOf(assets, 'entities').length, NO_ENTITIES);
  }
}

/** The end of the name of a file with an intent's training phrases. */
const USER_SAYS = /_usersays_([\w-]+)\.json$/;

/** An agent of Dialogflow ES: `intents/NAME.json`, phrases in it or in `intents/NAME_usersays_LANGUAGE.json`. */
function readDialogflow(found: Findings, files: readonly ProjectFile[]): void {
  const phrases = files.flatMap(({ path, content }) => {
    const intent = files.find((file) => file.path === path.replace(USER_SAYS, '.json'));
    const language = USER_SAYS.exec(path)?.[1];
    const isOld = language === undefined && 'userSays' in fieldsOf(content);
    if (language === undefined && !isOld) return [];
    const label = fieldsOf(intent?.content).name ?? basename(path).replace(USER_SAYS, '');
    return [{ label, language, said: isOld ? listOf(content, 'userSays') : recordsIn(content) }];
  });
  for (const { label, language, said } of phrases) {
    const plain = said.filter(({ isTemplate }) => isTemplate !== true);
    found.leave(said.length - plain.length, 'template phrases: they have places for entities in their texts');
    for (const each of plain) {
      const parts = listOf(each, 'data').map(({ text }) => textOf(text));
      found.example(parts.join(''), label, { language });
    }
  }
  for (const { path, content } of files) {
    const { name, responses, fallbackIntent } = fieldsOf(content);
    if (/_entries_[\w-]+\.json$/.test(path)) found.leave(1, NO_ENTITIES);
    if (typeof name !== 'string' || !Array.isArray(responses) || found.choices.has(name)) continue;
    // A fallback is the agent's "none of these"; other intents without a phrase are reached by events or contexts.
    if (fallbackIntent === true) found.intent(name);
    else found.leave(1, 'intents without training phrases: events and contexts lead to them, not texts');
  }
}

/** Training data of Rasa 2 and 3. */
function readRasa(found: Findings, files: readonly ProjectFile[]): void {
  for (const { content } of files) {
    for (const { intent, examples } of listOf(content, 'nlu')) {
      if (intent === undefined) {
        found.leave(1, 'synonyms, expressions and lookup tables: a choice is decided from the text alone');
        continue;
      }
      found.intent(intent);
      const texts = Array.isArray(examples)
        ? examples.map((each) => textOf(fieldsOf(each).text ?? each).replace(/^- /, ''))
        : `\n${textOf(examples)}`.split(/\n\s*- /).slice(1);
      for (const text of texts)
        found.example(text.replaceAll(/\[([^\]]+)\](\([^)]*\)|\{[^}]*\}|\[\{[^\]]*\])/g, '$1'), intent);
    }
  }
}

/** CSV or JSON lines with a text and its label. */
function readRecords(found: Findings, files: readonly ProjectFile[], reading: Reading): void {
  for (const { path, content } of files) {
    const { entries, form } = recordsOf(content as string, reading.separator);
    const problem = headerProblem(form, reading, ['input', 'label']);
    if (problem !== undefined) throw new Error(`${path}: ${problem}`);
    for (const { line, read } of entries) {
      if ('problem' in read) found.notes.push(`left out: line ${line} of ${path}: ${read.problem}`);
      else {
        const { input, instruction } = questionOf(read.value, reading);
        found.example(input, read.value[reading.fields.label], { asked: instruction });
      }
    }
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function recordsIn(list: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(list) ? list.map(fieldsOf) : [];
}

function listOf(value: unknown, name: string): readonly Readonly<Record<string, unknown>>[] {
  return recordsIn(fieldsOf(value)[name]);
}
