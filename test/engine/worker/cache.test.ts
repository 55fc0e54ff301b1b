/** What engines keep in a folder: it is the same as what they compute, and the folder may be anything. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { unhindered } from '../../../src/engine/families/family.ts';
import { readPackage } from '../../../src/engine/packages/scan.ts';
import { tidyCache } from '../../../src/engine/worker/cache.ts';
import type { LoadMessage } from '../../../src/engine/worker/messages.ts';
import { LoadedModels } from '../../../src/engine/worker/models.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { shippedModels } from '../support/engine.ts';
import { modelsFolder, TINY } from '../support/packages.ts';

// One test after the other: in one process they would share their graphs.

/** Loads a package, makes its canary decision and another one. */
async function decide(folder: string, cacheDir: string, more: Partial<LoadMessage> = {}) {
  const [id = '', revision = ''] = folder.split('/').slice(-2);
  const { manifest, problems } = await readPackage(folder, id, revision);
  if (problems.length > 0) throw new Error(problems.join());
  const models = new LoadedModels(0, () => {}, cacheDir);
  const terms = { key: 'model', folder, manifest, profile: undefined, proven: false, inDoubt: false, ...more };
  const loaded = await models.load(terms);
  if (loaded.kind !== 'loaded') throw new Error(loaded.problems.join());
  const canary = await models.canary('model');
  if (manifest.canary === undefined) throw new Error('it has no canary');
  const { input, instruction, choices } = manifest.canary;
  const job = { kind: 'score', job: 1, key: 'model', part: '', input, instruction, choices, vector: true } as const;
  const result = await models.run({ ...job, timeLeft: 60_000 }, 0, unhindered);
  await models.unload('model');
  if (result.kind !== 'scored') throw new Error(result.kind);
  return { profile: loaded.profile, canary, answer: [...result.probabilities, ...(result.vector ?? [])] };
}

const entriesOf = (cache: string): readonly string[] =>
  readdirSync(cache).filter((name) => /^[0-9a-f]{32}$/.test(name));
const costsIn = (cache: string): string =>
  join(cache, readdirSync(cache).find((name) => name.endsWith('.json')) ?? 'none');

async function tiny(t: ExecutionContext): Promise<string> {
  return join(await modelsFolder(t, TINY), 'tiny', 'r1');
}

test.serial('a shipped model decides from the cache as without it, bit for bit, with packed weights', async (t) => {
  const folder = join(shippedModels, 'umpire-mini', 'r11');
  const cache = temporaryFolder();
  const first = await decide(folder, cache);
  const plain = await decide(folder, '', { profile: first.profile });
  t.is(entriesOf(cache).length, 2, 'both graphs are kept');
  const second = await decide(folder, cache, { proven: true });
  t.deepEqual(first.answer, plain.answer);
  t.deepEqual(second.answer, plain.answer);
  t.is(second.canary, undefined);
  t.deepEqual(second.profile, first.profile, 'its costs are remembered');
  const [entry = ''] = entriesOf(cache);
  t.deepEqual(readdirSync(join(cache, entry)).sort(), ['graph.data', 'graph.onnx', 'sums.json']);
});

test.serial('costs that are in doubt or damaged are measured again', async (t) => {
  const folder = await tiny(t);
  const cache = temporaryFolder();
  await decide(folder, cache);
  const path = costsIn(cache);
  const before = statSync(path).ino;
  await decide(folder, cache);
  t.is(statSync(path).ino, before);
  await decide(folder, cache, { inDoubt: true });
  const measured = statSync(path).ino;
  t.not(measured, before);
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(/\d(?=[^\d]*$)/, (digit) => String((Number(digit) + 1) % 10)),
  );
  await decide(folder, cache);
  t.not(statSync(path).ino, measured);
});

test.serial('an entry that is damaged is made again', async (t) => {
  const folder = await tiny(t);
  const cache = temporaryFolder();
  const { answer } = await decide(folder, cache);
  const [entry = ''] = entriesOf(cache);
  const weights = join(cache, entry, 'graph.data');
  for (const damage of [
    () => writeFileSync(weights, readFileSync(weights).fill(7, 100, 101)),
    () => writeFileSync(weights, ''),
    () => rmSync(weights),
    () => writeFileSync(join(cache, entry, 'sums.json'), '{}'),
  ]) {
    damage();
    t.deepEqual((await decide(folder, cache)).answer, answer);
    t.deepEqual(readdirSync(join(cache, entry)).sort(), ['graph.data', 'graph.onnx', 'sums.json']);
  }
});

test.serial('a folder that is not there, cannot be written or is in use costs time only', async (t) => {
  const folder = await tiny(t);
  const { answer } = await decide(folder, '');
  const cache = temporaryFolder();
  t.deepEqual((await decide(folder, join(cache, 'none'))).answer, answer);
  writeFileSync(join(cache, 'file'), '');
  t.deepEqual((await decide(folder, join(cache, 'file'))).answer, answer);
  const closed = join(cache, 'closed');
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  t.deepEqual((await decide(folder, closed)).answer, answer);
  const used = join(cache, 'used');
  mkdirSync(used);
  await decide(folder, used);
  const [entry = ''] = entriesOf(used);
  rmSync(join(used, entry), { recursive: true });
  mkdirSync(join(used, `${entry}.new`));
  t.deepEqual((await decide(folder, used)).answer, answer);
  t.deepEqual(entriesOf(used), [], 'another process makes the entry');
  utimesSync(join(used, `${entry}.new`), 0, 0);
  t.deepEqual((await decide(folder, used)).answer, answer);
  t.deepEqual(entriesOf(used), [entry], 'the other process was gone');
});

test.serial('a model whose canary decision is wrong leaves nothing behind', async (t) => {
  const folder = await modelsFolder(t, {
    manifest: { canary: { input: 'abc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'xyz' } },
  });
  const cache = temporaryFolder();
  const { canary } = await decide(join(folder, 'tiny', 'r1'), cache);
  t.regex(canary ?? '', /chose "abc"/);
  const found = readdirSync(cache).filter((name) => !name.endsWith('.json'));
  t.deepEqual(found, []);
});

test.serial('what nobody has used for long is removed at the start', async (t) => {
  const cache = temporaryFolder();
  mkdirSync(join(cache, 'old'));
  mkdirSync(join(cache, 'new'));
  utimesSync(join(cache, 'old'), 0, 0);
  await tidyCache(cache);
  t.deepEqual(readdirSync(cache), ['new']);
  await tidyCache(join(cache, 'deep', 'er'));
  t.true(statSync(join(cache, 'deep', 'er')).isDirectory());
});
