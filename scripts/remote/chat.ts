/**
 * Runs Umpire against a language model at llama-cpp-python's server and behind LiteLLM's proxy, as chat.sh describes.
 * Its arguments are the folders of both, and the parts to run: `decisions`, `proxy`, `troubles`; all if none is named.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { RealServer, withServer } from './real-server.ts';
import { calm, frozen, killed, slowed, wrongKey } from './troubles.ts';
import {
  type Asked,
  complain,
  difference,
  distribution,
  freePort,
  pause,
  root,
  runPython,
  say,
  type Umpire,
  until,
  withFolder,
  withUmpire,
  writeLocalPackage,
} from './umpire.ts';

const [, , tool = '', proxy = '', ...parts] = process.argv;
const has = (part: string): boolean => parts.length === 0 || parts.includes(part);
const KEY = 'chat-key-of-a-script';
const MODEL = 'qwen';
/** The letters of choices, in their order. */
const LETTERS = 'ABCDEFGHJKLMNOPQRSTU';

const TEXTS = [
  'I was charged twice for my order',
  'Der Bildschirm bleibt schwarz, seit ich das Update installiert habe',
  '我的包裹还没有到 🙂',
];
const CHOICE_SETS = [
  ['billing', 'shipping', 'technical support'],
  ['10', '9', 'praise', 'a complaint', 'A', 'something else', 'état'],
];
const SAMPLE: readonly Asked[] = CHOICE_SETS.flatMap((choices) =>
  TEXTS.map((input) => ({ input, instruction: 'What does the writer want?', choices: [...choices].sort() })),
);
const [FIRST] = SAMPLE as readonly [Asked];

/** What the library makes of a prompt. */
interface Direct {
  readonly logprobs: readonly number[];
  readonly likeliest: string;
}

/** The package's own prompt templates. */
type Templates = Readonly<Record<'system' | 'user' | 'choice', string>>;

/** The sample with what the library alone makes of it: logits in the order of the choices. */
async function directly({ system, user, choice }: Templates) {
  const prompts = SAMPLE.map((asked) => {
    const lines = asked.choices.map((text, i) =>
      choice.replace('{letter}', LETTERS[i] ?? '').replace('{choice}', () => text),
    );
    const texts: Readonly<Record<string, string>> = { ...asked, choices: lines.join('\n') };
    const filled = user.replaceAll(/\{(instruction|choices|input)\}/g, (_, name) => texts[name] ?? '');
    return { primer: PRIMER, system, user: filled, letters: [...LETTERS].slice(0, lines.length) };
  });
  const program = [join(tool, 'bin', 'python'), 'chat_direct.py', join(tool, 'model.gguf')];
  const found = (await runPython(program, prompts)) as readonly Direct[];
  return found.map(({ logprobs, likeliest }, i) => {
    const mass = logprobs.reduce((sum, logprob) => sum + Math.exp(logprob), 0);
    return { asked: SAMPLE[i] as Asked, logits: logprobs, mass, likeliest };
  });
}

/** A prompt with which no other begins. */
const PRIMER = { system: 'x', user: 'y' };

/**
 * Has the server read another prompt. It keeps what it has read, and a prompt whose beginning it has read gets slightly
 * other numbers: the library alone reads the same one first.
 */
async function prime(port: number): Promise<void> {
  const messages = Object.entries(PRIMER).map(([role, content]) => ({ role, content }));
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ model: MODEL, messages, max_tokens: 1 }),
  });
  await response.text();
}

/** Compares decisions with the library's. */
async function compare(
  { umpire, model, port }: { readonly umpire: Umpire; readonly model: string; readonly port: number },
  expected: Awaited<ReturnType<typeof directly>>,
): Promise<void> {
  let largest = 0;
  let others = 0;
  for (const { asked, logits } of expected) {
    await prime(port);
    const got = await umpire.decide(model, asked);
    if (got.outcome !== '200') complain(`${model}: ${got.outcome}: ${got.message}`);
    const alone = distribution(asked.choices, logits, 1);
    largest = Math.max(largest, difference(got.probabilities, alone));
    if (alone[got.choice ?? ''] !== Math.max(...Object.values(alone))) others++;
  }
  const masses = expected.map(({ mass }) => mass);
  say(
    `${model}: ${expected.length} decisions compared with the library's, ${others} with another choice, ` +
      `largest difference ${largest.toFixed(6)}; the letters have at least ${Math.min(...masses).toFixed(3)} of the probability`,
  );
  if (largest > 1e-3) complain(`decisions of ${model} are not those of the library`);
}

/** Compares answers alone with the library's likeliest token. */
async function compareAnswers(
  umpire: Umpire,
  port: number,
  expected: Awaited<ReturnType<typeof directly>>,
): Promise<void> {
  let same = 0;
  for (const { asked, likeliest } of expected) {
    await prime(port);
    const { choice } = await umpire.decide('answers', asked);
    if (choice === asked.choices[LETTERS.indexOf(likeliest.trim().toUpperCase())]) same++;
  }
  say(`answers: ${same} of ${expected.length} decisions by an answer alone are the library's likeliest token`);
  if (same < expected.length) complain('answers are not the likeliest token');
}

