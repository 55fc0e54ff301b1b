/** A dependency cannot run a program of its own by being installed: `.npmrc` says so to every version of npm. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { temporaryFolder } from './support/temporary-folder.ts';

const run = promisify(execFile);

/** Installs a dependency whose script leaves a trace, from a file, under these npm settings. Whether the script ran. */
async function scriptRuns(settings: string | undefined): Promise<boolean> {
  const folder = temporaryFolder();
  const trace = join(folder, 'trace');
  const dependency = join(folder, 'dependency');
  const project = join(folder, 'project');
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
}

test('the install script of a dependency does not run', async (t) => {
  t.timeout(120_000);
  t.log(`without these settings it would: ${await scriptRuns(undefined)}`);
  t.false(await scriptRuns(fileURLToPath(new URL('../.npmrc', import.meta.url))));
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
  copyFileSync(fileURLToPath(new URL('../scripts/install.sh', import.meta.url)), join(folder, 'scripts/install.sh'));
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
