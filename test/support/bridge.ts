/** Bridges for tests, in this process: the port, site and client that `umpire bridge` puts together. */
import type { ExecutionContext } from 'ava';
import { type BridgeOptions, BridgeSite } from '../../src/bridge/bridge.ts';
import { Metrics } from '../../src/front/metrics.ts';
import { Port, type Site } from '../../src/front/port.ts';
import { Umpire } from '../../src/front/umpire.ts';
import { createLogger } from '../../src/logger.ts';

/** A port in front of a service. */
export interface TestFront {
  readonly port: number;
  /** The log's lines so far, parsed. */
  readonly log: readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/** Starts a port with a site of the test's choice in front of `url`; it is stopped with the test. */
export async function startFront(
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  make: (umpire: Umpire, metrics: Metrics) => Site,
): Promise<TestFront> {
  const log: Record<string, unknown>[] = [];
  const [umpire, metrics] = [new Umpire(url), new Metrics()];
  const logger = createLogger('info', { write: (line) => log.push(JSON.parse(line)) });
  const port = new Port(make(umpire, metrics), umpire, logger, metrics);
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= port.stop(0).then(() => umpire.close());
    return stopped;
  };
  t.teardown(stop);
  return { port: await port.listen(0, '127.0.0.1'), log, stop };
}

/** Starts a bridge that passes keys on and knows `jev-latest`, unless the options say otherwise. */
export const startBridge = (
  t: Pick<ExecutionContext, 'teardown'>,
  url: string,
  options: Partial<BridgeOptions> = {},
): Promise<TestFront> =>
  startFront(
    t,
    url,
    (umpire, metrics) => new BridgeSite({ aliases: new Map(), keys: 'pass', ...options }, umpire, metrics),
  );