/** Adds a model with the command. Resolves to the package's folder. */
async function add(models: string, name: string, port: number, server: string, options: object): Promise<string> {
  await mkdir(models, { recursive: true });
  const file = join(models, '..', `${name}.json`);
  // A busy machine takes its time.
  await writeFile(file, JSON.stringify({ timeout_ms: 30_000, in_flight: { requests: 2 }, ...options }));
  await writeFile(join(models, '..', `token-${server}`), KEY);
  const args = [
    ...['models', 'add', `${name}@r1`, '--url', `http://127.0.0.1:${port}`, '--server', server, '--dialect', 'chat'],
    ...['--model', MODEL, '--token-file', join(models, '..', `token-${server}`), '--options', file, '--default'],
    ...['--input-tokens', '25', '--candidate-tokens', '6', '--choices', '7'],
  ];
  const env = { ...process.env, UMPIRE_MODELS_DIR: models };
  const { stdout } = await promisify(execFile)(join(root, 'bin', 'umpire'), args, { env });
  say(
    `models add: ${stdout
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => line.trim())
      .join('; ')}`,
  );
  return join(models, name, 'r1');
}

function serverOn(port: number): RealServer {
  return new RealServer((key) => ({
    program: join(tool, 'bin', 'python'),
    args: [
      ...['-m', 'llama_cpp.server', '--model', join(tool, 'model.gguf'), '--model_alias', MODEL],
      ...['--host', '127.0.0.1', '--port', String(port), '--api_key', key],
      ...['--n_ctx', '512', '--n_threads', '1', '--n_threads_batch', '1', '--interrupt_requests', 'false'],
    ],
    health: `http://127.0.0.1:${port}/v1/models`,
  }));
}

async function proxyOn(port: number, behind: number, folder: string): Promise<RealServer> {
  const config = {
    model_list: [
      {
        model_name: MODEL,
        litellm_params: { model: `openai/${MODEL}`, api_base: `http://127.0.0.1:${behind}/v1`, api_key: KEY },
      },
    ],
    general_settings: { master_key: KEY },
    router_settings: { num_retries: 0 },
  };
  // JSON is YAML.
  const file = join(folder, 'litellm.yaml');
  await writeFile(file, JSON.stringify(config));
  return new RealServer(() => ({
    program: join(proxy, 'bin', 'litellm'),
    args: ['--config', file, '--host', '127.0.0.1', '--port', String(port), '--telemetry', 'False'],
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', NO_PROXY: '127.0.0.1' },
    health: `http://127.0.0.1:${port}/v1/models`,
  }));
}

const templatesIn = async (folder: string): Promise<Templates> =>
  JSON.parse(await readFile(join(folder, 'model.json'), 'utf8')).options.templates;

/** The same through LiteLLM's proxy, and what it makes of a server that is killed behind it. */
async function throughProxy(
  work: string,
  behind: number,
  server: RealServer,
  expected: Awaited<ReturnType<typeof directly>>,
) {
  const port = await freePort();
  const models = join(work, 'proxied');
  await withServer(await proxyOn(port, behind, work), KEY, async () => {
    await until(
      async () => (await fetch(`http://127.0.0.1:${port}/health/liveliness`).catch(() => undefined))?.ok === true,
    );
    await add(models, 'proxied', port, 'litellm', {});
    await withUmpire(models, ['proxied'], async (umpire) => {
      await compare({ umpire, model: 'proxied', port: behind }, expected);
      await server.kill();
      const outcomes = new Map<string, number>();
      for (let i = 0; i < 12; i++) {
        const { outcome } = await umpire.decide('proxied', FIRST);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        await pause(100);
      }
      say(`killed behind the proxy: ${[...outcomes].map(([outcome, count]) => `${count} × ${outcome}`).join(', ')}`);
      if (outcomes.has('200')) complain('a decision without the model');
      server.start(KEY);
      await server.ready();
      const back = await until(async () => (await umpire.decide('proxied', FIRST)).outcome === '200');
      say(`behind the proxy again: decides ${back.toFixed(2)} s later`);
      await compare({ umpire, model: 'proxied', port: behind }, expected);
    });
  });
}

/** Decisions by log-probabilities and by answers, beside what the library makes of them. */
async function compareAll(models: string, port: number, folder: string): Promise<void> {
  await add(models, 'answers', port, 'llama.cpp', { scores: 'choice', body: { response_format: null } });
  const templates = await templatesIn(folder);
  const once = await directly(templates);
  await withUmpire(models, ['llm', 'answers'], async (umpire) => {
    await compare({ umpire, model: 'llm', port }, once);
    await compareAnswers(umpire, port, once);
  });
}

/** What callers see of the server in trouble. */
async function trouble(models: string, server: RealServer, folder: string): Promise<void> {
  await writeLocalPackage(models);
  await withUmpire(models, ['minilm-l6', 'llm'], async (umpire) => {
    const scene = { umpire, server, model: 'llm', asked: FIRST, key: KEY };
    await calm(scene);
    await killed(scene);
    await frozen(scene);
    await slowed(scene);
    await wrongKey(scene, folder, '../../../token-llama.cpp');
  });
}

await withFolder(async (work) => {
  const port = await freePort();
  const server = serverOn(port);
  await withServer(server, KEY, async () => {
    say(`llama-cpp-python: ready after ${(await server.ready()).toFixed(1)} s`);
    const models = join(work, 'models');
    const folder = await add(models, 'llm', port, 'llama.cpp', {});
    if (has('decisions')) await compareAll(models, port, folder);
    if (has('proxy')) await throughProxy(work, port, server, await directly(await templatesIn(folder)));
    if (has('troubles')) {
      await rm(join(models, 'answers'), { recursive: true, force: true });
      await trouble(models, server, folder);
    }
  });
});
