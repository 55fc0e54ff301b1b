/**
 * `umpire learn`, beside a running service on the same store, with a small model in a real engine; and what it says of
 * files of examples that cannot be read as they are.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test, { type ExecutionContext } from 'ava';
import { readingFrom } from '../../../src/cli/decide/records.ts';
import { problemLines, readExamples } from '../../../src/cli/learn/examples.ts';
import { modelsFolder, TINY } from '../../engine/support/packages.ts';
import { json } from '../../support/answers.ts';
import { decide, send } from '../../support/http.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

/** A folder with a small model and a store, commands on it by their words, and a file of examples. */
async function sceneOf(t: ExecutionContext) {
  const data = temporaryFolder();
  const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: await modelsFolder(t, TINY) };
  const umpire = (words: string, terminal: Parameters<typeof runUmpire>[1] = {}) =>
    runUmpire(words.split(' '), { env, ...terminal });
  return { data, env, umpire, file: join(data, 'labels.jsonl') };
}
const line = (label: string, input = 'abc') => `${JSON.stringify({ input, instruction: 'which', label })}\n`;

interface Decided {
  readonly learned: unknown;
  readonly choice: string;
  readonly confidence: number;
}

test('a catalog learns, says so with its decisions, travels with what it learned and forgets', async (t) => {
  const { env, umpire, file } = await sceneOf(t);
  const service = await startService(env);
  t.teardown(service.stop);
  const key = linesOf((await umpire('keys create --owner acme')).out).at(-1) ?? '';
  const headers = { authorization: `Bearer ${key}` };
  const choices = ['xyz', 'abc', 'mno'];
  const decided = async (input: string, asked: object = { catalog: 'letters' }): Promise<Decided> => {
    const answer = await decide(service.port, { model: 'tiny', input, instruction: 'which', ...asked }, headers);
    const { output } = json(answer) as { output: Omit<Decided, 'learned'> };
    return { ...output, learned: answer.headers['x-umpire-learned'] };
  };
  const catalog = JSON.stringify({ id: 'letters', model: 'tiny', choices });
  t.is((await send(service.port, { path: '/v1/catalogs', headers, body: catalog })).status, 201);

  const texts = Array.from(
    { length: 90 },
    (_, i) => `${['abc', 'mno', 'xyz'][i % 3]} ${'defghijkl'.slice(i % 7)} ${i}`,
  );
  // Another choice than the one whose letters a text has: only examples can say so.
  const labels = texts.map((_, i) => ['mno', 'xyz', 'abc'][i % 3] as string);
  const write = (from: number, to = texts.length) =>
    writeFileSync(
      file,
      texts
        .map((input, i) => line(labels[i] as string, input))
        .slice(from, to)
        .join(''),
    );
  const target = '--catalog letters --owner acme';
  const wait = () => new Promise((resolve) => setTimeout(resolve, 1000));
  const unseen = texts.slice(0, 15);
  const right = (answers: readonly Decided[]) => answers.filter(({ choice }, i) => choice === labels[i]).length;
  const before = await Promise.all(unseen.map((text) => decided(text)));
  t.true(before.every(({ learned }) => learned === undefined));
  t.true(right(before) < 8);

  write(15);
  // Whoever measures on what was learned from is told so, where nobody can leave it out.
  t.is((await umpire(`learn ${target} ${file}`)).status, 0);
  const fooled = await umpire(`evaluate ${target} ${file}`);
  t.regex(fooled.err, /keeps no examples: if it learned from these, it seems far better/);
  const taught = await umpire(`learn ${target} --keep-examples ${file}`);
  t.is(taught.status, 0, taught.err);
  t.regex(taught.out, /letters: learned weights for tiny@r1, digest [0-9a-f]{16}; every server/);
  const digest = /digest ([0-9a-f]{16})/.exec(taught.out)?.[1] ?? '';
  await wait();
  const after = await Promise.all(unseen.map((text) => decided(text)));
  t.true(after.every(({ learned }) => learned === digest));
  t.true(right(after) > right(before), `${right(after)} and before ${right(before)} of 15`);

  // Inline choices never are, and what was learned is the same for the same examples.
  t.is((await decided(unseen[0] as string, { choices })).learned, undefined);
  const again = await umpire(`learn ${target} --refresh`);
  t.regex(again.out, new RegExp(`digest ${digest}`), again.err);

  // It is measured on what it did not learn from, exported and imported, and goes with the catalog.
  const known = await umpire(`evaluate ${target} ${file}`);
  t.regex(known.err, /75 of 75 examples are nearly the same as ones that the catalog learned from/);
  write(0, 15);
  const measured = await umpire(`evaluate ${target} --json ${file}`);
  t.is(measured.status, 0, measured.err);
  t.true(JSON.parse(measured.out).accuracy.share > 0.5);
  t.notRegex(measured.err, /far better/);
  const exported = await umpire('catalogs export --owner acme');
  writeFileSync(file, exported.out);
  await send(service.port, { method: 'DELETE', path: '/v1/catalogs/letters', headers });
  t.is((await umpire(`catalogs import --owner acme ${file}`)).status, 0);
  await wait();
  t.deepEqual(await decided(unseen[0] as string), after[0]);
  t.is((await umpire(`learn ${target} --refresh`)).status, 0);
  t.is((await umpire(`learn ${target} --forget`)).status, 0);
  await wait();
  t.deepEqual(await Promise.all(unseen.map((text) => decided(text))), before);
  t.is((await umpire(`learn ${target} --forget`)).status, 1);
  t.regex((await umpire(`learn ${target} --refresh`)).err, /no examples are kept/);

  // What one revision learned never decides for another.
  write(15);
  t.is((await umpire(`learn ${target} ${file}`)).status, 0);
  const [kept = ''] = (await umpire('catalogs export --owner acme')).out.split('\n');
  const state = JSON.parse(kept).additions.learned;
  t.is(state.model, 'tiny@r1');
  t.is(
    state.examples.reduce((sum: number, count: number) => sum + count, 0),
    75,
  );
});

