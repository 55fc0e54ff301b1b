/** The code blocks of docs/bridge.md, run one after another in a folder as somebody who follows the page would. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { complain, root, say, until } from '../remote/umpire.ts';

/** One block, under the heading that it belongs to. */
interface Block {
  readonly heading: string;
  readonly language: string;
  readonly text: string;
}

/** Blocks that serve until they are ended. */
const SERVES = /^(?:bin\/umpire (?:bridge|mcp)|(?:export .*\n)?litellm) /;

/** What a block of a language is run with. */
const RUN: Readonly<Record<string, readonly string[]>> = {
  sh: ['sh', '-euc'],
  python: ['python', '-c'],
  js: ['node', '--input-type=module', '-e'],
};

/** Runs every block with these ports in place of the printed ones, and ends what serves when `work` is done. */
export async function runRecipes(
  folder: string,
  tools: string,
  ports: Readonly<Record<string, number>>,
  work: () => Promise<void>,
): Promise<void> {
  symlinkSync(join(root, 'bin'), join(folder, 'bin'));
  symlinkSync(join(tools, 'npm', 'node_modules'), join(folder, 'node_modules'));
  const path = [join(tools, 'python/bin'), join(folder, 'node_modules/.bin'), process.env.PATH].join(':');
  const env = {
    ...process.env,
    PATH: path,
    LITELLM_MASTER_KEY: 'sk-of-a-script-0123456789abcdef0123456789abcdef',
    // What it would fetch is not needed, and is out of reach on many machines.
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  };
  const serving: ChildProcess[] = [];
  try {
    for (const { heading, language, text } of blocks(ports)) {
      const name = /^# (\S+\.yaml)\n/.exec(text)?.[1];
      if (language === 'yaml' && name !== undefined) writeFileSync(join(folder, name), text);
      if (language === 'json') JSON.parse(text);
      const [command = '', ...args] = RUN[language] ?? [];
      if (command === '') continue;
      // fastmcp is installed by itself.
      const program =
        text.includes('import Client\n') && text.includes('fastmcp') ? join(tools, 'fastmcp/bin/python') : command;
      if (SERVES.test(text)) serving.push(await serve(heading, text, folder, env, ports));
      else await run(heading, program, [...args, text], folder, env);
    }
    await work();
  } finally {
    for (const child of serving) process.kill(-(child.pid as number), 'SIGTERM');
    await Promise.all(serving.map((child) => new Promise((resolve) => child.once('exit', resolve))));
  }
}

function blocks(ports: Readonly<Record<string, number>>): readonly Block[] {
  let page = readFileSync(join(root, 'docs/bridge.md'), 'utf8');
  for (const [printed, port] of Object.entries(ports)) page = page.replaceAll(printed, String(port));
  return page.split(/^##+ /m).flatMap((section) =>
    [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
      heading: section.split('\n', 1)[0] ?? '',
      language,
      text,
    })),
  );
}

async function serve(
  heading: string,
  text: string,
  folder: string,
  env: NodeJS.ProcessEnv,
  ports: Readonly<Record<string, number>>,
): Promise<ChildProcess> {
  // Without an option the bridge listens where the page says.
  const usual = /bridge --url/.test(text) ? `${text.trimEnd()} --port ${ports['8090']}` : text;
  const port = Number(/--port (\d+)/.exec(usual)?.[1]);
  const child = spawn('sh', ['-euc', usual], {
    cwd: folder,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${text}`);
    return await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  });
  say(`${heading}: listens`);
  return child;
}

async function run(
  heading: string,
  program: string,
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  const { stdout } = await promisify(execFile)(program, args, { cwd, env }).catch((error: Error) => {
    complain(`${heading}: ${error.message}`);
    return { stdout: '' };
  });
  // Every recipe asks which team an order that was charged twice belongs to, which tools there are, or a model to chat.
  if (!/billing|"decide"|Hello!/.test(stdout)) complain(`${heading}: answered ${stdout}`);
  say(`${heading}: ${stdout.trim().replaceAll(/\s+/g, ' ').slice(0, 100)}`);
}
