/** The pages of help: one for every command, all of them true and no wider than a terminal. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { COMMANDS } from '../../src/cli/run.ts';
import { linesOf, runUmpire } from '../support/terminal.ts';

const umpire = (...args: string[]) => runUmpire(args);

test('without arguments, or asked for help, all commands with a line each', async (t) => {
  const expected = await umpire('--help');
  for (const args of [[], ['help'], ['-h']]) t.deepEqual(await umpire(...args), expected);
  t.is(expected.status, 0);
  for (const { name, summary } of COMMANDS) {
    t.true(expected.out.includes(`\n  ${name} `), name);
    t.false(/[.\n]$/.test(summary), name);
  }
  for (const line of linesOf(expected.out)) t.true(line.length <= 80, line);
});

for (const { name, usage, options, environment } of COMMANDS) {
  test(`umpire ${name} --help is a page of its own`, async (t) => {
    const { status, out, err } = await umpire(...name.split(' '), '--help');
    t.deepEqual([status, err], [0, '']);
    t.deepEqual(await umpire('help', ...name.split(' ')), { status, out, err });
    t.true(out.startsWith(`usage: umpire ${name}`));
    for (const line of linesOf(out)) t.true(line.length <= 80, line);
    // Every option is on the page and in the usage, and the usage has no others.
    const used = [...usage.matchAll(/--([a-z-]+)/g)].map(([, option]) => option ?? '');
    t.deepEqual([...new Set(used)].toSorted(), Object.keys(options).toSorted());
    for (const [option, { otherwise }] of Object.entries(options)) {
      t.regex(out, new RegExp(`^ {2}--${option}\\b`, 'm'));
      if (otherwise !== undefined) t.true(out.replaceAll(/\s+/g, ' ').includes(`default: ${otherwise}`), option);
    }
    for (const variable of environment) t.true(out.includes(variable), variable);
    t.regex(out, /\nExit status\n {2}0 {1,2}done\n {2}1 .*\n(.*\n)*? {2}2 {1,2}bad arguments\n$/);
    // A page says what holds, and does nothing.
    t.notRegex(out, /undefined/);
  });
}

test('help for what is no command is an error, a group shows its commands', async (t) => {
  t.is((await umpire('help', 'nonsense')).status, 2);
  const group = await umpire('keys', '--help');
  t.is(group.status, 0);
  t.regex(group.out, /^ {2}umpire keys rotate KEY_ID/m);
});

test('the version is the package’s', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  for (const args of [['--version'], ['version']]) {
    const { status, out } = await umpire(...args);
    t.is(status, 0);
    t.is(out, `umpire ${version}, Node ${process.versions.node}\n`);
  }
});
