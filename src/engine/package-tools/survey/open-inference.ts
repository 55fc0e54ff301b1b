/** Surveys a server of the Open Inference Protocol: what the model's inputs and output are, from ModelMetadata. */
import type { ModelMetadataResponse } from '../../../../gen/inference/grpc_predict_v2_pb.ts';
import { createInferenceClient, readinessProblem } from '../../families/open-inference/client.ts';
import { reasonOf } from '../../families/remote/call-failed.ts';
import type { JsonObject } from '../../families/remote/http/parse-json.ts';
import { readCredentials, readToken, type ServerOptions } from '../../families/remote/server-options.ts';
import { ownText, type Survey, type SurveyRequest } from './findings.ts';

/** The tokens that frame a sequence of the model. */
export interface Frame {
  readonly cls: number;
  readonly sep: number;
}

/** One tensor as the server declares it. */
type Tensor = ModelMetadataResponse['inputs'][number];

const PATIENCE = 10_000;
const ATTEMPTS = 3;
const PAUSE = 1000;
const ANSWER_BYTES = 4 * 2 ** 20;
const TEMPERATURES = { logit: 1, embedding: 0.05 } as const;
/** A row of fewer numbers holds classes and is no vector. */
const NARROWEST_VECTOR = 8;

/**
 * Surveys a server. Rejects with Error if it cannot be used in this dialect. `frame`: that of the model's tokenizer.
 */
export async function surveyOpenInference(
  server: ServerOptions,
  frame: Frame,
  { model: asked, own }: SurveyRequest,
): Promise<Survey> {
  const model = asked ?? ownText(own, 'model');
  if (model === undefined)
    throw new Error('--model names the model at the server: this protocol has no list of models');
  const client = createInferenceClient({
    address: server.address,
    tls: await readCredentials(server.tls, '.'),
    token: await readToken(server.token, '.'),
    messageBytes: ANSWER_BYTES,
  });
  try {
    const version = ownText(own, 'version') ?? '';
    const problem = await standingProblem(() => readinessProblem(client, { server, model, version }));
    if (problem !== undefined) {
      throw new Error(`${problem}. Is it running, is that its gRPC port, and does it want https or a token?`);
    }
    const terms = { signal: new AbortController().signal, within: PATIENCE };
    const metadata = await client.modelMetadata({ name: model, version }, terms).catch((error: unknown) => {
      throw new Error(`the server at ${server.address} does not say what its model is: ${reasonOf(error)}`);
    });
    const found = optionsOf(metadata, frame, own);
    return {
      options: { dialect: 'open-inference', model, ...found.options },
      path: undefined,
      longTexts: undefined,
      maxTokens: undefined,
      reads: found.returns === 'logit' ? 'pair' : 'text',
      cap: undefined,
      temperature: TEMPERATURES[found.returns],
      lines: [
        ...(metadata === undefined ? [] : [`platform ${metadata.platform || 'not said'}`]),
        `inputs ${names(metadata?.inputs)}, output ${names(metadata?.outputs)}: one ${found.returns} a row`,
      ],
    };
  } finally {
    client.close();
  }
}

/** A problem that does not pass by itself: a server that is starting or busy is asked again. */
async function standingProblem(ask: () => Promise<string | undefined>): Promise<string | undefined> {
  for (let attempt = 1; ; attempt++) {
    const problem = await ask();
    if (problem === undefined || attempt === ATTEMPTS) return problem;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

interface Found {
  readonly options: JsonObject;
  readonly returns: 'logit' | 'embedding';
}

/** What the model's tensors tell about it; what the operator says takes precedence. */
function optionsOf(metadata: ModelMetadataResponse | undefined, frame: Frame, own: JsonObject): Found {
  const inputs = own.inputs ?? inputsOf(metadata?.inputs ?? []);
  const output = own.output === undefined ? outputOf(metadata?.outputs ?? []) : undefined;
  const width = output === undefined ? undefined : output.shape.at(-1);
  const said = ownText(own, 'returns');
  const returns = said === 'logit' || said === 'embedding' ? said : returnsOf(width);
  const rows = own.rows ?? rowsOf(returns, frame, inputs);
  return {
    returns,
    options: {
      inputs,
      ...(output === undefined ? {} : { output }),
      returns,
      rows,
      ...(returns === 'embedding' && own.rows === undefined ? { joint_weight: 0.2 } : {}),
    },
  };
}

function inputsOf(tensors: readonly Tensor[]): readonly JsonObject[] {
  if (tensors.length === 0)
    throw new Error('the server declares no inputs: --options has to say inputs, output and rows');
  return tensors.map(({ name, datatype, shape }) => {
    if (datatype === 'BYTES') return { name, datatype, shape: shape.length === 2 ? [-1, 1] : [-1] };
    if (datatype !== 'INT64' && datatype !== 'INT32') {
      throw new Error(`the server's model reads "${name}" of the datatype ${datatype}, neither token ids nor texts`);
    }
    return { name, datatype, shape: [-1, -1], holds: holdsOf(name) };
  });
}

function holdsOf(name: string): 'ids' | 'mask' | 'types' {
  if (/mask/i.test(name)) return 'mask';
  return /type|segment/i.test(name) ? 'types' : 'ids';
}

function outputOf(tensors: readonly Tensor[]) {
  const found = tensors.find(({ datatype }) => /^FP(16|32|64)$/.test(datatype));
  if (found === undefined)
    throw new Error('the server declares no output of floating-point numbers: --options has to say output');
  return { name: found.name, datatype: found.datatype, shape: [-1, ...found.shape.slice(1).map(Number)] };
}

function returnsOf(width: number | undefined): 'logit' | 'embedding' {
  if (width === 1) return 'logit';
  if (width !== undefined && width >= NARROWEST_VECTOR) return 'embedding';
  throw new Error(
    `a row of the output has ${width === undefined || width < 1 ? 'an unknown number of' : width} numbers: --options has to say returns, and column and minus for the logit, or shape`,
  );
}

function rowsOf(returns: Found['returns'], { cls, sep }: Frame, inputs: unknown): JsonObject {
  const tensors = inputs as readonly { readonly name?: unknown; readonly datatype?: unknown }[];
  if (Array.isArray(inputs) && tensors.some(({ datatype }) => datatype === 'BYTES')) {
    const [first, second] = tensors.map(({ name }) => String(name));
    if (returns === 'logit' && first !== undefined && second !== undefined && tensors.length === 2) {
      return { pair: { [first]: '{instruction} {input}', [second]: '{choice}' } };
    }
    if (returns === 'embedding' && first !== undefined && tensors.length === 1) {
      return {
        choice: { [first]: '{choice}' },
        input: { [first]: '{input}' },
        joint: { [first]: '{instruction} {input}' },
      };
    }
    throw new Error("the number of the model's texts does not tell what they are: --options has to say rows");
  }
  if (returns === 'logit') return { pair: [cls, '{instruction}', sep, '{input}', sep, '{choice}', sep] };
  return {
    choice: [cls, '{choice}', sep],
    input: [cls, '{input}', sep],
    joint: [cls, '{instruction}', sep, '{input}', sep],
  };
}

function names(tensors: readonly Tensor[] | undefined): string {
  return tensors === undefined || tensors.length === 0
    ? 'not said'
    : tensors.map(({ name, datatype, shape }) => `${name} ${datatype} [${shape.join(', ')}]`).join(', ');
}
