/** `umpire evaluate --url` and `--costs`, and `decide --sure`, with a running service on a real socket. */
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'ava';
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
import { send } from '../../support/http.ts';
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
  t.like(
    choices.find(({ choice }: { choice: string }) => choice === 'blue'),
    { texts: 30, missed: { share: 1 / 3 } },
  );

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
