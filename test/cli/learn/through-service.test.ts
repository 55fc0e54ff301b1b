/**
 * `umpire evaluate --url` and `--costs`, and `decide --sure`, with a running service on a real socket; and catalogs of
 * models at servers, which learn by vectors where the server gives them, by what they say otherwise.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type ServedDialect, startHttpModelServer } from '../../engine/support/http-models/server.ts';
import { modelsFolder } from '../../engine/support/packages.ts';
import {
  rerankOptions,
  servedEncoder,
  servedReranker,
  TEXT_EMBEDDING_OPTIONS,
  writeRemotePackage,
} from '../../engine/support/remote-packages.ts';
import {
  CHOICES,
  choicesFile,
  decide,
  fault,
  jsonLines,
  key,
  newFile,
  records,
  start,
} from '../../support/decide-command.ts';
import { decide as decideOnce, send } from '../../support/http.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

const evaluate = (url: string, args: readonly string[], env: Record<string, string> = {}) =>
  runUmpire(['evaluate', '--url', url, '--instruction', 'which colour', ...args], { env });
const BY_CHOICES = ['--model', 'mock', '--choices', choicesFile];
/** Sixty examples; ten of them carry another label than their text has. */
const examples = records(60)
  .trim()
  .split('\n')
  .map((line, i) => (i % 6 === 0 ? { ...JSON.parse(line), label: 'blue' } : JSON.parse(line)));
const file = newFile(examples.map((each) => `${JSON.stringify(each)}\n`).join(''));

test('measures what a service answers, also by a catalog, for whoever has a key', async (t) => {
  const url = await start(t, { faults: [fault('503; retry-after=none', 0.05)] });
  const { status, out, err } = await evaluate(url, [...BY_CHOICES, file]);
  t.is(status, 0, err);
  t.regex(out, /^60 examples with mock@r1\nright answers: 83\.3 %/);
  // Both rates of each choice: ten reds and greens are labelled blue.
  t.regex(out, /\nmissed +wrongly answered +choice\n/);
  t.regex(out, /^10 of 30, 33\.3 % +0 of 30, 0\.0 % +"blue"$/m);
  t.regex(out, /^0 of 10, 0\.0 % +10 of 50, 20\.0 % +"red"$/m);

  const headers = { authorization: `Bearer ${key}` };
  const body = JSON.stringify({ id: 'colours', model: 'mock', choices: CHOICES });
  t.is((await send(Number(new URL(url).port), { path: '/v1/catalogs', headers, body })).status, 201);
  const stored = await evaluate(url, ['--catalog', 'colours', '--json', file], { UMPIRE_KEY: key });
  t.is(stored.status, 0, stored.err);
  t.like(JSON.parse(stored.out), { model: 'mock@r1', examples: 60 });
  const { choices } = JSON.parse(stored.out);
  const found = choices.find(({ choice }: { choice: string }) => choice === 'blue');
  t.like(found, { texts: 30, missed: { share: 1 / 3 } });

  t.regex((await evaluate(url, ['--catalog', 'none', file], { UMPIRE_KEY: key })).err, /catalog_not_found: /);
  t.regex((await evaluate(url, ['--catalog', 'colours', file])).err, /authentication_required: /);
  const wrong = newFile('{"input":"red","label":"pink"}\n{"input":"","label":"red"}\n');
  const refused = await evaluate(url, [...BY_CHOICES, wrong]);
  t.regex(refused.err, /line 1: the label "pink".*\nline 2: input must be/);
  const long = newFile(`${JSON.stringify({ input: 'word '.repeat(4000), label: 'red' })}\n`);
  t.regex((await evaluate(url, [...BY_CHOICES, long])).err, /line 1: input_tokens_exceeded: /);
});

test('--costs finds what costs least, and decide --sure marks by it', async (t) => {
  const url = await start(t);
  const costs = newFile('{"person": 1, "wrong": 4, "mistakes": [{"choice": "green", "cost": 1000}]}');
  const report = `${costs}.html`;
  const measured = await evaluate(url, [...BY_CHOICES, '--costs', costs, '--report', report, file]);
  t.is(measured.status, 0, measured.err);
  const [, acting, asking] = /([\d.]+) if every answer is acted on, ([\d.]+) if none is/.exec(measured.out) ?? [];
  const said = `${Number(asking).toFixed(2)} if a person decides each and ${Number(acting).toFixed(2)} if every answer`;
  const html = readFileSync(report, 'utf8');
  t.true(html.includes(`<h2>What costs least</h2>\n<p>A text costs ${said} is acted on.`), html);
  t.is(html.match(/<td>(never|[\d.]+) to (never|[\d.]+)<\/td>/g)?.length, CHOICES.length);
  t.regex(measured.out, /\nwhat costs least:\nact at or above +95 % interval +on the answer\n/);
  t.regex(measured.out, /\ncost of a text: [\d.]+ \(95 % interval [\d.]+ to [\d.]+\); .* 1\.000 if none is\n$/);
  const few = newFile('{"input":"red","label":"red"}\n');
  t.regex((await evaluate(url, [...BY_CHOICES, '--costs', costs, few])).err, /1 examples are too few for --costs: 20/);
  const sureFile = newFile((await evaluate(url, [...BY_CHOICES, '--costs', costs, '--json', file])).out);
  const { sure, costs: figures } = JSON.parse(readFileSync(sureFile, 'utf8'));
  t.deepEqual(Object.keys(sure), CHOICES.toSorted());
  // Every green answer that is right has its threshold, or a person decides: no mistake is worth it.
  t.true(figures.cost <= figures.asking_always + 1 && figures.acting_on_all > 0);

  const { status, out, err } = await decide(url, ['--sure', sureFile], { input: records(9) });
  t.deepEqual([status, err], [0, '9 lines decided\n']);
  for (const line of jsonLines(out)) {
    const threshold = sure[line.choice as string];
    t.is(line.sure, threshold !== null && (line.confidence as number) >= threshold);
  }
  const csv = await decide(url, ['--sure', sureFile, '--format', 'csv'], { input: records(2) });
  t.is(linesOf(csv.out)[0], 'id,input,label,choice,confidence,sure,model,learned,error');
  t.regex(linesOf(csv.out)[1] ?? '', /,(true|false),mock@r1,,$/);

  writeFileSync(sureFile, JSON.stringify({ model: 'mock@r0', sure: { red: 0, green: null } }));
  const other = await decide(url, ['--sure', sureFile], { input: records(3) });
  t.is(linesOf(other.err)[0], 'what is sure was measured with mock@r0, and mock@r1 decided: measure it again');
  t.deepEqual(
    jsonLines(other.out).map((line) => line.sure),
    [true, false, false],
  );
  t.regex(
    (await decide(url, ['--sure', file], { input: records(3) })).err,
    /is not what evaluate --costs --json writes/,
  );
});

