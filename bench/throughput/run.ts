/**
 * Throughput at full load: callers that always have a request open, over REST and gRPC, compared with bare loops over
 * the runtime in as many processes. The rounds take turns, so that a machine which slows down slows all of them. CPU
 * times show where the difference goes.
 */
import { availableParallelism } from 'node:os';
import { type BareTotals, runBare } from '../baseline/bare.ts';
import { cpuSeconds } from '../load/cpu.ts';
import type { LoadPlan } from '../load/generator.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { startTraceReceiver } from '../load/trace-receiver.ts';
import { median } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/** What was measured in one round: decisions per second, and the CPU milliseconds of a decision by who used them. */
interface Round {
  readonly perSecond: number;
  readonly server: number;
  readonly engines: number;
  readonly callers: number;
}

/**
 * Runs the benchmark and prints its table. `--seconds N` of a round, `--rounds N`, `--engines N`, `--callers N`,
 * `--tokens N`, `--choices N`; `--metrics 1` and `--traces SHARE` switch these on in the service.
 */
export async function run(options: Record<string, number>): Promise<void> {
  const { seconds = 6, rounds = 3, engines = availableParallelism(), callers = 16, tokens = 58, choices = 8 } = options;
  const receiver = await startTraceReceiver();
  const service = await startService({
    UMPIRE_ENGINES: String(engines),
    ...(options.metrics === 1 ? { UMPIRE_METRICS_PORT: '0' } : {}),
    ...(options.traces === undefined ? {} : receiver.settings(options.traces)),
  });
  const bare: BareTotals[] = [];
  const measured: Record<'rest' | 'grpc', Round[]> = { rest: [], grpc: [] };
  try {
    for (let round = 0; round < rounds; round++) {
      bare.push(await runBare(engines, seconds, tokens));
      for (const protocol of ['rest', 'grpc'] as const) {
        const plan: LoadPlan = {
          port: service.port,
          protocol,
          shape: { callers },
          seconds,
          warmUp: 1,
          tokens,
          choices,
        };
        const pids = service.engines();
        const before = [cpuSeconds(service.pid), ...pids.map(cpuSeconds)];
        const { latencies, cpu } = await runLoad(plan);
        const [server = 0, ...each] = [cpuSeconds(service.pid), ...pids.map(cpuSeconds)].map(
          (now, i) => now - (before[i] ?? 0),
        );
        const decisions = latencies.ok.length;
        // The CPU time of the service includes the second of warming up.
        const all = decisions * ((seconds + 1) / seconds);
        measured[protocol].push({
          perSecond: decisions / seconds,
          server: (1000 * server) / all,
          engines: (1000 * each.reduce((sum, used) => sum + used, 0)) / all,
          callers: (1000 * cpu) / decisions,
        });
      }
    }
  } finally {
    await service.stop();
    receiver.close();
  }
  const best = median(bare.map(({ perSecond }) => perSecond));
  const row = (name: string, list: readonly Round[], bound: string): readonly string[] => {
    const of = (field: keyof Round): number => median(list.map((each) => each[field]));
    return [
      name,
      of('perSecond').toFixed(0),
      (of('perSecond') / best).toFixed(2),
      bound,
      of('engines').toFixed(2),
      of('server').toFixed(2),
      of('callers').toFixed(2),
    ];
  };
  printTable(
    [
      `${engines} engines, ${tokens} + 6 tokens, ${choices} choices`,
      'decisions/s',
      'of bare',
      'at least',
      'engine ms',
      'server ms',
      'caller ms',
    ],
    [
      [
        'bare loop over onnxruntime-node',
        best.toFixed(0),
        '1.00',
        '',
        median(bare.map(({ cpu }) => cpu)).toFixed(2),
        '',
        '',
      ],
      row('REST', measured.rest, '0.90'),
      row('gRPC', measured.grpc, '0.85'),
    ],
  );
}
