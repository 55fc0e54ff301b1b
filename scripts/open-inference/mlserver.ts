/**
 * Runs Umpire against MLServer, as scripts/mlserver.sh describes. Its argument is the folder of the installed programs.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DescMessage } from '@bufbuild/protobuf';
import { file_inference_grpc_predict_v2 } from '../../gen/inference/grpc_predict_v2_pb.ts';
import { freePort, pause, root, say, until } from '../remote/umpire.ts';

const bin = process.argv[2] ?? '';
const work = await mkdtemp(join(tmpdir(), 'umpire-mlserver-'));
const delayFile = join(work, 'delay');
const package_ = join(root, 'models', 'minilm-l6', 'r2');

// MLServer's folder has the settings of the server and of the model, and the runtime.
const [grpcPort, httpPort] = [await freePort(), await freePort()];
const folder = join(work, 'mlserver');
await mkdir(join(folder, 'encoder'), { recursive: true });
await cp(fileURLToPath(new URL('./onnx_encoder.py', import.meta.url)), join(folder, 'onnx_encoder.py'));
const SERVER_SETTINGS = {
  ...{ host: '127.0.0.1', grpc_port: grpcPort, http_port: httpPort, metrics_endpoint: null, parallel_workers: 0 },
};
await writeFile(join(folder, 'settings.json'), JSON.stringify(SERVER_SETTINGS));
await writeFile(
  join(folder, 'encoder', 'model-settings.json'),
  JSON.stringify({
    name: 'minilm',
    implementation: 'onnx_encoder.OnnxEncoder',
    parameters: { uri: join(package_, 'model.onnx'), version: '1' },
    inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1] }],
    outputs: [{ name: 'embedding', datatype: 'FP32', shape: [-1, 384] }],
  }),
);

const startServer = (): ChildProcess =>
  spawn(join(bin, 'mlserver'), ['start', '.'], {
    cwd: folder,
    env: { ...process.env, PYTHONPATH: folder, DELAY_FILE: delayFile },
    stdio: ['ignore', 'ignore', 'ignore'],
  });

// Umpire's models are the shipped package, and one with the same tokenizer and temperature that asks the server.
const models = join(work, 'models');
await cp(package_, join(models, 'minilm-l6', 'r2'), { recursive: true });
const manifest = JSON.parse(await readFile(join(package_, 'model.json'), 'utf8'));
const { cls, sep } = manifest.options.special_tokens;
await mkdir(join(models, 'remote', 'r1'), { recursive: true });
await cp(join(package_, 'tokenizer.json'), join(models, 'remote', 'r1', 'tokenizer.json'));
await writeFile(
  join(models, 'remote', 'r1', 'model.json'),
  JSON.stringify({
    ...manifest,
    id: 'remote',
    family: 'open-inference',
    limits: { ...manifest.limits, choices: 100 },
    files: { 'tokenizer.json': manifest.files['tokenizer.json'] },
    options: {
      server: { address: '127.0.0.1:1' },
      model: 'minilm',
      version: '1',
      inputs: [{ name: 'input_ids', datatype: 'INT64', shape: [-1, -1], holds: 'ids' }],
      output: { name: 'embedding', datatype: 'FP32', shape: [-1, 384] },
      returns: 'embedding',
      rows: {
        choice: [cls, '{choice}', sep],
        input: [cls, '{input}', sep],
        joint: [cls, '{instruction}', sep, '{input}', sep],
      },
      joint_weight: manifest.options.joint_weight,
      tokenizer: 'tokenizer.json',
      temperature: manifest.options.temperature,
      batch: { rows: 16, independent: true },
    },
  }),
);

/** Compares Umpire's protos with the server's: the fields that the server lacks. @throws Error if a field differs. */
function compareProtos(): { readonly absent: readonly string[]; readonly compared: number } {
  const program =
    'import json\nfrom mlserver.grpc import dataplane_pb2 as d\n' +
    'def walk(m):\n  yield m.full_name, {f.name: f.number for f in m.fields}\n  for n in m.nested_types: yield from walk(n)\n' +
    'print(json.dumps(dict(x for m in d.DESCRIPTOR.message_types_by_name.values() for x in walk(m))))';
  const theirs = JSON.parse(execFileSync(join(bin, 'python'), ['-W', 'ignore', '-c', program], { encoding: 'utf8' }));
  const absent: string[] = [];
  let compared = 0;
  const visit = (message: DescMessage): void => {
    for (const { name, number } of message.fields) {
      const their = theirs[message.typeName]?.[name];
      if (their === undefined) absent.push(`${message.typeName}.${name}`);
      else if (their !== number) throw new Error(`${message.typeName}.${name} is ${number} here and ${their} there`);
      compared++;
    }
    for (const nested of message.nestedMessages) visit(nested);
  };
  for (const message of file_inference_grpc_predict_v2.messages) visit(message);
  return { absent, compared };
}

const protos = compareProtos();
say(`protos: ${protos.compared} fields compared with MLServer's; it lacks ${protos.absent.join(', ') || 'none'}`);

