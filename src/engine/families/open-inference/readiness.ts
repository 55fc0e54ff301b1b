/** Whether a server and its model take requests, and whether the model is what the package says. */
import type { ModelMetadataResponse } from '../../../../gen/inference/grpc_predict_v2_pb.ts';
import { reasonOf } from '../remote/call-failed.ts';
import type { InferenceClient } from './client.ts';
import type { OpenInferenceOptions } from './options.ts';

/** How long a server may take to say whether it is ready, milliseconds. */
const PATIENCE = 2000;

const terms = () => ({ signal: new AbortController().signal, within: PATIENCE });

/** Why the server cannot be asked now; undefined if it can. Never rejects. */
export async function readinessProblem(
  client: InferenceClient,
  { server, model, version }: Pick<OpenInferenceOptions, 'server' | 'model' | 'version'>,
): Promise<string | undefined> {
  const place = `the inference server at ${server.address}`;
  const named = version === '' ? model : `${model}, version ${version},`;
  try {
    if (!(await client.serverLive(terms()))) return `${place} is not live`;
    if (!(await client.serverReady(terms()))) return `${place} is not ready`;
    if (!(await client.modelReady({ name: model, version }, terms())))
      return `${place} says that ${named} is not ready`;
    return undefined;
  } catch (error) {
    return `${place} cannot be asked: ${reasonOf(error)}`;
  }
}

/**
 * How the server's description of its model differs from the package. A server without a description is trusted. Never
 * rejects.
 */
export async function modelProblems(
  client: InferenceClient,
  options: Pick<OpenInferenceOptions, 'model' | 'version' | 'inputs' | 'output'>,
): Promise<readonly string[]> {
  const { model, version, inputs, output } = options;
  try {
    const metadata = await client.modelMetadata({ name: model, version }, terms());
    if (metadata === undefined) return [];
    return [
      ...inputs.flatMap((tensor) => tensorProblems('input', tensor, metadata.inputs)),
      ...tensorProblems('output', output, metadata.outputs),
    ];
  } catch (error) {
    return [`the inference server does not say what its model is: ${reasonOf(error)}`];
  }
}

function tensorProblems(
  kind: string,
  { name, datatype, shape }: { readonly name: string; readonly datatype: string; readonly shape: readonly number[] },
  known: ModelMetadataResponse['inputs'],
): readonly string[] {
  if (known.length === 0) return [];
  const found = known.find((tensor) => tensor.name === name);
  if (found === undefined) {
    return [`the server's model has no ${kind} "${name}", but ${known.map((tensor) => `"${tensor.name}"`).join(', ')}`];
  }
  const sizes = found.shape.map(Number);
  const fits =
    sizes.length === shape.length && sizes.every((size, i) => size === -1 || shape[i] === -1 || size === shape[i]);
  const problems: string[] = [];
  if (found.datatype !== datatype)
    problems.push(`the ${kind} "${name}" is ${found.datatype} at the server, not ${datatype}`);
  if (!fits) problems.push(`the ${kind} "${name}" has the shape [${sizes}] at the server, not [${shape}]`);
  return problems;
}
