/** Small packages whose scoring is done by a server. */
import { type PackageSource, tokenId, writePackage } from './packages.ts';

const cls = tokenId('[CLS]');
const sep = tokenId('[SEP]');

/** What a test may change of such a package. */
export interface InferencePackageSource extends Omit<PackageSource, 'options'> {
  readonly options?: Readonly<Record<string, unknown>>;
}

/** Options that make the server's graph decide as `tiny` does. */
export const EMBEDDING_OPTIONS = {
  model: 'encoder',
  inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' }],
  output: { name: 'embedding', datatype: 'FP32', shape: [-1, 8] },
  returns: 'embedding',
  rows: {
    choice: [cls, '{choice}', sep],
    input: [cls, '{input}', sep],
    joint: [cls, '{instruction}', sep, '{input}', sep],
  },
  joint_weight: 0.25,
  tokenizer: 'tokenizer.json',
  temperature: 0.5,
};

/** Options that make the server's graph decide as a package of the family `nli-cross-encoder` does. */
export const LOGIT_OPTIONS = {
  model: 'entailment',
  inputs: [
    { name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' },
    { name: 'attention_mask', datatype: 'INT64', shape: [-1, -1], holds: 'mask' },
    { name: 'token_type_ids', datatype: 'INT64', shape: [-1, -1], holds: 'types' },
  ],
  output: { name: 'logits', datatype: 'FP32', shape: [-1, 3] },
  returns: 'logit',
  column: 0,
  minus: 2,
  rows: { pair: [cls, '{input}', sep, 'it is {choice}', sep] },
  tokenizer: 'tokenizer.json',
  temperature: 1,
};

/** Writes the package `remote@r1`. */
export async function writeInferencePackage(
  modelsDir: string,
  address: string,
  { options = {}, manifest = {}, ...source }: InferencePackageSource = {},
): Promise<string> {
  return await writePackage(modelsDir, {
    id: 'remote',
    ...source,
    manifest: {
      family: 'open-inference',
      options: { server: { address }, ...EMBEDDING_OPTIONS, ...options },
      ...manifest,
    },
  });
}
