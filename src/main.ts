/** The server's entry: environment → config → app; signals → stop and reload; a fault that nothing caught → stop. */
import { type App, createApp } from './app.ts';
import { ConfigError, readConfig } from './config.ts';
import { createLogSink } from './logger.ts';
import { StoreUnavailable } from './stores/stores.ts';
import { tryPlace } from './wire/listener/http1-server.ts';

process.title = 'umpire';

function configured() {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`umpire: ${error.message}\n`);
    process.exit(1);
  }
}

const config = configured();
const { logger, dropped, flush } = createLogSink(config.logLevel, process.stdout);

async function exit(status: number): Promise<never> {
  await flush();
  process.exit(status);
}

function fail(error: unknown, message: string): Promise<never> {
  if (error instanceof StoreUnavailable) logger.fatal({}, `${message}: ${error.message}; see UMPIRE_DATA_DIR`);
  else logger.fatal({ err: error }, message);
  return exit(1);
}

function cannotListen(error: unknown): Promise<never> {
  const { code, port: number, address } = error as NodeJS.ErrnoException & { port?: number; address?: string };
  if (code !== 'EADDRINUSE') return fail(error, 'cannot listen');
  // No stack trace: it would not say who has the port. That of a Unix socket is -1.
  const taken = number === undefined || number < 0 ? address : number;
  logger.fatal({ reason: code, port: taken }, `port ${taken} is taken: PORT and UMPIRE_METRICS_PORT name others`);
  return exit(1);
}

/** The status of a process that drained after a fault: EX_SOFTWARE of BSD's sysexits. */
const FAULTED = 70;
/** Milliseconds beyond the drain's own time after which a process that cannot stop in order exits all the same. */
const DRAIN_MARGIN = 15_000;
/** How many faults are logged: where one recurs, the first lines say everything. */
const LOGGED_FAULTS = 10;

let app: App | undefined;
let faults = 0;
let stopping = false;

/** The reason under which a fault is counted: the error's code, or else its name. */
function reasonOf(error: unknown): string {
  const { code, name } = error instanceof Error ? (error as NodeJS.ErrnoException) : { code: undefined, name: 'none' };
  return typeof code === 'string' ? code : name;
}

// Whatever caused the fault may do so again, so the process ends; it first finishes what it has accepted from others.
process.on('uncaughtException', (error) => {
  faults += 1;
  const reason = reasonOf(error);
  if (faults <= LOGGED_FAULTS) logger.fatal({ err: error, reason }, 'a fault that nothing caught');
  if (app === undefined) {
    void exit(1);
    return;
  }
  app.noteFault(reason);
  void drain(app);
});

// Said before anything is loaded; the places are taken once there is something to answer with.
for (const port of [config.port, config.metricsPort])
  if (port !== undefined) await tryPlace({ port, host: config.host }).catch(cannotListen);

app = await createApp(config, logger, { droppedLogLines: dropped }).catch((error: unknown) =>
  fail(error, 'cannot start'),
);

async function drain(running: App): Promise<void> {
  if (stopping) return;
  stopping = true;
  const ended = (): Promise<never> => exit(faults > 0 ? FAULTED : 0);
  setTimeout(ended, config.drainDelay + config.drainGrace + DRAIN_MARGIN);
  await running.stop().catch((error: unknown) => fail(error, 'cannot stop in order'));
  await ended();
}

function stop(signal: NodeJS.Signals): void {
  // A second signal means that somebody does not want to wait.
  if (stopping) {
    void exit(faults > 0 ? FAULTED : 1);
    return;
  }
  logger.info({ signal }, 'asked to stop');
  if (app !== undefined) void drain(app);
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
process.on('SIGHUP', () => {
  try {
    app?.reload(readConfig(process.env).tls);
  } catch (error) {
    logger.error({ err: error }, 'reload failed: what was in use stays in use');
  }
});

const port = await app.start().catch(cannotListen);
// The port tells several servers on one machine apart.
process.title = `umpire ${port === 0 ? config.port : port}`;
