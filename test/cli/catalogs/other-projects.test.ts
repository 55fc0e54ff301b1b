/** `umpire catalogs import --from …`: projects as other services export them become a catalog and files of examples. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { readingFrom } from '../../../src/cli/decide/records.ts';
import { readExamples } from '../../../src/cli/learn/examples.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

const UTTERANCE = {
  text: 'book a flight to Paris',
  intent: 'Book',
  entities: [{ entity: 'City', startPos: 17, endPos: 21 }],
};

const LUIS = {
  luis_schema_version: '7.0.0',
  intents: [{ name: 'Book', features: [] }, { name: 'Cancel' }, { name: 'None' }],
  entities: [{ name: 'City', roles: [] }],
  closedLists: [{ name: 'Classes', subLists: [] }],
  prebuiltEntities: [{ name: 'datetimeV2' }],
  patterns: [{ pattern: 'fly to {City}', intent: 'Book' }],
  utterances: [UTTERANCE, { text: '  ', intent: 'Book' }, { text: 'what is for lunch?', intent: 'None' }],
  culture: 'en-us',
};

const CLU = {
  projectFileVersion: '2023-04-01',
  metadata: { projectKind: 'Conversation', projectName: 'Mail', language: 'en-us' },
  assets: {
    projectKind: 'Conversation',
    intents: [{ category: 'Read' }, { category: 'Delete' }],
    entities: [{ category: 'Sender' }],
    utterances: [
      { text: "open Blake's mail", intent: 'Read', language: 'en-us', dataset: 'Train' },
      { text: 'lösche die letzte', intent: 'Delete', language: 'de', dataset: 'Train' },
      { text: 'delete the last one', intent: 'Delete', language: 'en-us', dataset: 'Test' },
    ],
  },
};

const said = (...parts: string[]) => ({ id: 'x', data: parts.map((text) => ({ text })), isTemplate: false });
/** Files of an agent by their names. The file names of intents are not always their names. */
const DIALOGFLOW = {
  'agent.json': { displayName: 'Pizza', language: 'en' },
  'package.json': { version: '1.0.0' },
  'entities/size.json': { name: 'size', isEnum: false },
  'entities/size_entries_en.json': [{ value: 'large', synonyms: ['big'] }],
  'intents/Order - pizza.json': { name: 'Order: pizza', responses: [], fallbackIntent: false },
  'intents/Order - pizza_usersays_en.json': [
    said('a ', 'large', ' pizza'),
    { ...said('@size pizza'), isTemplate: true },
  ],
  'intents/Order - pizza_usersays_it.json': [said('una pizza')],
  'intents/Hours.json': { name: 'Hours', responses: [], userSays: [said('when do you open?')] },
  'intents/Fallback.json': { name: 'Default Fallback Intent', responses: [], fallbackIntent: true },
  'intents/Payed.json': { name: 'Payed', responses: [], events: [{ name: 'PAYED' }] },
};

const RASA = `version: "3.1"
nlu:
- intent: greet
  examples: |
    - hey
    - good morning - how are you?
- intent: faq/opening   # a retrieval intent
  examples: |
    - is the shop in [Rome](city) open on [Sunday]{"entity": "day", "value": "7"}?
- intent: 'no'
  examples:
  - text: |
      never
    metadata: {sentiment: neutral}
- synonym: Rome
  examples: |
    - roma
- lookup: city
  examples: |
    - Rome
`;

/** Runs the import of what is written at `paths`; the folder has what it wrote. */
async function imported(form: string, files: Readonly<Record<string, unknown>>, ...more: string[]) {
  const folder = temporaryFolder();
  const project = join(folder, 'project');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  const env = { UMPIRE_DATA_DIR: folder, UMPIRE_MODELS_DIR: join(folder, 'none') };
  const out = join(folder, 'examples.jsonl');
  const ran = await runUmpire(
    ['catalogs', 'import', '--owner', 'acme', '--from', form, '--catalog', 'intents', '--out', out, ...more, project],
    { env },
  );
  const exported = await runUmpire(['catalogs', 'export', '--owner', 'acme'], { env });
  const read = (name: string) => {
    const file = join(folder, name);
    return existsSync(file) ? linesOf(readFileSync(file, 'utf8')).map((line) => JSON.parse(line)) : [];
  };
  return {
    ...ran,
    catalog: exported.out === '' ? undefined : JSON.parse(exported.out),
    examples: read('examples.jsonl'),
    tests: read('examples.test.jsonl'),
    notes: linesOf(ran.err).filter((line) => /^(left out|some texts)/.test(line)),
  };
}

test('LUIS: intents and utterances; entities, lists and patterns are left out', async (t) => {
  const { status, catalog, examples, tests, notes, out } = await imported('luis', { 'app.json': LUIS });
  t.is(status, 0);
  t.like(catalog, { id: 'intents', model: 'umpire-mini', choices: ['Book', 'Cancel', 'None'] });
  t.deepEqual(examples, [
    { input: 'book a flight to Paris', label: 'Book' },
    { input: 'what is for lunch?', label: 'None' },
  ]);
  t.deepEqual(tests, []);
  t.deepEqual(notes, [
    'left out: 1 utterances without a text or an intent',
    'left out: 3 entities, lists and features: a choice is decided from the text alone',
    'left out: 1 patterns: they have places for entities in their texts',
  ]);
  t.regex(
    out,
    /examples\.jsonl: 2 examples\nintents: 3 choices; 'umpire catalogs describe'.*\n1 created, 0 existed\n$/,
  );
});

