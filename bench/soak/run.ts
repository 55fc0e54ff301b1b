/**
 * Soak: minutes of steady load over REST and gRPC, with 1 % hostile traffic. Memory, file descriptors and the places of
 * concurrent decisions must return to where they were.
 */

import { once } from 'node:events';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { descriptors, residentBytes } from '../load/cpu.ts';
import { bodyOf } from '../load/requests.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { printTable } from '../report/table.ts';

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

// Hostile callers, one of each kind in turn.

const decision = (body: unknown, headers = ''): string => {
  const json = typeof body === 'string' ? body : JSON.stringify(body);
  return `POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(json)}\r\n\r\n${json}`;
};
const good = bodyOf(58, 8);

/** The bytes that each kind writes. */
const ATTACKS: readonly string[] = [
  decision('{"model": "minilm-l6", '),
  decision({ ...good, choices: Array.from({ length: 301 }, (_, i) => `c${i}`) }),
  decision({ ...good, input: 'word '.repeat(150_000) }),
  decision({ ...good, extra: { __proto__: 1 } }),
  decision({ ...good, model: 'x'.repeat(5000) }),
  decision(good, 'Authorization: Bearer ump_live_nonsense\r\n'),
  decision(good, 'Content-Encoding: gzip\r\n'),
  decision('['.repeat(100_000)),
  `POST /v1/decisions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{"model"`,
  `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `GET /v1/models HTTP/1.1\r\nHost: x\r\n${'X-Y: z\r\n'.repeat(3000)}\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnot a frame at all, not by far',
  '\x16\x03\x01 this is not TLS either',
  'DELETE /v1/decisions HTTP/1.1\r\nHost: x\r\n\r\n',
  decision({ ...good, input: 'one that leaves at once' }),
];

/** Makes one attack and closes the connection after two seconds, the last kind after 5 ms. */
function attack(port: number, turn: number): void {
  const kind = turn % ATTACKS.length;
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  socket.write(ATTACKS[kind] ?? '');
  setTimeout(() => socket.destroy(), kind === ATTACKS.length - 1 ? 5 : 2000);
}
