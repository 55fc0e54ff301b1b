/**
 * A dependency cannot run a program of its own by being installed, and what npm's commands start is what they are told
 * to start, and leaves nothing behind.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { lightModel } from './support/light-model.ts';
import { newUserEnv } from './support/new-user.ts';
import { outputOf } from './support/output.ts';
import { freePort, until } from './support/redis.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));

test('the install script of a dependency does not run', async (t) => {
  const { stdout } = await run('npm', ['config', 'get', 'ignore-scripts'], { cwd: ROOT, env: newUserEnv() });
  t.is(stdout.trim(), 'true');
});

/**
 * What `scripts/install.sh` asks npm for in a clone of this kind; npm itself, which would need a network,
 * only takes notes.
 */
async function asked(clone: { readonly installed: boolean; readonly programs: readonly string[] }): Promise<string[]> {
  const folder = temporaryFolder();
  const notes = join(folder, 'notes');
  const program = (path: string, text: string) => writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  for (const made of ['scripts', 'bin', 'node_modules/.bin']) mkdirSync(join(folder, made), { recursive: true });
  for (const file of ['scripts/install.sh', 'bin/run-node']) copyFileSync(join(ROOT, file), join(folder, file));
  writeFileSync(notes, '');
  program(join(folder, 'bin/npm'), `echo "$1" >>'${notes}'`);
  for (const name of clone.programs) program(join(folder, 'node_modules/.bin', name), 'echo 1');
  for (const name of ['package.json', 'package-lock.json']) {
    writeFileSync(join(folder, name), '{}');
    utimesSync(join(folder, name), 1, 1);
  }
  if (clone.installed) writeFileSync(join(folder, 'node_modules/.package-lock.json'), '{}');
  await run('sh', [join(folder, 'scripts/install.sh')], {
    env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` },
  });
  return readFileSync(notes, 'utf8').trim().split('\n');
}

test('a clone is installed once, and completed where a plain npm ci left the programs out', async (t) => {
  t.deepEqual(await asked({ installed: false, programs: [] }), ['ci', 'rebuild']);
  t.deepEqual(await asked({ installed: true, programs: ['node', 'buf'] }), ['']);
  t.deepEqual(await asked({ installed: true, programs: [] }), ['rebuild']);
  t.deepEqual(await asked({ installed: true, programs: ['node'] }), ['rebuild']);
});

/** What `bin/run-node` says in a clone of this kind, on a machine on which programs answer like this. */
async function said(clone: { installed: boolean; pinned: boolean }, machine: Record<string, string>): Promise<string> {
  const folder = temporaryFolder();
  const program = (path: string, text: string) => writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  for (const made of ['bin', 'path']) mkdirSync(join(folder, made));
  copyFileSync(join(ROOT, 'bin/run-node'), join(folder, 'bin/run-node'));
  for (const [name, answer] of Object.entries(machine)) program(join(folder, 'path', name), answer);
  if (clone.installed) mkdirSync(join(folder, 'node_modules/onnxruntime-node'), { recursive: true });
  if (clone.pinned) {
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
    program(join(folder, 'node_modules/.bin/node'), 'echo ran "$@"');
  }
  const env = { PATH: `${join(folder, 'path')}:/usr/bin:/bin` };
  return run('sh', [join(folder, 'bin/run-node'), 'x.ts', '1'], { env }).then(
    ({ stdout }) => stdout,
    ({ stderr }: { stderr: string }) => stderr,
  );
}

const ISSUES: readonly (readonly [what: string, ...Parameters<typeof said>, said: RegExp])[] = [
  ['an installed clone', { installed: true, pinned: true }, { node: 'exit 1' }, /^ran x\.ts 1$/],
  [
    'a plain npm ci and a new Node',
    { installed: true, pinned: false },
    { node: '[ "$1" = -p ] && echo 26 || echo ran' },
    /^ran$/,
  ],
  [
    'a plain npm ci and Node 20',
    { installed: true, pinned: false },
    { node: 'echo 20' },
    /^umpire: Node 24 or later .*\(found: 20\); 'sh .*install\.sh' installs/,
  ],
  ['a plain npm ci and no Node', { installed: true, pinned: false }, { node: 'exit 127' }, /\(found: none\)/],
  [
    'a fresh clone',
    { installed: false, pinned: false },
    { node: 'echo 20' },
    /^umpire: nothing is installed yet: 'npm run quickstart' /,
  ],
  [
    'a processor without a runtime',
    { installed: true, pinned: true },
    { uname: '[ "$1" = -s ] && echo Linux || echo riscv64' },
    /^umpire: Linux on riscv64 is not supported: /,
  ],
];
for (const [what, clone, machine, expected] of ISSUES) {
  test(`${what}: it runs, or one line says what to do`, async (t) => {
    const output = (await said(clone, machine)).trimEnd();
    t.regex(output, expected);
    t.is(output.split('\n').length, 1);
  });
}

test('every script that npm runs with Node looks first', (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  for (const name of ['start', 'dev', 'test', 'bench', 'eval', 'house', 'umpire'])
    t.regex(scripts[name] ?? '', /^exec bin\/(run-node|umpire)\b/);
});

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (open: boolean): void => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}

// The quick start ends in `npm start`.
for (const args of [
  ['run', 'quickstart'],
  ['run', 'umpire', '--', 'mock'],
]) {
  test.serial(`npm ${args.join(' ')}: SIGTERM to npm alone drains and ends the service`, async (t) => {
    const port = await freePort();
    const child = spawn('npm', args, {
      cwd: ROOT,
      env: newUserEnv({
        PORT: String(port),
        HOST: '127.0.0.1',
        UMPIRE_DATA_DIR: temporaryFolder(),
        UMPIRE_MODELS_DIR: lightModel(),
        UMPIRE_ENGINES: '1',
        UMPIRE_DRAIN_DELAY: '0',
      }),
      detached: true,
    });
    const output = outputOf(child.stdout, child.stderr);
    t.teardown(() => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // Nobody of them is left, as it should be.
      }
    });
    const exited = once(child, 'exit');
    await until(async () => child.exitCode === null && (await isOpen(port)), 60_000);
    child.kill('SIGTERM');
    await exited;
    // npm may end a moment before the service does; an orphan would listen for ever.
    await until(async () => !(await isOpen(port)), 10_000);
    t.is(child.exitCode, 0, output());
    if (!args.includes('mock')) await until(() => /"msg":"stopped"/.test(output()));
  });
}