test('a file of costs that cannot be read says why', async (t) => {
  const url = await start(t);
  for (const [content, expected] of [
    ['{', /is not JSON/],
    ['[]', /the file is not an object/],
    ['{"person": 1}', /wrong must be a number that is not negative/],
    ['{"person": -1, "wrong": 1}', /person must be a number that is not negative/],
    ['{"person": 1, "wrong": 1, "persons": 2}', /the file has "persons"; it may have person, wrong, mistakes/],
    ['{"person": 1, "wrong": 1, "mistakes": 2}', /mistakes must be a list/],
    ['{"person": 1, "wrong": 1, "mistakes": [{"label": "pink", "cost": 1}]}', /mistakes\[0\]: "pink" is not one/],
    ['{"person": 1, "wrong": 1, "mistakes": [{"label": "red"}]}', /mistakes\[0\]\.cost must be a number/],
  ] as const) {
    const { status, err } = await evaluate(url, [...BY_CHOICES, '--costs', newFile(content), file]);
    t.is(status, 1);
    t.regex(err, expected);
  }
});

const TOKEN = 'UMPIRE_TOKEN_LEARNING';
const SIXTY = Array.from({ length: 60 }, (_, i) => i);
/** Another choice than the one whose letters a text has: only examples can say so. */
const TAUGHT = SIXTY.map((i) => ({
  input: `${['abc', 'mno', 'xyz'][i % 3]} ${'defghijkl'.slice(i % 7)} ${i}`,
  label: ['mno', 'xyz', 'abc'][i % 3],
}));
/** The model says zzz to all; what is asked is mostly abc. */
const SKEWED = SIXTY.map((i) => ({
  input: `${'bcdef'.slice(i % 4)} ${i}`,
  label: i % 10 < 7 ? 'abc' : i % 10 < 9 ? 'zzz' : 'mno',
}));

const CASES: readonly (readonly [
  name: string,
  served: () => Promise<ServedDialect>,
  options: Readonly<Record<string, unknown>>,
  choices: readonly string[],
  examples: readonly { readonly input: string; readonly label: string | undefined }[],
  said: RegExp,
])[] = [
  [
    'an encoder',
    () => servedEncoder(),
    TEXT_EMBEDDING_OPTIONS,
    ['xyz', 'abc', 'mno'],
    TAUGHT,
    /learned weights for remote@r1/,
  ],
  [
    'a reranker',
    () => servedReranker('llama.cpp'),
    rerankOptions('llama.cpp'),
    ['xyz', 'abc', 'mno'],
    TAUGHT,
    /learned temperature for remote@r1/,
  ],
  [
    'a reranker, from examples as they come',
    () => servedReranker('vllm'),
    rerankOptions('vllm'),
    ['abc', 'mno', 'zzz'],
    SKEWED,
    / {2}bias .*: taken\n(?!.* {2}weights ).*learned bias for remote@r1/s,
  ],
];
for (const [name, served, options, choices, examples, said] of CASES) {
  test.serial(`${name}, whose token is in the environment`, async (t) => {
    t.timeout(180_000);
    process.env[TOKEN] = 'right-one';
    const server = await startHttpModelServer(t, await served());
    server.behaviour.token = 'right-one';
    const modelsDir = await modelsFolder(t);
    const canary = { input: 'zzz', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
    await writeRemotePackage(modelsDir, server.address, {
      options: { ...options, server: { token_env: TOKEN } },
      manifest: { canary },
    });
    const data = temporaryFolder();
    const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
    const service = await startService(env);
    t.teardown(async () => {
      await service.stop();
      delete process.env[TOKEN];
    });
    const umpire = (...args: string[]) => runUmpire(args, { env });
    const key = linesOf((await umpire('keys', 'create', '--owner', 'acme')).out).at(-1) ?? '';
    const headers = { authorization: `Bearer ${key}` };
    const catalog = JSON.stringify({ id: 'letters', model: 'remote', choices });
    const made = await send(service.port, { path: '/v1/catalogs', headers, body: catalog });
    t.is(made.status, 201, made.text);
    const file = join(data, 'labels.jsonl');
    writeFileSync(file, examples.map((each) => `${JSON.stringify({ ...each, instruction: 'which' })}\n`).join(''));
    const taught = await umpire('learn', '--catalog', 'letters', '--owner', 'acme', file);
    t.regex(taught.out + taught.err, said);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const asked = { model: 'remote', input: examples[0]?.input, instruction: 'which', catalog: 'letters' };
    const decided = await decideOnce(service.port, asked, headers);
    t.is(decided.status, 200);
    t.is(decided.headers['x-umpire-learned'] !== undefined, taught.status === 0);
  });
}
