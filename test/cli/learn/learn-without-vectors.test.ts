/**
 * `umpire learn` with a model at a server that gives no vectors: how often a choice comes can be
 * learned, weights cannot.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { startHttpModelServer } from '../../engine/support/http-models/server.ts';
import { modelsFolder } from '../../engine/support/packages.ts';
import { rerankOptions, servedReranker, writeRemotePackage } from '../../engine/support/remote-packages.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { runUmpire } from '../../support/terminal.ts';

test('a bias for each choice is learned from examples as they come, and no weights are tried', async (t) => {
  const server = await startHttpModelServer(t, await servedReranker('vllm'));
  const modelsDir = await modelsFolder(t);
  const canary = { input: 'zzz', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
  await writeRemotePackage(modelsDir, server.address, { options: rerankOptions('vllm'), manifest: { canary } });
  const data = temporaryFolder();
  const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
  const catalog = { id: 'letters', model: 'remote', choices: ['abc', 'mno', 'zzz'] };
  const imported = await runUmpire(['catalogs', 'import', '--owner', 'acme'], { env, input: JSON.stringify(catalog) });
  t.is(imported.status, 0, imported.err);
  // The model says zzz to all; what is asked is mostly abc.
  const file = join(data, 'labels.jsonl');
  const labelOf = (i: number): string => (i % 10 < 7 ? 'abc' : i % 10 < 9 ? 'zzz' : 'mno');
  const lines = Array.from({ length: 60 }, (_, i) =>
    JSON.stringify({ input: `${'bcdef'.slice(i % 4)} ${i}`, instruction: 'which', label: labelOf(i) }),
  );
  writeFileSync(file, lines.join('\n'));
  const { status, out, err } = await runUmpire(['learn', '--catalog', 'letters', '--owner', 'acme', file], { env });
  t.is(status, 0, err);
  t.regex(out, /^ {2}bias .*: taken$/m);
  t.notRegex(out, /^ {2}weights /m);
  t.regex(out, /letters: learned bias for remote@r1, digest [0-9a-f]{16}; every server/);
});
