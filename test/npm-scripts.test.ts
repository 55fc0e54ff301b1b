/**
 * The commands that the README starts Umpire with: what they are told, the service is told, and nothing is left behind.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { lightModel } from './support/light-model.ts';
import { newUserEnv } from './support/new-user.ts';
import { outputOf } from './support/output.ts';
import { freePort, until } from './support/redis.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

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
      cwd: root,
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