let server = startServer();
const umpire = spawn(process.execPath, [join(root, 'src', 'main.ts')], {
  env: {
    ...process.env,
    ...{
      PORT: '0',
      HOST: '127.0.0.1',
      UMPIRE_MODELS_DIR: models,
      UMPIRE_DATA_DIR: join(work, 'data'),
      UMPIRE_ENGINES: '1',
    },
    ...{ UMPIRE_RATE_ANONYMOUS: 'off', UMPIRE_CONCURRENCY_ANONYMOUS: 'off', UMPIRE_DRAIN_DELAY: '0' },
    UMPIRE_INFERENCE_SERVERS: `remote=127.0.0.1:${grpcPort}`,
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});
let log = '';
umpire.stdout.setEncoding('utf8').on('data', (text: string) => {
  log += text;
});

const TEXTS = [
  'I was charged twice for my order',
  'The parcel never arrived and the tracking page is empty',
  'Der Bildschirm bleibt schwarz, seit ich gestern das Update installiert habe',
  'Please cancel my subscription, I no longer need it',
  'Can I get an invoice with my company name and VAT number?',
  'The app crashes whenever I open the settings',
  'a '.repeat(400).trim(),
  'Who won?',
];
const INSTRUCTIONS = ['Which team should handle this?', 'What does the writer want?', 'How urgent is it?'];
const CHOICE_SETS = [
  ['billing', 'shipping', 'technical support'],
  ['refund', 'cancel', 'invoice', 'help', 'complain', 'praise', 'something else entirely'],
  Array.from({ length: 60 }, (_, i) => `reason number ${i}: ${['late', 'broken', 'lost', 'wrong'][i % 4]} item`),
];

try {
  await until(() => /"port":\d+/.test(log));
  const base = `http://127.0.0.1:${/"port":(\d+)/.exec(log)?.[1]}`;
  const statusOf = async (model: string): Promise<string> =>
    ((await (await fetch(`${base}/v1/models/${model}`)).json()) as { status: string }).status;
  const decide = async (model: string, input: string, instruction: string, choices: readonly string[]) => {
    const began = performance.now();
    const response = await fetch(`${base}/v1/decisions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model, input, instruction, choices }),
    });
    const body = (await response.json()) as {
      output?: { choice: string; probabilities: Record<string, number> };
      usage?: { input_tokens: number };
      error?: { code: string };
    };
    return { status: response.status, body, took: performance.now() - began };
  };
  await until(async () => (await statusOf('minilm-l6')) === 'ready' && (await statusOf('remote')) === 'ready');

  let decisions = 0;
  let largest = 0;
  let others = 0;
  for (const input of TEXTS) {
    for (const instruction of INSTRUCTIONS) {
      for (const choices of CHOICE_SETS) {
        const here = (await decide('minilm-l6', input, instruction, choices)).body;
        const there = (await decide('remote', input, instruction, choices)).body;
        if (here.output === undefined || there.output === undefined) throw new Error(JSON.stringify([here, there]));
        decisions++;
        if (here.output.choice !== there.output.choice || here.usage?.input_tokens !== there.usage?.input_tokens)
          others++;
        for (const [choice, probability] of Object.entries(here.output.probabilities)) {
          largest = Math.max(largest, Math.abs(probability - (there.output.probabilities[choice] ?? 2)));
        }
      }
    }
  }
  say(
    `decisions: ${decisions} compared, ${others} with another choice or count, largest difference ${largest.toFixed(7)}`,
  );
  if (others > 0 || largest > 1e-6 + 1e-12) process.exitCode = 1;

  /** Asks both models until the returned function is called, which resolves to what callers saw, in words. */
  const watch = () => {
    const seen: Record<string, number> = {};
    let slowest = 0;
    let failed = 0;
    let stopped = false;
    const run = async (): Promise<void> => {
      while (!stopped) {
        const [here, there] = await Promise.all([
          decide('minilm-l6', 'I was charged twice', 'Which team?', CHOICE_SETS[0] as readonly string[]),
          decide('remote', 'I was charged twice', 'Which team?', CHOICE_SETS[0] as readonly string[]),
        ]);
        const name = there.status === 200 ? '200' : `${there.status} ${there.body.error?.code}`;
        seen[name] = (seen[name] ?? 0) + 1;
        slowest = Math.max(slowest, here.took);
        if (here.status !== 200) failed++;
        await pause(20);
      }
    };
    const runs = [run(), run()];
    return async (): Promise<string> => {
      stopped = true;
      await Promise.all(runs);
      if (failed > 0 || Object.keys(seen).some((name) => !/^(200|503 )/.test(name))) process.exitCode = 1;
      const remote = Object.entries(seen).map(([name, count]) => `${count} × ${name}`);
      return `callers saw ${remote.join(', ')}; of the local model ${failed} failed, the slowest took ${slowest.toFixed(0)} ms`;
    };
  };

  let seen = watch();
  await pause(1000);
  server.kill('SIGKILL');
  let gone = await until(async () => (await statusOf('remote')) === 'unavailable');
  await pause(2000);
  server = startServer();
  let back = await until(async () => (await statusOf('remote')) === 'ready');
  say(
    `killed: unavailable after ${gone.toFixed(2)} s, ready ${back.toFixed(1)} s after MLServer was started; ${await seen()}`,
  );

  seen = watch();
  await pause(1000);
  server.kill('SIGSTOP');
  gone = await until(async () => (await statusOf('remote')) === 'unavailable');
  await pause(2000);
  server.kill('SIGCONT');
  back = await until(async () => (await statusOf('remote')) === 'ready');
  say(`frozen: unavailable after ${gone.toFixed(2)} s, ready ${back.toFixed(2)} s after it went on; ${await seen()}`);

  seen = watch();
  await pause(1000);
  await writeFile(delayFile, '0.4');
  await pause(8000);
  await rm(delayFile);
  back = await until(
    async () => (await decide('remote', 'a', 'b', ['c', 'd'])).took < 400 && (await statusOf('remote')) === 'ready',
  );
  say(`slowed by 0.4 s a call for 8 s: as fast as before ${back.toFixed(2)} s later; ${await seen()}`);
} finally {
  server.kill('SIGCONT');
  server.kill('SIGKILL');
  umpire.kill('SIGTERM');
  await new Promise((resolve) => umpire.once('exit', resolve));
  await rm(work, { recursive: true, force: true });
}
