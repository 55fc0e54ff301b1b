/** Where no traces are exported, nothing that exports them is loaded. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const PROGRAM = fileURLToPath(new URL('../../support/loaded-modules.ts', import.meta.url));

async function loaded(env: Record<string, string>): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], {
    env: { PATH: process.env.PATH, UMPIRE_DATA_DIR: temporaryFolder(), UMPIRE_METRICS_PORT: '0', ...env },
  });
  return JSON.parse(stdout);
}

const EXPORTING = ['@opentelemetry/sdk-trace', '@opentelemetry/exporter-trace-otlp-proto', '@opentelemetry/resources'];

test('without an endpoint nothing of it is loaded, with one all of it', async (t) => {
  const without = await loaded({});
  t.deepEqual(
    EXPORTING.filter((name) => without.includes(name)),
    [],
  );
  const withOne = await loaded({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' });
  t.deepEqual(
    EXPORTING.filter((name) => !withOne.includes(name)),
    [],
  );
});
