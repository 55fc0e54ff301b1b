/** `umpire models pack`, and what `models check` says of packages that a server scores. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { modelsFolder, writeExport } from '../../engine/support/packages.ts';
import { writeInferencePackage } from '../../engine/support/remote-packages.ts';
import { runUmpire } from '../../support/terminal.ts';

const umpire = (env: Record<string, string>, ...args: readonly string[]) => runUmpire(args, { env });

test('an export becomes a package that list and check agree about', async (t) => {
  const [exported, models] = [await modelsFolder(t), await modelsFolder(t)];
  const env = { UMPIRE_MODELS_DIR: models };
  const canary = { input: 'abcabc', instruction: 'abc', choices: ['xyz', 'abc'], choice: 'abc' };
  await writeExport(exported, { 'canary.json': JSON.stringify(canary) });
  const options = [
    '--canary',
    join(exported, 'canary.json'),
    ...'--temperature 0.5 --input-tokens 40 --default'.split(' '),
  ];
  const packed = await umpire(env, 'models', 'pack', exported, 'mine@r1', ...options);
  t.is(packed.status, 0, packed.err);
  t.regex(
    packed.out,
    /^mine@r1 is in .*\n {2}output last_hidden_state, pooling mean\n {2}limits: 40 input tokens, 300 choices of 61 tokens/,
  );
  t.regex(packed.out, /taken out of the tokenizer: \[UNK\] \[CLS\] \[SEP\]/);
  t.regex(packed.out, /an engine with this package alone takes [1-9]\d+ MiB$/m);
  const manifest = JSON.parse(await readFile(join(models, 'mine', 'r1', 'model.json'), 'utf8'));
  t.like(manifest, { default: true, owned_by: 'local', options: { temperature: 0.5, joint_weight: 0.2 } });
  t.regex((await umpire(env, 'models', 'list')).out, /mine +r1 +yes .* complete /);
  t.regex((await umpire(env, 'models', 'check')).out, /^mine@r1: sound/);
});

test('a folder that is no export ends with status 1', async (t) => {
  const env = { UMPIRE_MODELS_DIR: await modelsFolder(t) };
  const { status, err } = await umpire(env, 'models', 'pack', '/nowhere', 'a@b');
  t.is(status, 1);
  t.regex(err, /\/nowhere has neither model.onnx nor onnx\/model.onnx/);
});

test('a package whose inference server is away is not called broken, and a name that nobody bears is', async (t) => {
  const models = await modelsFolder(t);
  await writeInferencePackage(models, '127.0.0.1:1');
  const env = { UMPIRE_MODELS_DIR: models, UMPIRE_INFERENCE_SERVERS: 'remote=127.0.0.1:1,remoet=127.0.0.1:1' };
  const { status, out, err } = await umpire(env, 'models', 'check');
  t.is(status, 1);
  t.regex(
    out,
    /^remote@r1: cannot be told, its inference server is away\n {2}the inference server at 127.0.0.1:1 cannot be asked/,
  );
  t.notRegex(out, /broken/);
  t.regex(err, /UMPIRE_INFERENCE_SERVERS: there is no package 'remoet'/);
});
