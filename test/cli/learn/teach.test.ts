/** `umpire teach`, with a small model in a real engine as the pupil and a model at a server as its teacher. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test, { type ExecutionContext } from 'ava';
import { startHttpModelServer } from '../../engine/support/http-models/server.ts';
import { modelsFolder, TINY } from '../../engine/support/packages.ts';
import { rerankOptions, writeRemotePackage } from '../../engine/support/remote-packages.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

const CHOICES = ['abc', 'mno', 'xyz'];
/** What a text is, by its first letters: other than its letters say, so that only the teacher can tell. */
const MEANT: Readonly<Record<string, string>> = { abc: 'mno', mno: 'xyz', xyz: 'abc', zzz: 'zzz' };

const texts = Array.from(
  { length: 120 },
  (_, i) => `${CHOICES[i % 3]} ${'defghijkl'.slice(i % 7)} ${i}${i % 10 === 9 ? ' fed' : ''}`,
);
const jsonl = (records: readonly object[]) => records.map((each) => `${JSON.stringify(each)}\n`).join('');
const record = (input: string) => ({ input, instruction: 'which' });

/** A catalog of the small model, texts, and a reranker that knows what they mean. Of texts with `fed` it is unsure. */
async function sceneOf(t: ExecutionContext) {
  t.timeout(300_000);
  const data = temporaryFolder();
  const asked: string[] = [];
  const refused = new Set<string>();
  const server = await startHttpModelServer(t, {
    path: '/v1/rerank',
    unauthorised: { status: 401, body: {} },
    rows: () => 1,
    async answer(body) {
      const { query, documents } = body as { query: string; documents: readonly string[] };
      // A process that is started tries the server with texts of its own.
      if (texts.includes(query)) asked.push(query);
      if (refused.has(query)) return { status: 400, body: { error: 'content_filter' } };
      const right = `it is ${MEANT[query.slice(0, 3)]}`;
      const sure = query.includes('fed') ? 0.2 : 4;
      const results = documents.map((each, index) => ({ index, relevance_score: each === right ? sure : 0 }));
      return { status: 200, body: { model: 'small', object: 'list', usage: { total_tokens: 1 }, results } };
    },
  });
  const modelsDir = await modelsFolder(t, TINY);
  const limits = { input_tokens: 30, candidate_tokens: 12, choices: 300 };
  const canary = { input: 'zzz', instruction: 'abc', choices: ['a', 'zzz'], choice: 'zzz' };
  await writeRemotePackage(modelsDir, server.address, {
    options: rerankOptions('llama.cpp'),
    manifest: { canary, limits },
  });
  const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
  const umpire = (words: string, terminal: Parameters<typeof runUmpire>[1] = {}) =>
    runUmpire(words.split(' '), { env, ...terminal });
  await umpire('catalogs import --owner acme', {
    input: JSON.stringify({ id: 'letters', model: 'tiny', choices: CHOICES }),
  });
  const file = join(data, 'texts.jsonl');
  writeFileSync(file, jsonl(texts.map(record)));
  const out = `${file}.asked.jsonl`;
  const lines = (): readonly Record<string, unknown>[] =>
    existsSync(out) ? linesOf(readFileSync(out, 'utf8')).map((line) => JSON.parse(line)) : [];
  const teach = (more = '', terminal: Parameters<typeof runUmpire>[1] = {}) =>
    umpire(`teach --owner acme --catalog letters --teacher remote --budget 60${more} ${file}`, terminal);
  return { data, umpire, teach, file, out, lines, asked, refused, server };
}

