/**
 * The peer: `@huggingface/transformers`, used as its documentation shows, behind a plain `node:http` server, with the
 * same model file, texts and choices. Run as `node bench/peer/server.ts <folder with node_modules and model> <cached or
 * plain>`, it sends its parent its port. With `cached` it keeps the vectors of choices, as Umpire does; with `plain` it
 * encodes them for every request.
 */
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { DecisionBody } from '../load/requests.ts';

/** The part of the package that is used. It has no types here, since it is installed for this benchmark alone. */
interface Transformers {
  readonly env: { allowRemoteModels: boolean; localModelPath: string };
  readonly AutoTokenizer: { from_pretrained(name: string): Promise<(text: string) => Promise<object>> };
  readonly AutoModel: {
    from_pretrained(
      name: string,
      options: object,
    ): Promise<(inputs: object) => Promise<{ embedding: { data: Float32Array } }>>;
  };
}

const [folder = '', mode] = process.argv.slice(2);
const entry = createRequire(join(folder, 'package.json')).resolve('@huggingface/transformers');
const { env, AutoTokenizer, AutoModel } = (await import(pathToFileURL(entry).href)) as Transformers;
env.allowRemoteModels = false;
env.localModelPath = join(folder, 'models');
const tokenizer = await AutoTokenizer.from_pretrained('minilm-l6');
const model = await AutoModel.from_pretrained('minilm-l6', { dtype: 'fp32' });
const cache = new Map<string, Float32Array>();

async function vector(text: string): Promise<Float32Array> {
  return (await model(await tokenizer(text))).embedding.data;
}

async function choiceVector(choice: string): Promise<Float32Array> {
  if (mode !== 'cached') return await vector(choice);
  const known = cache.get(choice) ?? (await vector(choice));
  cache.set(choice, known);
  return known;
}

async function decide({ instruction, input, choices }: DecisionBody): Promise<object> {
  // The same work as with the shipped package: the input is encoded alone and with its instruction.
  const alone = await vector(input);
  const joint = await vector(`${instruction} ${input}`);
  const logits: number[] = [];
  for (const choice of choices) {
    const other = await choiceVector(choice);
    logits.push(
      alone.reduce((sum, value, i) => sum + (0.8 * value + 0.2 * (joint[i] ?? 0)) * (other[i] ?? 0), 0) / 0.1,
    );
  }
  const weights = logits.map((logit) => Math.exp(logit - Math.max(...logits)));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const probabilities = Object.fromEntries(choices.map((choice, i) => [choice, (weights[i] ?? 0) / sum]));
  return { choice: choices[logits.indexOf(Math.max(...logits))], probabilities };
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', async () => {
    const answer = JSON.stringify(await decide(JSON.parse(Buffer.concat(chunks).toString())));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
    response.end(answer);
  });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
