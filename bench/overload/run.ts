/**
 * Overload: an open loop of arrivals at several times the capacity. Measured is how many decisions are still made, and
 * how fast the others are refused.
 */
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { cpuSeconds, residentBytes } from '../load/cpu.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/**
 * Runs the benchmark and prints its table. `--seconds N`, `--factor N`, `--engines N`, `--tokens N`, `--choices N`,
 * `--model NAME`, `--models FOLDER`.
 */
export async function run(
  options: Record<string, number>,
  { model, models }: Record<string, string> = {},
): Promise<void> {
  const { seconds = 60, factor = 5, engines = availableParallelism(), tokens = 58, choices = 8 } = options;
  const rows: string[][] = [];
  for (const protocol of ['rest', 'grpc'] as const) {
    const service = await startService({
      UMPIRE_ENGINES: String(engines),
      ...(models === undefined ? {} : { UMPIRE_MODELS_DIR: resolve(models) }),
    });
    try {
      const plan = { port: service.port, protocol, warmUp: 1, tokens, choices, model } as const;
      const peak = await runLoad({ ...plan, seconds: Math.min(10, seconds), shape: { callers: 16 } });
      const capacity = peak.latencies.ok.length / peak.seconds;
      const resident: number[] = [];
      const sampling = setInterval(() => resident.push(residentBytes(service.pid)), 500);
      const before = cpuSeconds(service.pid);
      const flood = await runLoad({ ...plan, warmUp: 5, seconds, shape: { perSecond: factor * capacity } });
      const used = (cpuSeconds(service.pid) - before) / (seconds + 5);
      clearInterval(sampling);
      const goodput = flood.latencies.ok.length / flood.seconds;
      const refusals = service
        .log()
        .flatMap(({ reason, durationMs = 0 }) => (reason === 'OVERLOADED' ? [durationMs] : []));
      const half = resident.slice(Math.floor(resident.length / 2));
      rows.push([
        protocol,
        capacity.toFixed(0),
        (flood.sent / flood.seconds).toFixed(0),
        `${goodput.toFixed(0)} (${(goodput / capacity).toFixed(2)})`,
        quantile(flood.latencies.ok, 0.99).toFixed(0),
        quantile(flood.latencies.refused, 0.5).toFixed(1),
        quantile(flood.latencies.refused, 0.99).toFixed(1),
        quantile(refusals, 0.99).toFixed(1),
        String(flood.failed),
        `${(100 * used).toFixed(0)} %`,
        `${((100 * flood.cpu) / flood.seconds).toFixed(0)} %`,
        `${mib(half[0])} → ${mib(half.at(-1))}`,
      ]);
    } finally {
      await service.stop();
    }
  }
  printTable(
    [
      `${factor} × capacity, ${seconds} s`,
      'peak/s',
      'sent/s',
      'goodput/s',
      'ok p99 ms',
      'refused p50 ms',
      'refused p99 ms',
      'server’s clock',
      'failed',
      'server CPU',
      'callers CPU',
      'server MiB',
    ],
    rows,
  );
}

function mib(bytes = 0): string {
  return (bytes / 2 ** 20).toFixed(0);
}