test('a catalog learns from what a teacher says; nothing is asked twice, and the file is one of examples', async (t) => {
  const { umpire, teach, out, lines, asked } = await sceneOf(t);
  const planned = await teach(' --dry-run');
  t.regex(planned.out, /120 texts, 120 of them new and unlike one another/);
  t.regex(planned.out, /0 texts have answers; 60 are to ask, \d+ tokens as tiny@r1 counts them/);
  t.regex(planned.err, /fewer than 8 sure answers and labels are too few/);
  t.deepEqual([asked.length, existsSync(out)], [0, false]);

  const taught = await teach();
  t.is(taught.status, 0, taught.err);
  t.is(asked.length, 60);
  t.is(lines().length, 60);
  t.regex(taught.out, /cost so far: 60 answers, \d+ tokens read, \d+\.\d s/);
  t.regex(taught.out, /5\d of them are sure at 0.5 or more/);
  const [, before, after] =
    /agrees with remote on \d+ held-out texts: ([\d.]+) % as it is, ([\d.]+) % after/.exec(taught.out) ?? [];
  t.true(Number(after) > Number(before), taught.out);
  t.regex(taught.out, /letters: learned weights for tiny@r1, digest/);
  for (const line of lines()) {
    const { input, label, choice, confidence, model, pupil } = line;
    t.is(choice, MEANT[String(input).slice(0, 3)]);
    t.is(label, Number(confidence) >= 0.5 ? choice : undefined);
    t.is(model, 'remote@r1');
    t.deepEqual(Object.keys(pupil as object), ['choice', 'confidence']);
  }
  const [stored = ''] = linesOf((await umpire('catalogs export --owner acme')).out);
  t.is(JSON.parse(stored).additions.learned.model, 'tiny@r1');

  // The same again asks nobody and teaches the same; more asks only for more.
  const digest = /digest ([0-9a-f]{16})/.exec(taught.out)?.[1];
  const again = await teach();
  t.is(/digest ([0-9a-f]{16})/.exec(again.out)?.[1], digest);
  t.regex(again.out, /what it learned before agrees with \d+\.\d % of all answers, and is replaced/);
  t.is(asked.length, 60);
  t.is((await teach(' --budget 70')).status, 0);
  t.is(new Set(asked).size, 70);
  t.is(asked.length, 70);

  // What was asked can be learned from without the teacher, and unsure answers are left to people.
  const learned = await umpire(`learn --owner acme --catalog letters ${out}`);
  t.is(learned.status, 0, learned.err);
  t.regex(learned.err, /\d lines have an answer or an error and no label; left out/);
});

test('people’s labels, and labels that people correct, count and have a veto', async (t) => {
  const { data, umpire, teach, file, out, lines } = await sceneOf(t);
  t.is((await teach()).status, 0);
  const corrected = lines().map((line, place) => (place < 10 ? { ...line, label: 'abc' } : line));
  writeFileSync(out, jsonl(corrected));
  const others = corrected.slice(0, 10).filter(({ choice }) => choice !== 'abc').length;
  const people = join(data, 'people.jsonl');
  const labelled = Array.from({ length: 30 }, (_, i) => {
    const input = `${CHOICES[i % 3]} ${'qrstu'.slice(i % 3)} p${i}`;
    return { ...record(input), label: MEANT[input.slice(0, 3)] };
  });
  writeFileSync(people, jsonl(labelled));
  const judged = await teach(` --dry-run --examples ${people}`);
  t.regex(judged.out, new RegExp(`and ${30 + others} labels of people; on the labels nothing may`), judged.err);
  t.regex(judged.out, new RegExp(`agrees with people on ${30 + others} held-out texts`));
  t.regex(judged.out, /nothing was changed$/m);
  // Those that are kept beside a catalog are the same.
  const kept = { id: 'kept', model: 'tiny', choices: CHOICES, examples: jsonl(labelled) };
  await umpire('catalogs import --owner acme', { input: JSON.stringify(kept) });
  const beside = await umpire(`teach --owner acme --catalog kept --teacher remote --dry-run --out ${out} ${file}`);
  const agreement = ({ out: said }: { readonly out: string }) => /agrees with people .*/.exec(said)?.[0];
  t.is(agreement(beside), agreement(judged), beside.err);
  // A text that has a person's label is not learned from a second time.
  const reviewed = lines().map(({ input, instruction, choice }) => ({ input, instruction, label: choice }));
  writeFileSync(people, jsonl(reviewed.slice(0, 20)));
  t.regex((await teach(` --dry-run --examples ${people}`)).out, /learning from 3\d answers and 20 labels of people/);
});

