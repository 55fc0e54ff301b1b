/** `umpire models add` of models behind the Open Inference Protocol. */
import test from 'ava';
import { startInferenceServer } from '../../engine/support/inference-server.ts';
import { encoderGraph, entailmentGraph, publishedTokenizer, tokenId } from '../../engine/support/packages.ts';
import { sceneOf } from '../../support/models-add.ts';

const tensor = (name: string, datatype: string, ...shape: number[]) => ({ name, datatype, shape: shape.map(BigInt) });

/** What the operator says of a model whose tokenizer lies there. */
const argsOf = (tokenizer: string): readonly string[] =>
  `--model encoder --tokenizer ${tokenizer} --input-tokens 40 --candidate-tokens 12 --choices 20`.split(' ');

test.serial(
  'of the Open Inference Protocol: inputs and output from its metadata, special tokens from the tokenizer',
  async (t) => {
    const metadata = { inputs: [tensor('input_ids', 'INT64', -1, -1)], outputs: [tensor('embedding', 'FP32', -1, 8)] };
    const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding', metadata });
    const { write, add, manifest } = await sceneOf(t);
    const bare = await add(server, 'open-inference', '--model', 'encoder');
    t.regex(bare.err, /--tokenizer FILE is needed, the model's tokenizer.json: rows are made here/);
    const tokenizer = await write('tokenizer.json', publishedTokenizer());
    const named = await add(server, 'open-inference', '--tokenizer', tokenizer);
    t.regex(named.err, /--model names the model at the server/);

    const args = argsOf(tokenizer);
    const { status, out, err } = await add(server, 'open-inference', ...args);
    t.is(status, 0, err);
    const { options } = await manifest();
    const [cls, sep] = [tokenId('[CLS]'), tokenId('[SEP]')];
    t.like(options, { dialect: 'open-inference', model: 'encoder', returns: 'embedding', temperature: 0.05 });
    t.deepEqual(options.inputs, [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' }]);
    t.deepEqual(options.rows.joint, [cls, '{instruction}', sep, '{input}', sep]);
    t.regex(out, /inputs input_ids INT64 .*: one embedding a row/);
  },
);

test.serial('of the Open Inference Protocol with classes: the operator says which column is the logit', async (t) => {
  const inputs = ['input_ids', 'attention_mask', 'token_type_ids'].map((name) => tensor(name, 'INT64', -1, -1));
  const metadata = { inputs, outputs: [tensor('logits', 'FP32', -1, 3)] };
  const server = await startInferenceServer(t, { graph: entailmentGraph('a'), output: 'logits', metadata });
  const { write, add, manifest } = await sceneOf(t);
  const tokenizer = await write('tokenizer.json', publishedTokenizer());
  const args = argsOf(tokenizer);
  const unsaid = await add(server, 'open-inference', ...args);
  t.regex(unsaid.err, /a row of the output has 3 numbers: --options has to say returns, and column and minus/);
  const own = await write('own.json', { returns: 'logit', column: 0, minus: 2 });
  const { status, err } = await add(server, 'open-inference', ...args, '--options', own);
  t.is(status, 0, err);
  const { options } = await manifest();
  t.deepEqual(
    options.inputs.map(({ holds }: { holds: string }) => holds),
    ['ids', 'mask', 'types'],
  );
});
