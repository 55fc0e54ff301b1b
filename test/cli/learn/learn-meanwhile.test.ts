/**
 * A catalog that somebody changes while `umpire learn` works on it: nothing of that change is lost, and the command
 * says why it wrote nothing.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { modelsFolder, TINY } from '../../engine/support/packages.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { runUmpire } from '../../support/terminal.ts';

const SELECT = "SELECT * FROM catalogs WHERE id = 'two'";
const CHANGES: Readonly<Record<string, string>> = {
  'other choices': `UPDATE catalogs SET choices = '["abc","mno"]', stamp = 'other' WHERE id = 'two'`,
  'a write that changed nothing else': "UPDATE catalogs SET stamp = 'again' WHERE id = 'two'",
  deleted: "DELETE FROM catalogs WHERE id = 'two'",
};

test('a change meanwhile stays, and the command says that it wrote nothing', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  const data = temporaryFolder();
  const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
  const file = join(data, 'labels.jsonl');
  writeFileSync(
    file,
    Array.from({ length: 40 }, (_, i) =>
      JSON.stringify({ input: `${i % 2 ? 'abc' : 'xyz'} ${i}`, instruction: 'which', label: i % 2 ? 'xyz' : 'abc' }),
    ).join('\n'),
  );
  const catalog = JSON.stringify({ id: 'two', model: 'tiny', choices: ['abc', 'xyz'] });
  const args = ['learn', '--catalog', 'two', '--owner', 'acme', '--keep-examples', file];
  for (const [what, sql] of Object.entries(CHANGES)) {
    t.is((await runUmpire(['catalogs', 'import', '--owner', 'acme'], { env, input: catalog })).status, 0, what);
    const database = new DatabaseSync(join(data, 'umpire.db'));
    let changed: unknown;
    const out: string[] = [];
    const { status, err } = await runUmpire(args, {
      env,
      out(line) {
        out.push(line);
        if (!line.startsWith('deciding ')) return;
        database.exec(sql);
        changed = database.prepare(SELECT).get();
      },
    });
    const after = database.prepare(SELECT).get();
    database.exec("DELETE FROM catalogs WHERE id = 'two'");
    database.close();
    t.is(status, 1, what);
    // It would have learned something.
    t.true(out.includes('after:'), what);
    t.regex(
      err,
      /^umpire learn: catalog 'two' was changed or deleted while this ran, and stays as it is now; run it again$/m,
    );
    t.deepEqual(after, changed as never, what);
  }
});