test('a teacher that is away, or a person who interrupts: what was asked is kept, and the run goes on', async (t) => {
  const { teach, lines, asked, server, umpire, out } = await sceneOf(t);
  const killed = (async () => {
    while (asked.length < 20) await new Promise((resolve) => setTimeout(resolve, 2));
    await server.kill();
  })();
  const away = await teach();
  await killed;
  t.is(away.status, 1);
  t.regex(away.err, /; \d+ of 60 texts got answers: the same command goes on after them/);
  const kept = lines().length;
  t.true(kept >= 10 && kept < 60, `${kept}`);
  t.notRegex((await umpire('catalogs export --owner acme')).out, /learned/);

  await server.revive();
  const interrupted = Promise.withResolvers<void>();
  const begun = asked.length;
  const stopping = (async () => {
    while (asked.length < begun + 5) await new Promise((resolve) => setTimeout(resolve, 2));
    interrupted.resolve();
  })();
  const stopped = await teach('', { interrupted: () => interrupted.promise });
  await stopping;
  t.is(stopped.status, 130);
  t.regex(stopped.err, /interrupted; \d+ of \d+ texts got answers/);

  // Half a line is what a kill leaves.
  writeFileSync(out, `${readFileSync(out, 'utf8')}{"input": "ab`);
  const finished = await teach();
  t.is(finished.status, 0, finished.err);
  t.is(lines().length, 60);
  t.is(new Set(lines().map(({ input }) => input)).size, 60);
});

test('what cannot be asked or learned is said, and nothing is changed', async (t) => {
  const { data, umpire, teach, file, out, lines, refused } = await sceneOf(t);
  const run = (words: string) => umpire(`teach --owner acme --catalog letters ${words} ${file}`);
  t.regex((await run('--teacher tiny')).err, /'letters' decides with tiny itself/);
  t.regex((await run('--teacher none')).err, /model 'none' is not served; 0 of 120 texts got answers/);

  // Texts that either model does not take, and lines without a text, are named and left out.
  const long = 'a b c d e f g h i j k l m n o p q r s t u v w x y z '.repeat(2);
  const longer = 'abc defghijklmnopqrstuvwxyz';
  writeFileSync(
    file,
    `${jsonl([...texts.map(record), record(long), { input: '' }])}nonsense\n${jsonl([record(longer)])}`,
  );
  for (const text of texts.slice(0, 5)) refused.add(text);
  const { status, err } = await teach(' --budget 130');
  t.is(status, 0, err);
  t.is(lines().length, 116);
  const found = lines().flatMap(({ input, error }) => (error === undefined ? [] : [input]));
  t.deepEqual(found, [longer]);
  t.regex(err, /line 124: has \d+ tokens, the model takes at most 30; left out/);
  t.is(err.match(/^line [1-5]: got no answer \(.*\); left out$/gm)?.length, 5, err);
  t.regex(err, /line 121: has (more than )?\d+ tokens, the model takes at most 40; left out/);
  t.regex(err, /line 122: input and instruction must be texts that are not empty; left out/);
  t.regex(err, /line 123: is not a JSON object; left out/);

  // What was asked of another teacher, or about other choices, is nothing to go on from.
  const first = lines()[0] as object;
  for (const [change, problem] of [
    [{ model: 'other@r1' }, /line 1: is an answer of other@r1; --out names another file/],
    [{ basis: '0' }, /line 1: is about other choices or descriptions than the catalog has now/],
    [{ probabilities: undefined }, /line 1: is broken/],
    [{ label: 'pink' }, /line 1: is broken/],
    [{ basis: undefined }, /line 1: is not what teach writes/],
  ] as const) {
    writeFileSync(out, jsonl([{ ...first, ...change }]));
    t.regex((await teach()).err, problem);
  }

  // A catalog that was changed while the teacher was asked stays as it is then.
  writeFileSync(out, '');
  refused.clear();
  const database = new DatabaseSync(join(data, 'umpire.db'));
  const changed = await teach('', {
    out: (line) => {
      if (line.startsWith('asking ')) database.exec("UPDATE catalogs SET stamp = 'again' WHERE id = 'letters'");
    },
  });
  database.close();
  t.regex(changed.err, /catalog 'letters' was changed or deleted while this ran, and stays as it is now/);
  t.true(lines().length >= 60);
});