const TWO = JSON.stringify({ id: 'two', model: 'tiny', choices: ['abc', 'xyz'] });

test('every problem of the examples is said at once, and nothing changes', async (t) => {
  const { umpire, file } = await sceneOf(t);
  await umpire('catalogs import --owner acme', { input: TWO });
  const before = (await umpire('catalogs export --owner acme')).out;
  const learn = async (content: string, id = 'two') => {
    writeFileSync(file, content);
    return umpire(`learn --catalog ${id} --owner acme ${file}`);
  };
  t.regex((await learn(line('abc'), 'none')).err, /acme has no catalog 'none'/);
  t.regex((await learn(line('abc'))).err, /1 examples are too few: 8 are the least/);
  const far = `abc ${'x'.repeat(99)} `.repeat(50);
  const wrong = await learn(
    `${line('abc')}nonsense\n${line('mno', far)}{"input":"","label":"abc"}\n${line('xyz')}${line('abc', far)}`,
  );
  t.is(wrong.status, 1);
  t.regex(wrong.err, /line 2: is not a JSON object/);
  t.regex(wrong.err, /line 3: the label "mno" is not one of the choices/);
  t.regex(wrong.err, /line 4: input, instruction must be a text that is not empty/);
  t.regex(wrong.err, /lines 1, 5: one text under several labels; left out/);
  // A text that the model does not take is found with the others, also in a line that has another fault,
  // in their order.
  t.deepEqual(wrong.err.match(/line \d: has more than \d+ tokens, the model takes at most 40/g)?.length, 2);
  t.deepEqual(
    [...wrong.err.matchAll(/line (\d): /g)].map(([, place]) => place),
    ['2', '3', '3', '4', '6'],
  );
  t.regex(wrong.err, /1 examples are too few: 8 are the least.*\nnothing was changed/);
  // Nothing was decided for it.
  t.notRegex(wrong.out, /deciding/);
  const long = Array.from({ length: 10 }, (_, i) => line('abc', i < 2 ? `abc ${i} `.repeat(50) : `abc ${i}`));
  t.regex(
    (await learn(long.join(''))).err,
    /line 1: has (more than )?\d+ tokens, the model takes at most \d+\n.*line 2: /s,
  );

  // Labels that nothing explains teach nothing.
  const chance = Array.from({ length: 8 }, (_, i) => line(i % 2 === 0 ? 'abc' : 'xyz', `def ${i * 7919}`));
  const refused = await learn(chance.join(''));
  t.is(refused.status, 1);
  t.regex(refused.err, /nothing beats the model as it is by more than chance; nothing was changed/);
  t.is((await umpire('catalogs export --owner acme')).out, before);
});

