/** Manifests: every problem is named; the default revision; and which packages of a folder are served. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rename, symlink, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import test from 'ava';
import { ChoiceVectorCache } from '../../../src/engine/families/choice-vectors.ts';
import { checkPackage, listPackages } from '../../../src/engine/package-tools/check.ts';
import { readManifest } from '../../../src/engine/packages/manifest.ts';
import { verifyFiles } from '../../../src/engine/packages/regular-file.ts';
import { defaultRevision, type RevisionClaim, Revisions } from '../../../src/engine/packages/revisions.ts';
import { type FoundPackage, readPackage, scanPackages } from '../../../src/engine/packages/scan.ts';
import { until } from '../../support/redis.ts';
import { writeCascade } from '../support/cascades.ts';
import { startEngine } from '../support/engine.ts';
import { modelsFolder, TINY, writePackage } from '../support/packages.ts';

const VALID = {
  schema: 1,
  id: 'tiny',
  revision: 'r1',
  family: 'bi-encoder',
  owned_by: 'tests',
  status: 'ready',
  default: true,
  limits: { input_tokens: 40, candidate_tokens: 12, choices: 300 },
  files: { 'model.onnx': { sha256: 'a'.repeat(64), bytes: 1 } },
  options: {},
  canary: { input: 'a', instruction: 'b', choices: ['y', 'x'], choice: 'x' },
};
const read = (document: unknown) => readManifest(JSON.stringify(document), 'tiny', 'r1');

test('a valid manifest', (t) => {
  const { value: manifest, problems } = read(VALID);
  t.deepEqual(problems, []);
  t.like(manifest, {
    id: 'tiny',
    revision: 'r1',
    family: 'bi-encoder',
    ownedBy: 'tests',
    disabled: false,
    isDefault: true,
  });
  t.deepEqual(manifest.canary?.choices, ['x', 'y']);
});

const BROKEN: readonly (readonly [name: string, change: object, problem: RegExp])[] = [
  ['schema', { schema: 2 }, /^schema must be a number from 1 to 1$/],
  ['another id', { id: 'other' }, /^id is "other", but the folder is called "tiny"$/],
  ['a bad revision', { revision: 'R/1' }, /^revision must match/],
  ['an unknown family', { family: 'oracle' }, /^family must be one of bi-encoder, /],
  ['a bad status', { status: 'on' }, /^status must be one of ready, disabled/],
  ['default', { default: 'yes' }, /^default must be true or false$/],
  ['limits', { limits: null }, /^limits must be an object$/],
  ['a fraction', { limits: { ...VALID.limits, choices: 2.5 } }, /^limits.choices must be a whole number$/],
  [
    'too many choices',
    { limits: { ...VALID.limits, choices: 301 } },
    /^limits.choices must be a number from 2 to 300$/,
  ],
  ['no files', { files: {} }, /^files must name the files/],
  ['a path', { files: { '../x': VALID.files['model.onnx'] } }, /^files.\.\.\/x is not a plain file name$/],
  ['a short sum', { files: { x: { sha256: 'ab', bytes: 1 } } }, /^files.x.sha256 must match/],
  ['options', { options: [] }, /^options must be an object$/],
  ['a foreign canary', { canary: { ...VALID.canary, choice: 'z' } }, /^canary.choice must be one of the choices$/],
  ['a pull without a bound', { unread: { pull: 1 } }, /^unread.bound must be a number from 0 to 1$/],
  ['a misspelt rule', { unread: { bound: 0.4, pul: 1, pull: 1 } }, /^unread.pul is unknown/],
  ['twins', { canary: { ...VALID.canary, choices: ['x', 'x'] } }, /^canary.choices must be unique$/],
];
for (const [name, change, problem] of BROKEN) {
  test(`a broken manifest: ${name}`, (t) => {
    const { problems } = read({ ...VALID, ...change });
    t.is(problems.length, 1, problems.join('\n'));
    t.regex(problems[0] ?? '', problem);
  });
}

test('all problems are named at once', (t) => {
  t.deepEqual(
    read({ ...VALID, family: 'cascade' }).problems,
    ['limits', 'files', 'canary'].map((field) => `${field} is not for a cascade, whose steps have theirs`),
  );
  t.true(read({}).problems.length >= 8);
  t.is(readManifest('{', 'tiny', 'r1').problems.length, 1);
  t.true(read(null).problems.length >= 1);
});

test('the default revision', (t) => {
  const claim = (revision: string, claims: boolean, standing: RevisionClaim['standing'] = 'proven') => ({
    revision,
    claims,
    standing,
  });
  const cases: readonly (readonly [readonly RevisionClaim[], string | undefined])[] = [
    [[claim('r1', true), claim('r2', false)], 'r1'],
    [[claim('r1', true), claim('r2', true), claim('r10', true)], 'r10'],
    [[claim('r09', true), claim('r9', true), claim('2026-2', true), claim('r9-rc1', true)], 'r9-rc1'],
    [[claim('2026-11', true), claim('2026-2', true)], '2026-11'],
    [[claim('r1', false), claim('r2', false)], 'r2'],
    [[claim('r1', false), claim('r2', true, 'broken')], 'r1'],
    [[claim('r1', false, 'broken'), claim('r2', false, 'broken')], 'r2'],
    [[claim('r1', true), claim('r2', true, 'valid')], 'r1'],
    [[claim('r1', false), claim('r2', true, 'valid')], 'r1'],
    [[claim('r1', true, 'valid'), claim('r2', true, 'valid'), claim('r3', true, 'broken')], 'r2'],
    [[], undefined],
  ];
  for (const [revisions, expected] of cases) t.is(defaultRevision(revisions), expected);
});

test('a scan finds packages, broken or not, and nothing else', async (t) => {
  const modelsDir = await modelsFolder(t, { revision: 'r2' });
  const folder = await writePackage(modelsDir, { id: 'gone' });
  await unlink(join(folder, 'model.onnx'));
  await writeFile(join(folder, 'tokenizer.json'), 'shorter');
  await writeFile(join(modelsDir, 'notes'), '');
  await symlink('/nowhere', join(modelsDir, 'dangling'));
  const found = await scanPackages(modelsDir);
  t.deepEqual(
    found.map(({ manifest: { id, revision }, problems }) => [id, revision, problems.length]),
    [
      ['gone', 'r1', 2],
      ['tiny', 'r2', 0],
    ],
  );
  t.regex(
    found[0]?.problems.join('\n') ?? '',
    /model.onnx cannot be read: ENOENT\ntokenizer.json has 7 bytes, but model.json says/,
  );
  t.deepEqual((await readPackage(join(modelsDir, 'none'), 'none', 'r1')).problems, [
    'model.json cannot be read: ENOENT',
  ]);
});

test('only regular files of the folder are opened: whatever else lies there is refused with its name', async (t) => {
  const modelsDir = await modelsFolder(t, { revision: 'r2' });
  const outside = join(await modelsFolder(t, {}), 'tiny', 'r1');
  const broken = async (id: string, file: string, put: (path: string) => unknown) => {
    const path = join(await writePackage(modelsDir, { id }), file);
    await unlink(path);
    await put(path);
  };
  const pipe = (path: string) => execFileSync('mkfifo', [path]);
  await broken('pipe', 'model.json', pipe);
  await broken('pipe-of-words', 'tokenizer.json', pipe);
  await broken('device', 'model.json', (path) => symlink('/dev/zero', path));
  await broken('device-of-words', 'tokenizer.json', (path) => symlink('/dev/zero', path));
  await broken('folder', 'model.json', (path) => mkdir(path));
  await broken('huge', 'model.json', (path) => writeFile(path, Buffer.alloc(2 << 20, 32)));
  await broken('outside', 'tokenizer.json', (path) => symlink(join(outside, 'tokenizer.json'), path));
  await broken('outside-manifest', 'model.json', (path) => symlink(join(outside, 'model.json'), path));
  await broken('inside', 'tokenizer.json', (path) => symlink('../../tiny/r2/tokenizer.json', path));
  const server = createServer().listen(join(await writePackage(modelsDir, { id: 'socket' }), 'socket'));
  await once(server, 'listening');
  await broken('socket', 'model.json', (path) => rename(join(dirname(path), 'socket'), path));
  const found = await scanPackages(modelsDir);
  server.close();
  t.deepEqual(
    found.map(({ manifest: { id }, problems }) => [id, ...problems]),
    [
      ['device', 'model.json cannot be read: it is not a regular file'],
      ['device-of-words', 'tokenizer.json cannot be read: it is not a regular file'],
      ['folder', 'model.json cannot be read: it is not a regular file'],
      ['huge', 'model.json cannot be read: it has 2097152 bytes, more than 1048576'],
      ['inside'],
      ['outside', 'tokenizer.json cannot be read: it is a link that leads outside the folder of models'],
      ['outside-manifest', 'model.json cannot be read: it is a link that leads outside the folder of models'],
      ['pipe', 'model.json cannot be read: it is not a regular file'],
      ['pipe-of-words', 'tokenizer.json cannot be read: it is not a regular file'],
      ['socket', 'model.json cannot be read: it is not a regular file'],
      ['tiny'],
    ],
  );
  // A file that became a pipe after the scan does not stop the engine that verifies it.
  const [{ folder, manifest } = found[0] as FoundPackage] = found.filter((each) => each.manifest.id === 'tiny');
  await unlink(join(folder, 'tokenizer.json'));
  pipe(join(folder, 'tokenizer.json'));
  t.deepEqual(await verifyFiles(folder, manifest.files), ['tokenizer.json cannot be read: it is not a regular file']);
});

test('a signature changes with the files and only then', async (t) => {
  const modelsDir = await modelsFolder(t);
  const folder = await writePackage(modelsDir);
  const signature = async () => (await readPackage(folder, 'tiny', 'r1')).signature;
  const first = await signature();
  t.is(await signature(), first);
  await writeFile(join(folder, 'MODEL_CARD.md'), 'words');
  t.is(await signature(), first);
  await writeFile(join(folder, 'tokenizer.json'), '{}');
  t.not(await signature(), first);
});

test('the operator lists and checks packages', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  await writePackage(modelsDir, {
    revision: 'r2',
    manifest: { canary: { ...VALID.canary, input: 'abc', choices: ['abc', 'xyz'], choice: 'xyz' } },
  });
  await writePackage(modelsDir, { revision: 'r3', manifest: { status: 'disabled', default: false } });
  const listing = await listPackages(modelsDir);
  t.deepEqual(
    listing.map(({ revision, isDefault, disabled }) => [revision, isDefault, disabled]),
    [
      ['r1', false, false],
      ['r2', true, false],
      ['r3', false, true],
    ],
  );
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const check = (revision: string, largestRequestMs = 10_000) => {
    return checkPackage({ modelsDir, logger, largestRequestMs }, 'tiny', revision);
  };
  const sound = await check('r1');
  t.is(sound.kind, 'sound');
  t.true(sound.kind === 'sound' && sound.speed.worst > 0 && sound.speed.decisions.length > 0);
  t.deepEqual(await check('r2'), { kind: 'broken', problems: ['the canary chose "abc" instead of "xyz"'] });
  t.is((await check('r4')).kind, 'broken');
  const slow = await check('r1', 0.001);
  t.regex(slow.kind === 'broken' ? slow.problems.join() : '', /^limits: the largest legal request takes \d+ ms/);
});

test('the list says of a cascade what follows from its steps', async (t) => {
  const modelsDir = await modelsFolder(t, TINY);
  await writePackage(modelsDir, { id: 'one', manifest: { languages: ['de', 'en'] } });
  await writePackage(modelsDir, { id: 'two', manifest: { languages: ['en', 'fr'] } });
  await writeCascade(modelsDir, { steps: [{ model: 'one', sure: 0.5 }, { model: 'two' }] });
  const [cascade] = (await listPackages(modelsDir)).filter(({ id }) => id === 'cascade');
  t.deepEqual([cascade?.problems, cascade?.languages], [[], ['en']]);
});

test('the cache of choice vectors keeps its bound and what was used lately', (t) => {
  const cache = new ChoiceVectorCache(200_000);
  const vectors = cache.of('a', '');
  const vector = new Float32Array(384);
  for (let i = 0; i < 1000; i++) {
    vectors.set(`choice ${i}`, vector);
    t.is(vectors.get('choice 0'), vector);
    t.true(cache.bytes <= 200_000);
  }
  t.is(vectors.get('choice 1'), undefined);
  t.is(cache.of('b', '').get('choice 0'), undefined);
  t.is(cache.of('a', 'owner').get('choice 0'), undefined);
  t.true(cache.bytes > 50_000);
  cache.forget('a');
  t.is(cache.bytes, 0);
  vectors.set('x'.repeat(200_000), vector);
  t.is(cache.bytes, 0);
});

test('models and single revisions are served by name, and nothing else is loaded or listed', async (t) => {
  const modelsDir = await modelsFolder(t);
  for (const id of ['left', 'middle', 'right']) {
    for (const revision of ['r1', 'r2']) await writePackage(modelsDir, { id, revision });
  }
  const served = async (...models: readonly string[]) => {
    const engine = await startEngine(t, { modelsDir, models });
    return engine.models().map(({ id, revision, isDefault }) => `${id}@${revision}${isDefault ? ' by default' : ''}`);
  };
  t.is((await served()).length, 6);
  t.deepEqual(await served('left', 'right@r1'), ['left@r1', 'left@r2 by default', 'right@r1 by default']);
});

test('a name without a package is told once, and one that comes later is served', async (t) => {
  const modelsDir = await modelsFolder(t, { id: 'there' });
  const engine = await startEngine(t, { modelsDir, models: ['there', 'later'], scanIntervalMs: 20 });
  const told = () => engine.log.filter(({ message }) => message.startsWith('there is no package'));
  t.deepEqual(
    told().map(({ fields }) => fields.models),
    [['later']],
  );
  await writePackage(modelsDir, { id: 'later' });
  await until(() => engine.models().length === 2);
  t.deepEqual(
    engine.models().map(({ id }) => id),
    ['later', 'there'],
  );
  t.is(told().length, 1);
});

test('what decisions wait for is loaded first, then the usual model, and last what has failed', async (t) => {
  const folder = await modelsFolder(t, { id: 'aa' }, { id: 'umpire-mini' }, { id: 'zz' });
  const revisions = new Revisions({ debug() {}, info() {}, warn() {}, error() {} }, { retired() {}, unavailable() {} });
  revisions.apply(await scanPackages(folder));
  const order = () => revisions.wanted().map(({ manifest }) => manifest.id);
  t.deepEqual(order(), ['umpire-mini', 'aa', 'zz']);
  const asked = revisions.find('zz', 'r1');
  if (asked === undefined) throw new Error('there is no zz@r1');
  revisions.count(asked, 1);
  t.deepEqual(order(), ['zz', 'umpire-mini', 'aa']);
  revisions.failed(asked, ['broken']);
  t.deepEqual(order(), ['umpire-mini', 'aa', 'zz']);
});