test('CLU: the test set goes into a file of its own, other languages are named', async (t) => {
  const { status, catalog, examples, tests, notes } = await imported(
    'clu',
    { 'mail.json': CLU },
    '--model',
    'umpire-multi',
  );
  t.is(status, 0);
  t.like(catalog, { model: 'umpire-multi', choices: ['Read', 'Delete'] });
  t.deepEqual(
    examples.map(({ label }) => label),
    ['Read', 'Delete'],
  );
  t.deepEqual(tests, [{ input: 'delete the last one', label: 'Delete' }]);
  t.is(notes.at(-1), 'some texts are in de: choose a model that reads that');
});

test('Dialogflow ES: intents have the names that they have, phrases are joined, templates are left out', async (t) => {
  const { status, err, catalog, examples, notes } = await imported('dialogflow', DIALOGFLOW);
  t.is(status, 0, err);
  t.deepEqual(catalog.choices.toSorted(), ['Default Fallback Intent', 'Hours', 'Order: pizza']);
  t.deepEqual(
    examples.toSorted((a, b) => (a.input < b.input ? -1 : 1)),
    [
      { input: 'a large pizza', label: 'Order: pizza' },
      { input: 'una pizza', label: 'Order: pizza' },
      { input: 'when do you open?', label: 'Hours' },
    ],
  );
  t.deepEqual(notes, [
    'left out: 1 template phrases: they have places for entities in their texts',
    'left out: 1 entities, lists and features: a choice is decided from the text alone',
    'left out: 1 intents without training phrases: events and contexts lead to them, not texts',
    'some texts are in it: choose a model that reads that',
  ]);
});

test('Rasa: annotations go, retrieval intents stay whole, synonyms and tables are left out', async (t) => {
  const files = {
    'data/nlu.yml': RASA,
    'domain.yml': 'intents: [greet]\n',
    'data/more.yaml': 'nlu:\n- intent: greet\n  examples: |\n    - hi\n',
  };
  const { status, err, catalog, examples, notes } = await imported('rasa', files);
  t.is(status, 0, err);
  t.deepEqual(catalog.choices.toSorted(), ['faq/opening', 'greet', 'no']);
  t.deepEqual(examples.map(({ input }) => input).toSorted(), [
    'good morning - how are you?',
    'hey',
    'hi',
    'is the shop in Rome open on Sunday?',
    'never',
  ]);
  t.deepEqual(notes, ['left out: 2 synonyms, expressions and lookup tables: a choice is decided from the text alone']);
});

test('CSV: read as every command reads it; its labels are the choices, and learn takes the examples', async (t) => {
  const csv = 'Ticket;Text;Team\n1;"charged; twice";billing\n2;parcel lost;shipping\n3;short\n4;;billing\n';
  const columns = ['--input-column', 'Text', '--label-column', 'Team'];
  const { status, err, catalog, examples, notes } = await imported('csv', { 'sheet.csv': csv }, ...columns);
  t.is(status, 0, err);
  t.deepEqual(catalog.choices, ['billing', 'shipping']);
  const { examples: read, problems } = readExamples(
    examples.map((each) => `${JSON.stringify(each)}\n`).join(''),
    catalog.choices,
    readingFrom({ instruction: 'which' }),
  );
  t.deepEqual(problems, []);
  t.deepEqual(read.map(({ input }) => input).toSorted(), ['charged; twice', 'parcel lost']);
  t.regex(notes[0] ?? '', /^left out: line 4 of .*sheet\.csv: has 2 columns, the header has 3$/);
  t.is(notes[1], 'left out: 1 utterances without a text or an intent');
  const other = await imported('csv', { 'sheet.csv': csv });
  t.regex(other.err, /the header has no column 'input' and 'label'; it has 'Ticket', 'Text', 'Team'/);
});

test('what is not such a project changes nothing and says so', async (t) => {
  const cases = [
    ['clu', { 'app.json': LUIS }, /no intents were found: is this what clu exports\?/],
    ['luis', { 'app.json': '{' }, /app\.json: is not JSON: /],
    ['rasa', { 'nlu.yml': 'nlu: [' }, /nlu\.yml: is not YAML: /],
    ['luis', { 'app.json': [null, 7, { intents: 7, utterances: [null] }] }, /no intents were found/],
    ['luis', { 'app.json': { ...LUIS, intents: [{ name: 'Book' }], utterances: [] } }, /; nothing was imported/],
  ] as const;
  for (const [form, files, expected] of cases) {
    const { status, err, catalog, examples } = await imported(form, files);
    t.is(status, 1);
    t.regex(err, expected);
    t.deepEqual([catalog, examples], [undefined, []]);
  }
});
