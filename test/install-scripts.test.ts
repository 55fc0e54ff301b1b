/** A dependency cannot run a program of its own by being installed: `.npmrc` says so to every version of npm. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';

const run = promisify(execFile);

/** Installs a dependency whose script leaves a trace, from a file, under these npm settings. Whether the script ran. */
async function scriptRuns(settings: string | undefined): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'umpire-install-'));
  const trace = join(folder, 'trace');
  const dependency = join(folder, 'dependency');
  const project = join(folder, 'project');
  try {
    for (const made of [dependency, project]) mkdirSync(made);
    const scripts = { postinstall: `node -e "fs.writeFileSync('${trace}', '')"` };
    writeFileSync(join(dependency, 'package.json'), JSON.stringify({ name: 'dependency', version: '1.0.0', scripts }));
    const { stdout } = await run('npm', ['pack', '--loglevel=error', '--pack-destination', folder], {
      cwd: dependency,
    });
    const dependencies = { dependency: `file:${join(folder, stdout.trim())}` };
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'project', version: '1.0.0', dependencies }));
    if (settings !== undefined) copyFileSync(settings, join(project, '.npmrc'));
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: project });
    return existsSync(trace);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test('the install script of a dependency does not run', async (t) => {
  t.timeout(120_000);
  t.log(`without these settings it would: ${await scriptRuns(undefined)}`);
  t.false(await scriptRuns(fileURLToPath(new URL('../.npmrc', import.meta.url))));
});
