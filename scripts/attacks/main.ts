/**
 * Runs attacks one after another, each against a service of its own, and prints how a neighbour fared: see
 * `scripts/attacks.sh`.
 */
import { spawnSync } from 'node:child_process';
import { setPriority } from 'node:os';
import { parseArgs } from 'node:util';
import { startProxy } from '../../test/support/nginx.ts';
import { ATTACKS as PORT_ATTACKS } from './attacks.ts';
import { BODY_ATTACKS } from './bodies.ts';
import { sleep } from './calls.ts';
import { CATALOG_ATTACKS } from './catalogs.ts';
import { FLOODS } from './floods.ts';
import { type Fare, type Fares, KINDS, startNeighbour } from './neighbour.ts';
import { PLACE_ATTACKS } from './places.ts';
import { ROOT, startTarget, type Target } from './target.ts';

const ATTACKS = { ...PORT_ATTACKS, ...BODY_ATTACKS, ...CATALOG_ATTACKS, ...FLOODS, ...PLACE_ATTACKS };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '15' },
    calm: { type: 'string', default: '5' },
    checkout: { type: 'string', default: ROOT },
    'through-nginx': { type: 'boolean', default: false },
  },
});
const ms = (value: number): string => (Number.isNaN(value) ? '-' : value.toFixed(0));
const cell = ({ answered, asked, p50, p99, gap }: Fare): string =>
  `${answered}/${asked} ${ms(p50)}/${ms(p99)} ms, gap ${(gap / 1000).toFixed(1)} s`;

/** How much less the attacker's thread matters than the neighbour's and the service's. */
const NICENESS = 10;
/** Seconds that a neighbour may be without an answer. */
const MOST_GAP = 2;
/** What did not hold, a line each. */
const broken: string[] = [];

function print(when: string, fares: Fares, target: Target): void {
  const memory = target.memory();
  console.log(
    `| ${when} | ${KINDS.map((kind) => cell(fares[kind])).join(' | ')} | ${memory === undefined ? `ended, status ${target.status}` : memory.toFixed(0)} |`,
  );
}

async function run(name: string, attack: (typeof ATTACKS)[string]): Promise<void> {
  const service = await startTarget(values.checkout, {
    ...(name === 'reflection-stream' ? { UMPIRE_REFLECTION: 'on' } : {}),
    ...(values['through-nginx'] ? { UMPIRE_TRUSTED_PROXIES: '127.0.0.1' } : {}),
  });
  const proxy = values['through-nginx']
    ? await startProxy([`127.0.0.1:${service.port}`], { cleartext: true, connections: 16_384 })
    : undefined;
  // Getters of the service, such as its status, stay alive.
  const target: Target = Object.create(service, {
    port: { value: proxy?.port ?? service.port },
    http2Port: { value: proxy?.http2Port ?? service.port },
  });
  const neighbour = startNeighbour(target);
  console.log(`\n### ${name}\n`);
  console.log(`| | ${KINDS.join(' | ')} | MiB |`);
  console.log(`|---|${'---|'.repeat(KINDS.length + 1)}`);
  await sleep(1000);
  neighbour.read();
  await sleep(Number(values.calm) * 1000);
  print('before', neighbour.read(), target);
  let most = 0;
  const watch = setInterval(() => {
    most = Math.max(most, target.memory() ?? 0);
  }, 250);
  // Real attackers bring processors of their own: what theirs takes from the neighbour says nothing of the service.
  setPriority(process.pid, NICENESS);
  const did = await attack(target, Number(values.seconds));
  const during = neighbour.read();
  print('during', during, target);
  const left = performance.now();
  await sleep(Number(values.calm) * 1000);
  print('after', neighbour.read(), target);
  await sleep(Math.max(0, 10_000 - (performance.now() - left)));
  print('10 s after', neighbour.read(), target);
  clearInterval(watch);
  console.log(`\n${did}; most memory ${most.toFixed(0)} MiB`);
  for (const kind of ['decision', 'new connection'] as const) {
    const { gap } = during[kind];
    if (gap > MOST_GAP * 1000) broken.push(`${name}: ${kind} ${(gap / 1000).toFixed(1)} s without an answer`);
  }
  if (target.status !== null) broken.push(`${name}: the service ended with ${target.status}`);
  const held = await Promise.all(['umpire_requests_open', 'umpire_watches', 'umpire_unread_bytes'].map(target.metric));
  if (held[1] !== 0 || held[2] !== 0) broken.push(`${name}: still held: ${held.join(', ')}`);
  await neighbour.stop();
  await proxy?.stop();
  await target.stop();
}
const names = positionals.length > 0 ? positionals : Object.keys(ATTACKS);
const unknown = names.find((name) => !Object.hasOwn(ATTACKS, name));
if (unknown !== undefined) {
  console.error(`no attack is called ${unknown}; there are: ${Object.keys(ATTACKS).join(', ')}`);
  process.exit(2);
}
const [first = '', ...others] = names;
if (others.length === 0) {
  await run(first, ATTACKS[first] as (typeof ATTACKS)[string]);
} else {
  // A process cannot raise its priority again, so that each attack has one of its own.
  const flags = process.argv.slice(2).filter((argument) => !names.includes(argument));
  for (const name of names) {
    const { status } = spawnSync(process.execPath, [import.meta.filename, name, ...flags], { stdio: 'inherit' });
    if (status !== 0) process.exitCode = 1;
  }
}
if (broken.length > 0) {
  console.log(`\nDid not hold:\n${broken.map((line) => `- ${line}`).join('\n')}`);
  process.exitCode = 1;
}
