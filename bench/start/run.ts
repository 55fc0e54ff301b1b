/**
 * What the service takes before it has done anything: the time from the start of its process until it is ready, the CPU
 * time of the serving process in it, and the resident memory once it is idle; as shipped, and with what an operator may
 * switch on. The variants take turns.
 */
import { setTimeout as sleep } from 'node:timers/promises';
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

/** Runs the benchmark and prints its table. `--rounds N`, `--engines N`. */
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
