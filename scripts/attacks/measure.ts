/**
 * Measures one attack against one checkout: a service of its own, a neighbour before and during the attack, and what
 * the attack shows.
 */
import { startProxy } from '../../test/support/nginx.ts';
import { startRedis } from '../../test/support/redis.ts';
import type { Defect } from './defects.ts';
import { type Fares, startNeighbour } from './neighbour.ts';
import { type Shown, sleep } from './shown.ts';
import { startTarget, type Target } from './target.ts';

/** What was measured. */
export interface Measured {
  readonly shown: Shown;
  readonly calm: Fares;
  readonly during: Fares;
  /** How many cores the serving process and the attacker's thread kept busy during the attack. */
  readonly cores: { readonly serving: number | undefined; readonly attacker: number };
  /** The exit status of a service that ended though the attack does not end it by itself. */
  readonly died: number | undefined;
  /** Resolves to what is known only long after the attack has begun; the service runs until then. */
  readonly later: (() => Promise<Shown>) | undefined;
}

/** The lengths of the parts of a run, seconds. */
export interface Times {
  readonly warm: number;
  readonly calm: number;
  readonly attack: number;
}

/** The times of every run. */
const TIMES: Times = { warm: 1.5, calm: 4, attack: 7 };
/** Milliseconds between the neighbour's requests of one kind. */
const INTERVAL = 25;
/** Milliseconds that a service gets to end by itself. */
const PATIENCE = 5_000;

/** Connections of nginx's worker: more than the attacks open, so that nginx's default is not what is measured. */
const PROXY_CONNECTIONS = 65_536;

/**
 * Runs a defect's attack. Everything that it starts has ended when it resolves, or when `later` has.
 *
 * `proxied`: attacker and neighbour call through a real nginx with the configuration of `deploy/`, in cleartext, whose
 * addresses the service trusts.
 */
export async function measure(
  { show, settings = {}, redis: options, unreadLog = false, ends = false, http2 = false }: Defect,
  checkout: string,
  proxied = false,
): Promise<Measured | undefined> {
  if (show === undefined) return undefined;
  const redis = options === undefined ? undefined : await startRedis(options);
  const service = await startTarget(
    checkout,
    {
      ...settings,
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
      ...(proxied ? { UMPIRE_TRUSTED_PROXIES: '127.0.0.1' } : {}),
    },
    { readLog: !unreadLog },
  );
  const proxy = proxied
    ? await startProxy([`127.0.0.1:${service.port}`], { cleartext: true, connections: PROXY_CONNECTIONS })
    : undefined;
  const at = (port: number): Target => Object.create(service, { port: { value: port } });
  const target = proxy === undefined ? service : at(http2 ? proxy.http2Port : proxy.port);
  const neighbour = startNeighbour(proxy === undefined ? service : at(proxy.port), INTERVAL);
  const stop = async (): Promise<void> => {
    await proxy?.stop();
    await target.stop(PATIENCE);
    await redis?.stop();
  };
  try {
    await sleep(TIMES.warm * 1000);
    neighbour.read();
    await sleep(TIMES.calm * 1000);
    const calm = neighbour.read();
    const [cpu, own, began] = [target.cpu(), process.threadCpuUsage(), performance.now()];
    // An attack that fails must not cost the figures of the others.
    const shown = await show({ target, ...(redis === undefined ? {} : { redis }) }, TIMES.attack).catch(
      (error: unknown): Shown => ({ figure: `not measured: ${String(error)}`, defect: true }),
    );
    const took = performance.now() - began;
    const during = neighbour.read();
    const spent = process.threadCpuUsage(own);
    const after = target.cpu();
    const died = target.status === null || ends ? undefined : target.status;
    await neighbour.stop();
    const later = 'later' in shown ? (shown.later as () => Promise<Shown>) : undefined;
    if (later === undefined) await stop();
    return {
      shown,
      calm,
      during,
      cores: {
        serving: cpu === undefined || after === undefined ? undefined : ((after - cpu) * 1000) / took,
        attacker: (spent.user + spent.system) / 1000 / took,
      },
      died,
      later: later === undefined ? undefined : () => later().finally(stop),
    };
  } catch (error) {
    await neighbour.stop();
    await stop();
    throw error;
  }
}
