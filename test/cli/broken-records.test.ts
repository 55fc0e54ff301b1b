/** The operator's command where records are broken or were written to deceive whoever reads them, on both stores. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import test from 'ava';
import { hashKey } from '../../src/domain/keys.ts';
import { createStoreBudget as budget } from '../../src/stores/budget.ts';
import { UNBOUNDED } from '../../src/stores/catalog-store.ts';
import { newOwner, record } from '../stores/catalog-store-suite.ts';
import { idIn, openBoth, run } from '../support/operator.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { places, redis, folder } = await openBoth();

/** What another program does to a key's record. */
const setLimits: Readonly<Record<string, (hash: string, limits: string) => unknown>> = {
  sqlite(hash, limits) {
    const database = new DatabaseSync(join(folder, 'umpire.db'));
    database.prepare('UPDATE keys SET limits = ? WHERE hash = ?').run(limits, hash);
    database.close();
  },
  redis: (hash, limits) => redis.command('HSET', `umpire:key:${hash}`, 'limits', limits),
};
for (const [name, { env, stores }] of Object.entries(places)) {
  const stateOf = async (key: string) => stores.keys.find(hashKey(key), budget());

  test.serial(`${name}: a key that cannot be read is named, ended all the same, and stops nothing else`, async (t) => {
    const [owner, other] = [newOwner(), newOwner()];
    const good = await run(env, `keys create --owner ${owner}`);
    const bad = await run(env, `keys create --owner ${other}`);
    await setLimits[name]?.(hashKey(bad.out.at(-1) ?? ''), 'oops');
    const list = await run(env, 'keys list');
    t.is(list.status, 1);
    t.true(list.out.some((line) => line.startsWith(idIn(good.out)) && line.includes(' live ')));
    t.true(list.out.some((line) => line.startsWith(idIn(bad.out)) && line.endsWith(' not readable')));
    t.regex(list.err.join(), /1 key could not be read/);
    t.is((await run(env, `keys list --owner ${owner}`)).status, 0);
    const json = await run(env, `keys list --json --owner ${other}`);
    t.is(json.status, 1);
    t.like(JSON.parse(json.out.join('')), [{ key_id: idIn(bad.out), owner: other, readable: false }]);
    const exported = await run(env, 'keys export');
    t.is(exported.status, 1);
    t.true(exported.out.some((line) => line.includes(owner)) && !exported.out.some((line) => line.includes(other)));
    t.regex(exported.err.join('\n'), new RegExp(`${idIn(bad.out)}: not readable, left out`));
    const file = join(temporaryFolder(), 'backup');
    t.is((await run(env, `backup ${file}`)).status, 1);
    t.true(readFileSync(file, 'utf8').includes(owner) && !readFileSync(file, 'utf8').includes(other));

    t.is((await run(env, `keys rotate ${idIn(good.out)}`)).status, 0);
    t.is((await run(env, `keys revoke ${idIn(good.out)}`)).status, 0);
    t.regex((await run(env, `keys rotate ${idIn(bad.out)}`)).err.join(), /is not readable/);
    t.is((await run(env, `keys revoke ${idIn(bad.out)}`)).status, 0);
    t.is((await run(env, 'keys revoke -', `${bad.out.at(-1)}\n`)).status, 0);
    await setLimits[name]?.(hashKey(bad.out.at(-1) ?? ''), '{}');
    t.is((await stateOf(bad.out.at(-1) ?? ''))?.endsAt, 0);
  });

  test.serial(`${name}: nothing that a caller chose acts on the terminal`, async (t) => {
    const owner = newOwner();
    const version = '1\u001b]0;pwned\u0007\r\u001b[2Kinnocent\u001b[8m\u202e\u0085\u2028';
    const choices = ['a\u001b[2J', 'b\u009b31m\u{e0041}'];
    const created = { ...record('a', choices), version, createdAt: '\u001b[31m' };
    await stores.catalogs.create(owner, created, UNBOUNDED, budget());
    for (const args of ['list', 'list --json', 'show --catalog a', 'show --catalog a --json', 'export']) {
      const { out, err } = await run(env, `catalogs ${args} --owner ${owner}`);
      t.true(out.join('').includes('innocent') || args === 'show --catalog a', args);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not occur
      t.notRegex([...out, ...err].join(''), /[\u0000-\u001f\u007f-\u009f\u2028\u202e\u{e0041}]/u, args);
    }
    const [line = ''] = (await run(env, `catalogs export --owner ${owner}`)).out;
    t.like(JSON.parse(line), { version, choices, created_at: '\u001b[31m' });
    await stores.catalogs.delete(owner, 'a', budget());
  });
}
