/**
 * `npm run bench -- <name> [--option value]…`: runs one benchmark, which prints a table with its results and those of
 * its baseline in the same run.
 */
import { parseArgs } from 'node:util';

const benchmarks: Readonly<
  Record<string, () => Promise<{ run(numbers: Record<string, number>, words: Record<string, string>): Promise<void> }>>
> = {
  start: () => import('./start/run.ts'),
  shell: () => import('./shell/run.ts'),
  bodies: () => import('./bodies/run.ts'),
  throughput: () => import('./throughput/run.ts'),
  latency: () => import('./latency/run.ts'),
  overload: () => import('./overload/run.ts'),
  chaos: () => import('./chaos/run.ts'),
  scaling: () => import('./scaling/run.ts'),
  stores: () => import('./stores/run.ts'),
  soak: () => import('./soak/run.ts'),
  peer: () => import('./peer/run.ts'),
  replicas: () => import('./replicas/run.ts'),
  'two-stage': () => import('./two-stage/run.ts'),
  learn: () => import('./learn/run.ts'),
  teach: () => import('./teach/run.ts'),
  remote: () => import('./remote/run.ts'),
  cascade: () => import('./cascade/run.ts'),
  bridge: () => import('./bridge/run.ts'),
};

// The bare loops inherit this, too: onnxruntime would otherwise send telemetry over the network.
process.env.ORT_DISABLE_TELEMETRY = '1';

const { positionals, tokens } = parseArgs({
  args: process.argv.slice(2),
  strict: false,
  allowPositionals: true,
  tokens: true,
});
const load = benchmarks[positionals[0] ?? ''];
if (load === undefined) {
  console.error(`usage: npm run bench -- <${Object.keys(benchmarks).join('|')}> [--option value]`);
  process.exit(2);
}
const numbers: Record<string, number> = {};
const words: Record<string, string> = {};
for (const [index, token] of tokens.entries()) {
  if (token.kind !== 'option') continue;
  const next = tokens[index + 1];
  const value = token.value ?? (next?.kind === 'positional' ? next.value : '');
  numbers[token.name] = value === '' ? Number.NaN : Number(value);
  words[token.name] = value;
}
await (await load()).run(numbers, words);
