/** `umpire bridge`: serves System One and OpenAI's decisions in front of a service. */
import type { Metrics } from '../front/metrics.ts';
import type { Site } from '../front/port.ts';
import type { Umpire } from '../front/umpire.ts';
import { readArguments, wholeWithin } from './arguments.ts';
import { type Command, option, repeatable, type Terminal, UsageError } from './command.ts';

const OPTIONS = {
  url: option('URL', 'where the service listens, such as http://localhost:8080; needed'),
  port: option('PORT', 'where it listens; 0 takes a free port', '8090'),
  host: option('ADDRESS', 'the address to listen on', '127.0.0.1'),
  alias: repeatable('NAME=MODEL', 'a name that clients use for a model, such as jev-latest=umpire-mini'),
  keys: option(
    'pass|require|drop',
    'pass: on to the service; require: from every caller; drop: where the service has none',
    'pass',
  ),
  'metrics-port': option('PORT', 'where GET /metrics is served', 'off'),
} as const;

/** The command `umpire bridge`. */
export const BRIDGE_COMMAND: Command = {
  name: 'bridge',
  usage: '--url URL [OPTION]…',
  summary: "serves System One and OpenAI's decisions in front of a service",
  notes: ['It runs until it is stopped, and logs JSON lines to standard output. Keys are never logged.'],
  options: OPTIONS,
  environment: ['LOG_LEVEL', 'UMPIRE_DRAIN_DELAY'],
  async run(args, terminal) {
    const { values } = readArguments(args, OPTIONS);
    const keys = (['pass', 'require', 'drop'] as const).find((how) => how === (values.keys ?? 'pass'));
    if (keys === undefined) throw new UsageError('--keys: must be pass, require or drop');
    const aliases = aliasesFrom(values.alias);
    const { BridgeSite } = await import('../bridge/bridge.ts');
    await serveSite(values, '8090', terminal, (umpire, metrics) => new BridgeSite({ aliases, keys }, umpire, metrics));
  },
};

/**
 * Serves a site in front of the service at `--url` until the operator asks it to end. Throws UsageError, or the
 * system's error if a port is not available.
 */
export async function serveSite(
  values: { readonly [name in 'url' | 'port' | 'host' | 'metrics-port']?: string | undefined },
  usualPort: string,
  terminal: Terminal,
  make: (umpire: Umpire, metrics: Metrics) => Site,
): Promise<void> {
  const { createLogSink, LOG_LEVELS } = await import('../logger.ts');
  const { Port } = await import('../front/port.ts');
  const { Metrics } = await import('../front/metrics.ts');
  const { Umpire } = await import('../front/umpire.ts');
  const { url, port, host = '127.0.0.1', 'metrics-port': metricsPort } = values;
  const umpire = new Umpire(serviceFrom(url));
  const numbers = [
    wholeWithin('--port', port ?? usualPort, 0, 65_535),
    wholeWithin('--metrics-port', metricsPort ?? '0', 0, 65_535),
  ] as const;
  const metrics = new Metrics();
  const level = LOG_LEVELS.find((each) => each === terminal.env.LOG_LEVEL) ?? 'info';
  const { logger, flush } = createLogSink(level, process.stdout);
  const server = new Port(make(umpire, metrics), umpire, logger, metrics);
  // Signals are listened for before the port is open, since whoever sees it open may send one at once.
  const interrupted = terminal.interrupted();
  logger.info({ port: await server.listen(numbers[0], host), service: url }, 'listening');
  const measured =
    metricsPort === undefined ? undefined : await metrics.listen(numbers[1], host, (path) => server.health(path));
  await interrupted;
  await server.stop(1000 * Number(/^\d{1,3}$/.exec(terminal.env.UMPIRE_DRAIN_DELAY ?? '')?.[0] ?? 2));
  umpire.close();
  measured?.closeAllConnections();
  measured?.close();
  await flush();
}

/** The address of a service. Throws UsageError. */
export function serviceFrom(text: string | undefined): string {
  if (text === undefined) throw new UsageError('--url is missing');
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`)
    throw new UsageError(`--url ${text}: must be such as http://localhost:8080`);
  return url.origin;
}

function aliasesFrom(texts: readonly string[] = []): ReadonlyMap<string, string> {
  return new Map(
    texts.map((text) => {
      const [, name, model] = /^([^=]+)=([^=]+)$/.exec(text) ?? [];
      if (name === undefined || model === undefined)
        throw new UsageError(`--alias ${text}: must be such as jev-latest=umpire-mini`);
      return [name, model];
    }),
  );
}
