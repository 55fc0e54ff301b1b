/** The server's entry: environment → config → app; signals → stop and reload. */
import { createApp } from './app.ts';
import { ConfigError, readConfig } from './config.ts';
import { createLogSink } from './logger.ts';

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
const { logger, dropped, flush } = createLogSink(config.logLevel);

async function exit(status: number): Promise<never> {
  await flush();
  process.exit(status);
}

function fail(error: unknown, message: string): Promise<never> {
  logger.fatal({ err: error }, message);
  return exit(1);
}

process.on('uncaughtException', (error) => fail(error, 'a fault that nothing caught'));

const app = await createApp(config, logger, { droppedLogLines: dropped }).catch((error: unknown) =>
  fail(error, 'cannot start'),
);

let stopping = false;
async function stop(signal: NodeJS.Signals): Promise<void> {
  // A second signal means that somebody does not want to wait.
  if (stopping) return exit(1);
  stopping = true;
  logger.info({ signal }, 'asked to stop');
  await app.stop();
  return exit(0);
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
process.on('SIGHUP', () => {
  try {
    app.reload(readConfig(process.env).tls);
  } catch (error) {
    logger.error({ err: error }, 'reload failed; what was there stays');
  }
});

const port = await app.start().catch((error: unknown) => fail(error, 'cannot listen'));
// So that several on one machine can be told apart.
process.title = `umpire ${port}`;
