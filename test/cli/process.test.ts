/** The command as a process, from the launcher that the package names, with nothing of Umpire's on PATH. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { newUserEnv } from '../support/new-user.ts';
import { outputOf } from '../support/output.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const launcher = fileURLToPath(new URL('../../bin/umpire', import.meta.url));
const folder = temporaryFolder();

test('it runs from anywhere, through a link, with the Node that is pinned', async (t) => {
  const link = join(folder, 'umpire');
  symlinkSync(launcher, link);
  const { stdout } = await promisify(execFile)(link, ['--version'], { cwd: folder, env: newUserEnv() });
  t.regex(stdout, /^umpire \d+\.\d+\.\d+, Node 2[4-9]\./);
});

for (const args of ['--help', 'conformance --list', 'models list', 'keys']) {
  test(`umpire ${args}: a reader that closes at once is no error`, async (t) => {
    // Whatever the race: neither a stack trace nor a crash.
    const child = spawn(launcher, args.split(' '), {
      cwd: folder,
      env: newUserEnv(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stdout.destroy();
    if (args === 'keys') child.stderr.destroy();
    const err = outputOf(child.stderr);
    await once(child, 'exit');
    t.is(child.exitCode, args === 'keys' ? 2 : 0);
    t.is(err(), '');
  });
}

test('what was to be done is done, though nobody reads of it', async (t) => {
  const env = newUserEnv({ UMPIRE_DATA_DIR: join(folder, 'data') });
  const child = spawn(launcher, ['keys', 'create', '--owner', 'acme'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
  child.stdout.destroy();
  await once(child, 'exit');
  t.is(child.exitCode, 0);
  const { stdout } = await promisify(execFile)(launcher, ['keys', 'list', '--json'], { env });
  t.is(JSON.parse(stdout).length, 1);
});