const CHANGES: Readonly<Record<string, string>> = {
  'other choices': `UPDATE catalogs SET choices = '["abc","mno"]', stamp = 'other' WHERE id = 'two'`,
  'a write that changed nothing else': "UPDATE catalogs SET stamp = 'again' WHERE id = 'two'",
  deleted: "DELETE FROM catalogs WHERE id = 'two'",
};

test('a change meanwhile stays, and the command says that it wrote nothing', async (t) => {
  const { data, umpire, file } = await sceneOf(t);
  const lines = Array.from({ length: 40 }, (_, i) => line(i % 2 ? 'xyz' : 'abc', `${i % 2 ? 'abc' : 'xyz'} ${i}`));
  writeFileSync(file, lines.join(''));
  const select = "SELECT * FROM catalogs WHERE id = 'two'";
  for (const [what, sql] of Object.entries(CHANGES)) {
    t.is((await umpire('catalogs import --owner acme', { input: TWO })).status, 0, what);
    const database = new DatabaseSync(join(data, 'umpire.db'));
    let changed: unknown;
    const out: string[] = [];
    const { status, err } = await umpire(`learn --catalog two --owner acme --keep-examples ${file}`, {
      out(text) {
        out.push(text);
        if (!text.startsWith('deciding ')) return;
        database.exec(sql);
        changed = database.prepare(select).get();
      },
    });
    const after = database.prepare(select).get();
    database.exec("DELETE FROM catalogs WHERE id = 'two'");
    database.close();
    t.is(status, 1, what);
    // It would have learned something.
    t.true(out.includes('after:'), what);
    t.regex(err, /^umpire learn: catalog 'two' was changed or deleted while this ran, and stays as it is now; run it/m);
    t.deepEqual(after, changed as never, what);
  }
});

