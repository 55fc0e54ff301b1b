/**
 * Soak: minutes of steady load over REST and gRPC, with 1 % hostile traffic. Memory, file descriptors and the places of
 * concurrent decisions must return to where they were.
 */
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { descriptors, residentBytes } from '../load/cpu.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { printTable } from '../report/table.ts';
import { attack } from './hostile.ts';

const probe = fileURLToPath(new URL('./probe.ts', import.meta.url));
/** Concurrent decisions that one address may have: as many must be free at the end. */
const CONCURRENCY = 64;

/**
 * Runs the benchmark. `--minutes N`; `--settle N`, the minute from which growth counts; `--rate N`, decisions per
 * second over REST, with half as many over gRPC; `--replace N` kills an engine every N seconds.
 */
export async function run(options: Record<string, number>): Promise<void> {
  const { minutes = 20, settle = 5, rate = 40, replace = 0 } = options;
  const settings = { UMPIRE_CONCURRENCY_ANONYMOUS: String(CONCURRENCY) };
  const service = await startService(settings, ['--expose-gc', '--import', probe]);
  const memory = async (): Promise<{ readonly heapUsed: number; readonly rss: number }> => {
    service.process.send('memory');
    const [answer] = (await once(service.process, 'message')) as [{ heapUsed: number; rss: number }];
    return answer;
  };
  const rows: string[][] = [];
  const samples: { readonly minute: number; readonly heap: number; readonly rss: number; readonly fds: number }[] = [];
  const sample = async (minute: number): Promise<void> => {
    const { heapUsed: heap, rss } = await memory();
    const fds = descriptors(service.pid);
    samples.push({ minute, heap, rss, fds });
    const engines = service.engines().map((pid) => mib(residentBytes(pid)));
    rows.push([String(minute), mib(heap), mib(rss), engines.join(' + '), String(fds)]);
  };
  try {
    const plan = { port: service.port, warmUp: 0, tokens: 30, choices: 8, seconds: 60 } as const;
    await sample(0);
    let turn = 0;
    const attacking = setInterval(() => attack(service.port, turn++), 100_000 / (1.5 * rate));
    let kills = 0;
    const kill = (): void => {
      const pids = service.engines();
      const victim = pids[kills % pids.length];
      if (victim === undefined) return;
      process.kill(victim, 'SIGKILL');
      kills += 1;
    };
    const killing = replace > 0 ? setInterval(kill, replace * 1000) : undefined;
    let failed = 0;
    let ok = 0;
    for (let minute = 1; minute <= minutes; minute++) {
      const results = await Promise.all([
        runLoad({ ...plan, protocol: 'rest', shape: { perSecond: rate } }),
        runLoad({ ...plan, protocol: 'grpc', shape: { perSecond: rate / 2 } }),
      ]);
      failed += results.reduce((sum, each) => sum + each.failed + each.latencies.refused.length, 0);
      ok += results.reduce((sum, each) => sum + each.latencies.ok.length, 0);
      await sample(minute);
    }
    clearInterval(attacking);
    clearInterval(killing);
    await new Promise((resolve) => setTimeout(resolve, 12_000));
    await sample(minutes);
    const slots = await runLoad({ ...plan, seconds: 2, protocol: 'rest', shape: { callers: CONCURRENCY } });
    printTable(['minute', 'live heap MiB', 'RSS MiB', 'engines MiB', 'descriptors'], rows);
    const from = samples.find(({ minute }) => minute === Math.min(settle, minutes));
    const to = samples.findLast(({ minute }) => minute === minutes);
    const growth = (field: 'heap' | 'rss'): string => mib((to?.[field] ?? 0) - (from?.[field] ?? 0));
    console.log(
      `from minute ${from?.minute} to ${to?.minute}: live heap +${growth('heap')} MiB, RSS +${growth('rss')} MiB, at most 5`,
    );
    console.log(
      `descriptors ${samples[0]?.fds} at the start, ${to?.fds} at the end; ${turn} attacks, ${kills} engines killed; ${ok} decisions, ${failed} failed or refused`,
    );
    console.log(
      `all ${CONCURRENCY} slots of one address are free: ${slots.failed === 0 ? 'yes' : `no, ${slots.failed} refused`}`,
    );
  } finally {
    await service.stop();
  }
}

function mib(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(1);
}
