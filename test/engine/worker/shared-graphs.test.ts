/**
 * Graphs: shared by the packages that have them in common, read from coded weights, released to the system; and the
 * shipped sentence encoder against vectors that PyTorch computed with its weights in full precision.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import test from 'ava';
import type { Graph } from '../../../src/engine/families/family.ts';
import { dot } from '../../../src/engine/families/vectors.ts';
import { loadTokenizer } from '../../../src/engine/text/tokenizer.ts';
import { decodeWeights } from '../../../src/engine/worker/load-family.ts';
import { release } from '../../../src/engine/worker/release.ts';
import { loadGraph } from '../../../src/engine/worker/runtime.ts';
import { contentOf, sharedGraph } from '../../../src/engine/worker/shared-graphs.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { shippedModels } from '../support/engine.ts';

/** Loads that are counted; a graph can be run until it is disposed of. */
function countedLoads() {
  const counts = { loaded: 0, disposed: 0 };
  const load = async (): Promise<Graph> => {
    counts.loaded++;
    return {
      inputs: ['ids'],
      outputs: ['scores'],
      run: async () => ({}),
      dispose: async () => {
        counts.disposed++;
      },
    };
  };
  return { counts, load };
}

test('one load serves all who ask for the same content, until the last of them is done', async (t) => {
  const { counts, load } = countedLoads();
  const [first, second] = await Promise.all([sharedGraph('shared', load), sharedGraph('shared', load)]);
  const other = await sharedGraph('other', load);
  t.is(counts.loaded, 2);
  t.deepEqual(second.inputs, ['ids']);
  await first.dispose();
  await first.dispose();
  t.is(counts.disposed, 0, 'the second one uses it still, however often the first lets go');
  t.deepEqual(await second.run({}), {});
  await second.dispose();
  t.is(counts.disposed, 1);
  await (await sharedGraph('shared', load)).dispose();
  t.is(counts.loaded, 3, 'it is loaded anew');
  await other.dispose();
  t.is(counts.disposed, 3);
});

test('a load that failed is tried again by the next who asks', async (t) => {
  const { counts, load } = countedLoads();
  const broken = (): Promise<Graph> => Promise.reject(new Error('no graph'));
  const both = [sharedGraph('broken', broken), sharedGraph('broken', load)];
  for (const each of both) await t.throwsAsync(each, { message: 'no graph' });
  await (await sharedGraph('broken', load)).dispose();
  t.deepEqual(counts, { loaded: 1, disposed: 1 });
});

test('the same content is the same graph file with the same files of weights that it names', async (t) => {
  const folder = temporaryFolder();
  const path = join(folder, 'a.onnx');
  writeFileSync(path, `${'a graph '.repeat(40_000)} location words.bin`);
  const file = (sha256: string) => ({ sha256, bytes: 1 });
  const files = { 'a.onnx': file('1'), 'words.bin': file('2'), 'b.onnx': file('3') };
  const of = (more: Record<string, { sha256: string; bytes: number }>) =>
    contentOf(path, 'a.onnx', new Map(Object.entries({ ...files, ...more })));
  const content = await of({});
  t.deepEqual(content.names, ['a.onnx', 'words.bin']);
  t.deepEqual(await of({ 'b.onnx': file('4'), 'c.bin': file('5') }), content);
  t.notDeepEqual(await of({ 'words.bin': file('6') }), content);
  t.notDeepEqual(await of({ 'a.onnx': file('7') }), content);
});

function coded(data: Uint8Array, length = data.length): Buffer {
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(BigInt(length));
  return Buffer.concat([head, deflateSync(data)]);
}

test('what was coded is read back, of any length', (t) => {
  for (const length of [1, 63, 64, 65, 100_000]) {
    const data = Uint8Array.from({ length }, (_, i) => (i * 31 + (i >> 3)) % 251);
    t.deepEqual([...decodeWeights(coded(data))], [...data], `${length}`);
  }
});

test('a file with another length than it says, or none, is refused', (t) => {
  const data = new Uint8Array(1000);
  t.throws(() => decodeWeights(coded(data, 1001)), { message: /1000 bytes and not 1001/ });
  t.throws(() => decodeWeights(coded(data, 900)));
  t.throws(() => decodeWeights(coded(data, 2 ** 40)), { message: /length of/ });
  t.throws(() => decodeWeights(new Uint8Array(5)), { message: /length of NaN/ });
  t.throws(() => decodeWeights(coded(data).subarray(0, 15)));
});

/**
 * Prints the resident MiB before and after a release. Of 128 MiB in small blocks, one block in ten stays in use and
 * keeps the others' memory in gaps.
 */
const SCRIPT = `
  import { releaseSpare } from './src/engine/worker/release.ts';
  const resident = () => process.memoryUsage.rss() / 2 ** 20;
  let blocks = Array.from({ length: 4096 }, () => new Uint8Array(2 ** 15).fill(1));
  blocks = blocks.filter((_, i) => i % 10 === 0);
  gc();
  const before = resident();
  await releaseSpare();
  console.log(JSON.stringify([before, resident(), blocks.length]));
`;

test('gaps between blocks that are in use go back to the system', (t) => {
  const output = execFileSync(
    process.execPath,
    ['--expose-gc', '--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', SCRIPT],
    { encoding: 'utf8', env: { ...process.env, GLIBC_TUNABLES: 'glibc.malloc.arena_max=1' } },
  );
  const [before, after] = JSON.parse(output) as [number, number];
  t.true(before - after > 50, `${before} MiB, then ${after}`);
});

test('a large buffer is empty once it is released, and one that shares its memory is left as it is', (t) => {
  const whole = new Uint8Array(1 << 20);
  release(whole);
  t.is(whole.length, 0);
  const part = new Uint8Array(new ArrayBuffer(1 << 20), 0, 1000);
  release(part);
  t.is(part.length, 1000);
});

interface Golden {
  readonly min_cosine: number;
  readonly texts: readonly {
    readonly text: string;
    readonly ids: readonly number[];
    readonly vector: readonly number[];
  }[];
}

const packageFolder = join(shippedModels, 'minilm-l6', 'r2');

test('the tokens are the same and the vectors agree within the stated tolerance', async (t) => {
  const golden = new URL('../../golden/minilm-l6/vectors.json', import.meta.url);
  const { texts, min_cosine: least }: Golden = JSON.parse(await readFile(golden, 'utf8'));
  const tokenizer = await loadTokenizer(join(packageFolder, 'tokenizer.json'));
  const graph = await loadGraph(join(packageFolder, 'model.onnx'));
  t.true(texts.length > 10);
  for (const { text, ids, vector } of texts) {
    t.deepEqual([101, ...tokenizer.ids(text), 102], ids, text);
    const { embedding } = await graph.run({
      input_ids: { data: BigInt64Array.from(ids, BigInt), dims: [1, ids.length] },
    });
    const cosine = dot(embedding?.data as Float32Array, Float32Array.from(vector));
    t.true(cosine >= least, `${cosine}: ${text}`);
  }
  await graph.dispose();
});