test('evaluate reads CSV, prints thresholds and confusions, and writes a page that needs nothing else', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const folder = temporaryFolder();
  const files = { csv: join(folder, 'e.csv'), json: join(folder, 'e.jsonl'), choices: join(folder, 'c.txt') };
  const page = join(folder, 'report.html');
  const choices = ['abc', '<b>&"x', 'mno'];
  const examples = Array.from({ length: 30 }, (_, i) => ({
    input: `${['abc', 'xyz', 'mno'][i % 3]}, "${i}"`,
    label: choices[(i + (i % 5 === 0 ? 1 : 0)) % 3] as string,
  }));
  const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
  const rows = examples.map(({ input, label }) => `${quoted(label)},${quoted(input)}\r\n`);
  writeFileSync(files.csv, `\ufefflabel,input\r\n${rows.join('')}`);
  writeFileSync(files.json, examples.map((each) => `${JSON.stringify(each)}\n`).join(''));
  writeFileSync(files.choices, choices.join('\n'));
  const evaluate = (file: string, ...more: string[]) =>
    runUmpire(['evaluate', '--model', 'tiny', '--choices', files.choices, '--instruction', 'which', ...more, file], {
      env: { UMPIRE_MODELS_DIR: modelsDir },
    });
  const { status, out, err } = await evaluate(files.csv, '--report', page);
  t.is(status, 0, err);
  t.regex(out, /^30 examples with tiny@r1\nright answers: [\d.]+ % \(95 % interval/);
  t.is(out.match(/^(80|90|95|99)\.0 % /gm)?.length, 4);
  t.regex(out, /taken for each other most often:\n {2}".*" taken for ".*": \d+\n {4}line \d+: /);

  // The same file as JSON lines gives the same figures; lines are those of each file.
  const [csv, json] = await Promise.all([evaluate(files.csv, '--json'), evaluate(files.json, '--json')]);
  const { confusions: ofCsv, ...figures } = JSON.parse(csv.out);
  const { confusions: ofJson, ...others } = JSON.parse(json.out);
  t.deepEqual(figures, others);
  t.deepEqual(
    ofCsv[0].lines.map((line: number) => line - 1),
    ofJson[0].lines,
  );

  const html = readFileSync(page, 'utf8');
  t.regex(html, /default-src 'none'/);
  t.is(html.match(/<svg /g)?.length, 1);
  for (const head of ['When to act on an answer', 'Each choice', 'Wrong answers', 'All answers'])
    t.true(html.includes(`<h2>${head}</h2>`), head);
  // In sentences: which file, how many, what is likely of other texts, and what to do.
  const words = html.replaceAll('&nbsp;', ' ');
  t.regex(words, /30 texts of .*e\.csv, whose right answers are known, decided with tiny@r1\. Question: which</);
  t.regex(words, /Of 30 texts, \d+ got the right answer: [\d.]+ %\. .* between [\d.]+ and [\d.]+ % are likely/);
  t.regex(words, /Always the most frequent choice, .*, would be right for 10: 33\.3 %\./);
  t.regex(words, /<p>\d+ of .* (was|were) sent to .*:<\/p><ul><li>“/);
  t.regex(words, /Act on answers with a confidence of [\d.]+ or more|At no confidence are nine of ten answers right/);
  t.regex(words, /<td>abc<\/td><td>\d+ of 10 \([\d.]+ to [\d.]+ %\)<\/td><td>\d+ of 20<\/td>/);
  t.regex(words, /“mno, &quot;\d+&quot;” \(line \d+\)/);
  // Nothing from elsewhere, and no choice as markup.
  t.notRegex(html, /(src|href)=|url\(|<script|<b>/);
  t.true(html.includes('&lt;b&gt;&amp;&quot;x'));
  t.true(words.includes(`${(100 * figures.accuracy.share).toFixed(1)} %`));
  t.notRegex(html, /NaN|undefined/);
});

const CHOICES = ['billing', 'cancellation', 'Überweisung'];

test('a header with other names: one line says what it has, before any row', (t) => {
  const { problems } = readExamples('Ticket;Text;Team\n1;a;billing\n2;b;billing\n', CHOICES);
  t.deepEqual(problemLines(problems), [
    "line 1: the header has no column 'input' and 'instruction' and 'label'; it has 'Ticket', 'Text', 'Team': --input-column, --instruction-column, --label-column NAME says which it is; --instruction TEXT is for records that have none",
  ]);
});

test('its columns can be named', (t) => {
  const reading = readingFrom({ instruction: 'Which?', 'input-column': 'Text', 'label-column': 'Team' });
  const { examples, problems } = readExamples('Ticket;Text;Team\n1;a b c;billing\n', CHOICES, reading);
  t.deepEqual(problems, []);
  t.like(examples[0], { line: 2, input: 'a b c', instruction: 'Which?', label: 'billing' });
});

const LABELS: Readonly<Record<string, readonly [label: unknown, problem: RegExp]>> = {
  'another case': ['Cancellation', /the label "Cancellation" is not one of the choices; did you mean "cancellation"\?/],
  'white space': ['cancellation\u00a0', /did you mean "cancellation"\?/],
  'an invisible sign': ['bill\u200bing', /did you mean "billing"\?/],
  'another normalisation': ['U\u0308berweisung', /did you mean "Überweisung"\?/],
  'a slip': ['biling', /did you mean "billing"\?/],
  'a number': [3, /label must be a text that is not empty: write the number 3 as "3"/],
};

for (const [name, [label, problem]] of Object.entries(LABELS)) {
  test(`a label that misses by ${name}`, (t) => {
    const { problems } = readExamples(JSON.stringify({ input: 'a', instruction: 'b', label }), CHOICES);
    t.is(problems.length, 1);
    t.regex(problems[0]?.problem ?? '', problem);
  });
}

test('nothing is suggested for a label that is like none', (t) => {
  const { problems } = readExamples('{"input":"a","instruction":"b","label":"shipping"}', CHOICES);
  t.deepEqual(problems, [{ line: 1, problem: 'the label "shipping" is not one of the choices' }]);
});
