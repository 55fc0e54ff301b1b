/**
 * Runs the attacks of the defects against another checkout and this one, in turns, and writes a Markdown page: `node
 * scripts/attacks/table.ts --before CHECKOUT [--out FILE] [--through-nginx] [NAME…]`. A name is that of a defect,
 * `growth` or `readers`; without names it runs everything. With `--through-nginx` attacker and neighbour call through a
 * real nginx with the configuration of `deploy/`, and only the attacks run that it passes on. The other checkout needs
 * its `node_modules`. Exits with 1 if something did not hold in this checkout.
 */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { DEFECTS } from './defects.ts';
import { type Measured, measure } from './measure.ts';
import { brokenPromises, type Pair, type Results, writePage } from './page.ts';
import type { ReadCost } from './reader.ts';
import { type BodyGrowth, type Growth, measureBodies, measureConnections } from './sizes.ts';
import { ROOT } from './target.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    before: { type: 'string' },
    out: { type: 'string' },
    'through-nginx': { type: 'boolean', default: false },
  },
});
const before = values.before;
if (before === undefined || !existsSync(join(before, 'src/main.ts')) || !existsSync(join(before, 'node_modules'))) {
  console.error('--before names a checkout with its node_modules');
  process.exit(2);
}
const CHECKOUTS: Pair<string> = { before, after: ROOT };

const unknown = positionals.filter((name) => !['growth', 'readers', ...DEFECTS.map(({ id }) => id)].includes(name));
const untested = DEFECTS.filter(({ test: [file, title] }) => !readFileSync(join(ROOT, file), 'utf8').includes(title));
if (unknown.length > 0 || untested.length > 0) {
  for (const name of unknown) console.error(`there is no ${name}`);
  for (const { id, test } of untested) console.error(`${id}: ${test[0]} has no test '${test[1]}'`);
  process.exit(2);
}
const proxied = values['through-nginx'];
const wanted = (name: string): boolean => {
  if (proxied && DEFECTS.find(({ id }) => id === name)?.proxy[0] !== true) return false;
  return positionals.length === 0 || positionals.includes(name);
};

const began = performance.now();
const say = (text: string): void => console.error(`${((performance.now() - began) / 1000).toFixed(0)} s: ${text}`);

/** What could not be measured, a line each; the other figures are kept. */
const failures: string[] = [];

/** Does work on both checkouts, one after the other. `none`: the result of work that failed. */
async function inTurns<T>(what: string, none: T, work: (checkout: string) => Promise<T>): Promise<Pair<T>> {
  const one = async (when: keyof Pair<T>): Promise<T> => {
    say(`${what}, ${when}`);
    try {
      return await work(CHECKOUTS[when]);
    } catch (error) {
      failures.push(`${what}, ${when}, was not measured: ${String(error)}`);
      return none;
    }
  };
  return { before: await one('before'), after: await one('after') };
}

async function readCosts(checkout: string): Promise<ReadCost[]> {
  const reader = fileURLToPath(new URL('reader.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [reader, checkout], { timeout: 120_000 });
  return JSON.parse(stdout) as ReadCost[];
}

async function commitOf(checkout: string): Promise<string> {
  const { stdout } = await promisify(execFile)('git', ['-C', checkout, 'rev-parse', '--short', 'HEAD']);
  return stdout.trim();
}

/** D11, whose outcome is known only after more than a minute, is begun first and asked for at the end. */
const order = DEFECTS.toSorted((a, b) => Number(b.id === 'D11') - Number(a.id === 'D11'));
const measured = new Map<string, Pair<Measured | undefined>>();
for (const defect of order.filter(({ id }) => wanted(id)))
  measured.set(
    defect.id,
    await inTurns<Measured | undefined>(defect.id, undefined, (checkout) => measure(defect, checkout, proxied)),
  );

const bodies: Record<string, Results['bodies'][string]> = {};
const connections: Record<string, Results['connections'][string]> = {};
if (wanted('growth')) {
  for (const id of ['D2', 'D3'] as const)
    bodies[id] = await inTurns(`growth ${id}`, [] as BodyGrowth[], (checkout) => measureBodies(id, checkout));
  for (const id of ['D4', 'D5', 'D7'] as const)
    connections[id] = await inTurns(`growth ${id}`, [] as Growth[], (checkout) => measureConnections(id, checkout));
}
const readers = wanted('readers') ? await inTurns('readers', [] as ReadCost[], readCosts) : { before: [], after: [] };

const ended = async (one: Measured | undefined): Promise<Measured | undefined> =>
  one?.later === undefined ? one : { ...one, shown: await one.later() };
const rows = [];
for (const defect of DEFECTS) {
  const pair = measured.get(defect.id);
  if (pair === undefined) continue;
  // Both are awaited together, since nothing is measured meanwhile.
  const [first, second] = await Promise.all([ended(pair.before), ended(pair.after)]);
  rows.push({ defect, measured: { before: first, after: second } });
}

const minutes = ((performance.now() - began) / 60_000).toFixed(1);
const results: Results = {
  head: [
    '# Attacks, before and after',
    '',
    `\`sh scripts/attacks.sh table --before CHECKOUT${proxied ? ' --through-nginx' : ''}${positionals.map((name) => ` ${name}`).join('')}\`, ${new Date().toISOString().slice(0, 10)}: commit ${await commitOf(before)} before, ${await commitOf(ROOT)} after, in turns on one machine (${availableParallelism()} cores, ${cpus()[0]?.model.trim() ?? 'unknown'}), Node ${process.versions.node}, in ${minutes} minutes. A service of its own for each, with one engine, minilm-l6 and the default limits; all attacks come from 127.0.0.1, the neighbour from 127.0.0.2${proxied ? ', both through nginx with the configuration of `deploy/` but for TLS, and 65,536 connections of its one worker' : ''}.`,
  ],
  rows,
  bodies,
  connections,
  readers,
  failures,
};
const page = writePage(results);
if (values.out === undefined) console.log(page);
else writeFileSync(values.out, page);
const broken = brokenPromises(results);
say(broken.length === 0 ? 'all held' : `did not hold:\n${broken.join('\n')}`);
process.exit(broken.length === 0 ? 0 : 1);
