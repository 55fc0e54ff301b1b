/**
 * What the service takes before it has done anything: the time from the start of its process until it is ready, the CPU
 * time of the serving process in it, and the resident memory once it is idle; as shipped, and with what an operator may
 * switch on. The variants take turns. Then what its engines take: with an empty data folder and with one that an
 * earlier start has filled, until one that was killed decides again, and how much memory they have for themselves; and
 * where the time of loading each model goes.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, residentBytes } from '../load/cpu.ts';
import { startService } from '../load/service.ts';
import { startTraceReceiver } from '../load/trace-receiver.ts';
import { median } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/** What was measured of one start. `start`: milliseconds; `server` and `engines`: resident bytes. */
interface Round {
  readonly start: number;
  /** CPU milliseconds of the serving process until it is ready: other work of the machine changes them least. */
  readonly cpu: number;
  readonly server: number;
  readonly engines: number;
}

/** Milliseconds until memory is measured: what the start leaves behind has been collected by then, or stays. */
const SETTLED = 3000;
const MIB = 1024 * 1024;

const MODELS_DIR = fileURLToPath(new URL('../../models', import.meta.url));
const STEPS = fileURLToPath(new URL('./steps.ts', import.meta.url));

/** Runs the benchmark and prints its tables. `--rounds N`, `--engines N`. */
export async function run({ rounds = 5, engines = 2 }: { rounds?: number; engines?: number }): Promise<void> {
  const receiver = await startTraceReceiver();
  const metrics = { UMPIRE_METRICS_PORT: '0' };
  const variants: readonly (readonly [name: string, settings: Readonly<Record<string, string>>])[] = [
    ['as it comes', {}],
    ['metrics', metrics],
    ['traces', receiver.settings(1)],
    ['metrics and traces', { ...metrics, ...receiver.settings(1) }],
  ];
  const measured = variants.map((): Round[] => []);
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, [, settings]] of variants.entries()) {
      const one = await measure({ UMPIRE_ENGINES: String(engines), ...settings });
      // The first round only fills the system's caches.
      if (round >= 0) measured[index]?.push(one);
    }
  }
  receiver.close();
  printTable(
    [`start, ${engines} engines`, 'ready after ms', 'CPU ms', 'server MiB', 'engines MiB'],
    variants.map(([name], index) => {
      const of = (field: keyof Round): number => median((measured[index] ?? []).map((each) => each[field]));
      return [
        name,
        of('start').toFixed(0),
        of('cpu').toFixed(0),
        (of('server') / MIB).toFixed(1),
        (of('engines') / MIB).toFixed(1),
      ];
    }),
  );
  await measureEngines(rounds);
  measureSteps();
}

/** What was measured of one start with one engine: milliseconds, CPU milliseconds of the engine, and bytes. */
interface EngineRound {
  readonly ready: number;
  readonly cpu: number;
  readonly again: number;
  readonly own: number;
  readonly shared: number;
}

async function measureEngines(rounds: number): Promise<void> {
  const rows: string[][] = [];
  for (const models of ['umpire-mini', '']) {
    const measured: Record<'empty' | 'kept', EngineRound[]> = { empty: [], kept: [] };
    for (let round = 0; round < rounds; round += 1) {
      const data = mkdtempSync(join(tmpdir(), 'umpire-bench-data-'));
      for (const folder of ['empty', 'kept'] as const) measured[folder].push(await measureEngine(models, data));
      rmSync(data, { recursive: true });
    }
    for (const [folder, all] of Object.entries(measured)) {
      const of = (field: keyof EngineRound): number => median(all.map((each) => each[field]));
      const times = [of('ready'), of('cpu'), of('again')].map((value) => value.toFixed(0));
      const sizes = [of('own'), of('shared')].map((bytes) => (bytes / MIB).toFixed(0));
      rows.push([models || 'all models', folder, ...times, ...sizes]);
    }
  }
  printTable(
    ['one engine', 'cache', 'ready after ms', 'CPU ms', 'killed, decides after ms', 'own MiB', 'files MiB'],
    rows,
  );
}

async function measureEngine(models: string, data: string): Promise<EngineRound> {
  const began = performance.now();
  const service = await startService({ UMPIRE_ENGINES: '1', UMPIRE_MODELS: models || 'all', UMPIRE_DATA_DIR: data });
  const ready = performance.now() - began;
  const [engine = 0] = service.engines();
  const cpu = 1000 * cpuSeconds(engine);
  const decide = async (): Promise<boolean> => {
    const body = {
      model: 'umpire-mini',
      input: 'I was charged twice',
      instruction: 'Which team?',
      choices: ['billing', 'sales'],
    };
    const headers = { 'content-type': 'application/json' };
    const terms = { method: 'POST', headers, body: JSON.stringify(body) };
    return (await fetch(`http://127.0.0.1:${service.port}/v1/decisions`, terms)).ok;
  };
  await decide();
  await sleep(SETTLED);
  const memory = readFileSync(`/proc/${engine}/smaps_rollup`, 'utf8');
  const bytesOf = (kind: string): number =>
    1024 * Number(new RegExp(`^${kind}:\\s+(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
  process.kill(engine, 'SIGKILL');
  const killed = performance.now();
  // The pool learns of the end a moment later.
  while (service.engines().includes(engine) || !(await decide())) await sleep(5);
  const again = performance.now() - killed;
  await service.stop();
  const own = bytesOf('Private_Dirty');
  return { ready, cpu, again, own, shared: bytesOf('Rss') - own };
}

function measureSteps(): void {
  const models = readdirSync(MODELS_DIR).flatMap((id) =>
    readdirSync(join(MODELS_DIR, id)).map((name) => join(id, name)),
  );
  const measured = models.map((model): Record<string, number> => {
    const cache = mkdtempSync(join(tmpdir(), 'umpire-bench-cache-'));
    const found = execFileSync(process.execPath, ['--expose-gc', STEPS, join(MODELS_DIR, model), cache], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    rmSync(cache, { recursive: true });
    return JSON.parse(found.toString());
  });
  const steps = Object.keys(measured[0] ?? {});
  printTable(
    ['CPU ms', ...models],
    steps.map((step) => [step, ...measured.map((each) => (each[step] ?? 0).toFixed(0))]),
  );
}

async function measure(settings: Readonly<Record<string, string>>): Promise<Round> {
  const began = performance.now();
  const service = await startService(settings);
  const start = performance.now() - began;
  const cpu = 1000 * cpuSeconds(service.pid);
  await sleep(SETTLED);
  const server = residentBytes(service.pid);
  const engines = service.engines().reduce((sum, pid) => sum + residentBytes(pid), 0);
  await service.stop();
  return { start, cpu, server, engines };
}
