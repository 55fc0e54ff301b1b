/** Graphs that packages have in common are loaded once, and released with the last model that uses them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Graph } from '../../../src/engine/families/family.ts';
import { contentOf, sharedGraph } from '../../../src/engine/worker/shared-graphs.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

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
