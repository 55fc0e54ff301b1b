/**
 * `umpire catalogs describe`, `show` and `replace` beside a running service, on both kinds of store, with a small model
 * in a real engine.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createStoreBudget } from '../../../src/stores/budget.ts';
import { UNBOUNDED } from '../../../src/stores/catalog-store.ts';
import { modelsFolder, TINY, writePackage } from '../../engine/support/packages.ts';
import { json } from '../../support/answers.ts';
import { decide } from '../../support/http.ts';
import { issueKey } from '../../support/keys.ts';
import { openStores } from '../../support/open-stores.ts';
import { startRedis } from '../../support/redis.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { runUmpire } from '../../support/terminal.ts';

const budget = () => createStoreBudget(10_000);
const CHOICES = ['xyz', 'abc', 'mno'];
const wait = () => new Promise((resolve) => setTimeout(resolve, 1000));

for (const kind of ['sqlite', 'redis'] as const) {
  test.serial(
    `${kind}: descriptions are read in place of choices, travel with the catalog, and never outlive what was learned with others`,
    async (t) => {
      const modelsDir = await modelsFolder(t, TINY);
      const folder = temporaryFolder();
      const redis = kind === 'redis' ? await startRedis() : undefined;
      const place = redis === undefined ? { UMPIRE_DATA_DIR: folder } : { REDIS_URL: redis.url };
      const stores = await openStores(place);
      const service = await startService({ ...place, UMPIRE_MODELS_DIR: modelsDir });
      t.teardown(async () => {
        await service.stop();
        await stores.close();
        await redis?.stop();
      });
      const { headers } = await issueKey(stores, 'acme');
      const createdAt = '2026-01-02T03:04:05.678Z';
      const record = { id: 'letters', model: 'tiny', choices: CHOICES, version: '1', visibility: 'private', createdAt };
      await stores.catalogs.create('acme', record, UNBOUNDED, budget());
      const env = { ...place, UMPIRE_MODELS_DIR: modelsDir };
      const target = '--owner acme --catalog letters';
      const umpire = (words: string) => runUmpire(words.split(' '), { env });
      const file = (content: string): string => {
        const path = join(folder, `file-${content.length}.txt`);
        writeFileSync(path, content);
        return path;
      };
      const show = async () => JSON.parse((await umpire(`catalogs show ${target} --json`)).out);
      const decided = async (input: string, asked: object = { catalog: 'letters' }) => {
        const answer = await decide(service.port, { model: 'tiny', input, instruction: 'which', ...asked }, headers);
        const { output } = json(answer) as { output: { choice: string; probabilities: object } };
        return { ...output, learned: answer.headers['x-umpire-learned'] };
      };

      // The same probabilities as for such texts inline, under the bare names.
      const bare = await decided('defdef');
      const csv = file('choice,description\nabc,"def def"\nmno,"g ""h"", i"\n');
      const described = await umpire(`catalogs describe ${target} ${csv}`);
      t.is(described.status, 0, described.err);
      t.regex(described.out, /^letters: changed, on every server within a second$/m);
      await wait();
      const after = await decided('defdef');
      t.notDeepEqual(after.probabilities, bare.probabilities);
      const inline = await decided('defdef', { choices: ['xyz', 'abc: def def', 'mno: g "h", i'] });
      t.deepEqual(Object.keys(after.probabilities).toSorted(), CHOICES.toSorted());
      t.deepEqual(Object.values(after.probabilities).toSorted(), Object.values(inline.probabilities).toSorted());
      t.is(after.choice, 'abc');
      t.deepEqual((await show()).choices, [
        { choice: 'xyz', description: null, examples: null },
        { choice: 'abc', description: 'def def', examples: null },
        { choice: 'mno', description: 'g "h", i', examples: null },
      ]);

      // It travels with the catalog, and goes with it.
      const exported = (await umpire('catalogs export --owner acme')).out;
      const backup = join(folder, 'backup.jsonl');
      t.is((await umpire(`backup ${backup}`)).status, 0);
      await stores.catalogs.delete('acme', 'letters', budget());
      t.is((await runUmpire(['catalogs', 'import', '--owner', 'acme'], { env, input: exported })).status, 0);
      await wait();
      t.deepEqual(await decided('defdef'), after);
      await stores.catalogs.delete('acme', 'letters', budget());
      t.is((await umpire(`restore ${backup}`)).status, 0);
      t.is((await umpire('catalogs export --owner acme')).out, exported);

      // Every problem at once, each with its line, and nothing is changed.
      const lines = [
        '{"choice":"other","description":"x"}',
        'nonsense',
        '{"choice":"abc","description":" "}',
        '{"choice":"xyz","description":"abc def ghi jkl mno pqr"}',
        '{"choice":"mno","description":"a"}',
        '{"choice":"mno","description":"b"}',
        '{"description":"c"}\n',
      ];
      const wrong = await umpire(`catalogs describe ${target} ${file(lines.join('\n'))}`);
      t.is(wrong.status, 1);
      t.deepEqual(wrong.err.split('\n').slice(1, -1), [
        'umpire catalogs describe: line 1: "other" is not one of the choices',
        'line 2: is not a JSON object',
        'line 3: description must be a text that is not empty',
        'line 4: "xyz" has 22 tokens with its description, tiny@r1 takes at most 12',
        'line 6: "mno" is on line 5 as well',
        'line 7: choice must be a text that is not empty',
        'nothing was changed',
      ]);
      t.is((await umpire('catalogs export --owner acme')).out, exported);
      t.regex((await umpire(`catalogs describe --owner other --catalog letters ${backup}`)).err, /no catalog/);

      // What is learned belongs to what is read: another description needs the examples, or an explicit word.
      const texts = Array.from(
        { length: 120 },
        (_, i) => `${['abc', 'mno', 'xyz'][i % 3]} ${'defghi'.slice(i % 5)} ${i}`,
      );
      const examples = file(
        texts
          .map((input, i) => JSON.stringify({ input, instruction: 'which', label: ['mno', 'xyz', 'abc'][i % 3] }))
          .join('\n'),
      );
      t.is((await umpire(`learn ${target} ${examples}`)).status, 0);
      const state = (await show()).learned;
      t.like(state, { model: 'tiny@r1', applies: true, rung: 'weights', examples: 120 });
      const other = file('{"choice":"xyz","description":"jkl"}');
      const refused = await umpire(`catalogs describe ${target} ${other}`);
      t.is(refused.status, 1);
      t.regex(
        refused.err,
        /what 'letters' learned belongs to its choices as they are read now.*--forget gives it up\nnothing was changed/,
      );
      t.is((await show()).learned.digest, state.digest);
      const given = await umpire(`catalogs describe ${target} --forget ${other}`);
      t.regex(given.out, /what was learned is given up: it decides zero-shot, on every server/);
      t.is((await show()).learned, null);

      t.is((await umpire(`learn ${target} --keep-examples ${examples}`)).status, 0);
      const taught = await show();
      t.is(taught.kept_examples, 120);
      t.deepEqual(taught.choices[1], { choice: 'abc', description: 'def def', examples: 40 });
      // The same words change nothing; others are learned with anew, in one write.
      t.is((await umpire(`catalogs describe ${target} ${other}`)).status, 0);
      t.is((await show()).learned.digest, taught.learned.digest);
      const anew = await umpire(`catalogs describe ${target} --remove ${file('choice\nxyz\nabc\n')}`);
      t.regex(anew.out, /^learning anew from 120 kept examples with tiny@r1$/m);
      const relearned = await show();
      t.not(relearned.learned.digest, taught.learned.digest);
      t.deepEqual(
        relearned.choices.map(({ description }: { description: string | null }) => description),
        [null, null, 'g "h", i'],
      );
      await wait();
      t.is((await decided('abc def')).learned, relearned.learned.digest);

      // Other choices: what still applies stays.
      const page = await umpire(`catalogs show ${target}`);
      t.regex(page.out, /^CHOICE +EXAMPLES +DESCRIPTION$/m);
      t.regex(page.out, /^mno +40 +g "h", i$/m);
      t.regex(page.out, /^learned weights for tiny@r1 from 120 examples/m);
      t.regex(page.out, /^ {2}applies: that is the default revision$/m);
      const replaced = await umpire(`catalogs replace ${target} --version 2 ${file('mno\nnew\nabc\n')}`);
      t.is(replaced.status, 0, replaced.err);
      t.regex(replaced.out, /^letters: 1 choices are new, 2 remain, 1 go; 1 descriptions remain$/m);
      t.regex(replaced.out, /^learning anew from 80 kept examples/m);
      const now = await show();
      t.is(now.version, '2');
      t.is(now.kept_examples, 80);
      t.deepEqual(
        now.choices.map(({ choice }: { choice: string }) => choice),
        ['mno', 'new', 'abc'],
      );
      t.like(now.choices[0], { description: 'g "h", i' });
      await wait();
      const last = await decided('abc def');
      t.deepEqual(Object.keys(last.probabilities).toSorted(), ['abc', 'mno', 'new']);
      t.is(last.learned, now.learned?.digest ?? null);
      for (const [content, message] of [
        ['one\n', /choices must hold 2 to 300 items/],
        ['["a","a"]', /repeats/],
        ['[1,2]', /must be a JSON array of texts/],
        ['{"a":"b","c":"d"}', /: the choices must be a JSON array of texts, or one a line/],
        ['["a",', /catalogs replace: .+: is not JSON: /],
        [`abc\n${'abcdefghijklm'}\n`, /"abcdefghijklm" has 13 tokens, tiny@r1 takes at most 12/],
      ] as const) {
        const bad = await umpire(`catalogs replace ${target} ${file(content)}`);
        t.is(bad.status, 1);
        t.regex(bad.err, message);
      }

      // Another revision than the one that was learned for decides zero-shot, and both the page and the log say so.
      await writePackage(modelsDir, {
        revision: 'r2',
        manifest: { default: true, limits: { input_tokens: 40, candidate_tokens: 12, choices: 3 } },
      });
      t.is((await show()).learned?.applies, now.learned === null ? undefined : false);
      const four = await umpire(`catalogs replace ${target} ${file('abc\nmno\nxyz\nnew\n')}`);
      t.regex(four.err, /4 choices; tiny@r2 takes at most 3/);

      // Kept examples that were tampered with are refused.
      const found = await stores.catalogs.read('acme', 'letters', budget());
      if (found === undefined) throw new Error('it is gone');
      await stores.catalogs.replace('acme', found.stamp, found.record, budget(), '{"input":"a"}\n');
      const broken = await umpire(`learn ${target} --refresh`);
      t.is(broken.status, 1);
      t.regex(
        broken.err,
        /line 1: instruction, label must be a text that is not empty\n0 examples are too few: .*\nnothing was changed/,
      );
      const kept = await umpire(`catalogs describe ${target} --remove`);
      t.regex(kept.err, /kept beside 'letters' are broken: line 1/);
    },
  );
}
