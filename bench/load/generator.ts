/**
 * The process that makes the load: `node bench/load/generator.ts '<LoadPlan as JSON>'`. At the end it sends its parent
 * a LoadResult.
 */
import { type Caller, grpcBytes, type Outcome, restBytes, restCaller } from './callers.ts';
import { grpcConnection } from './grpc-connection.ts';
import { bodyOf } from './requests.ts';

/** The load to make. */
export interface LoadPlan {
  readonly port: number;
  readonly protocol: 'rest' | 'grpc';
  /**
   * Closed: so many callers, each of which sends its next request when it has an answer. Open: Poisson arrivals that do
   * not wait for answers.
   */
  readonly shape: { readonly callers: number } | { readonly perSecond: number };
  readonly seconds: number;
  /** Seconds at the beginning that are not counted. */
  readonly warmUp: number;
  readonly tokens: number;
  readonly choices: number;
  /** The model that is asked for; minilm-l6 by default. */
  readonly model?: string | undefined;
}

/** The outcome of the load. Times are in milliseconds. */
export interface LoadResult {
  /** Seconds that were counted. */
  readonly seconds: number;
  /** Of decisions (`ok`), and of refusals. */
  readonly latencies: Readonly<Record<'ok' | 'refused', readonly number[]>>;
  readonly failed: number;
  /** Requests sent in the time that was counted. */
  readonly sent: number;
  /** CPU seconds of this process in the time that was counted. */
  readonly cpu: number;
}

/** gRPC connections: each carries at most 100 calls at a time, and too few connections would limit the load. */
const CONNECTIONS = 24;

/** Addresses that REST callers have: one address may have fewer connections than callers who wait. */
const ADDRESSES = 16;

/** Makes the load. */
async function makeLoad(plan: LoadPlan): Promise<LoadResult> {
  const encode = plan.protocol === 'rest' ? restBytes : grpcBytes;
  const bodies = Array.from({ length: 16 }, (_, seed) => encode(bodyOf(plan.tokens, plan.choices, seed, plan.model)));
  const sessions = plan.protocol === 'grpc' ? Array.from({ length: CONNECTIONS }, () => grpcConnection(plan.port)) : [];
  let made = 0;
  const newCaller = (): Caller => {
    const index = made++;
    return sessions[index % CONNECTIONS]?.caller() ?? restCaller(plan.port, `127.0.0.${1 + (index % ADDRESSES)}`);
  };

  const latencies = { ok: [] as number[], refused: [] as number[] };
  let failed = 0;
  let sent = 0;
  const began = performance.now();
  const from = began + plan.warmUp * 1000;
  const until = from + plan.seconds * 1000;
  const callers: Caller[] = [];
  let cpu = process.cpuUsage();
  setTimeout(() => (cpu = process.cpuUsage()), plan.warmUp * 1000);

  const once = async (caller: Caller): Promise<void> => {
    const at = performance.now();
    if (at >= from && at < until) sent++;
    const outcome: Outcome = await caller.send(bodies[Math.floor(Math.random() * bodies.length)] as Buffer);
    const done = performance.now();
    if (done < from || done >= until) return;
    if (outcome === 'failed') failed++;
    else latencies[outcome].push(done - at);
  };

  if ('callers' in plan.shape) {
    const loop = async (): Promise<void> => {
      const caller = newCaller();
      callers.push(caller);
      while (performance.now() < until) await once(caller);
    };
    await Promise.all(Array.from({ length: plan.shape.callers }, loop));
  } else {
    const idle: Caller[] = [];
    const gap = 1000 / plan.shape.perSecond;
    let next = began;
    let open = 0;
    const send = async (): Promise<void> => {
      const caller = idle.pop() ?? newCaller();
      if (!callers.includes(caller)) callers.push(caller);
      open++;
      await once(caller);
      open--;
      idle.push(caller);
    };
    while (performance.now() < until) {
      for (; next <= performance.now(); next += -Math.log(1 - Math.random()) * gap) void send();
      // The loop wakes for arrivals alone: any other time would take the CPU from an engine for nothing.
      await new Promise((resolve) => setTimeout(resolve, Math.max(1, next - performance.now())));
    }
    for (const end = performance.now() + 12_000; open > 0 && performance.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  for (const caller of callers) caller.close();
  for (const session of sessions) session.close();
  return { seconds: plan.seconds, latencies, failed, sent, cpu: (user + system) / 1e6 };
}

if (process.argv[1] === import.meta.filename) {
  const result = await makeLoad(JSON.parse(process.argv[2] ?? '{}'));
  process.send?.(result, undefined, undefined, () => process.exit(0));
}
