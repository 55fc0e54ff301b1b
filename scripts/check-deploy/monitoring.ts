/**
 * Checks the alerts and the dashboard with a real Prometheus: `node scripts/check-deploy/monitoring.ts [SECONDS]`. Two
 * servers with a Redis and an inference server are under load and scraped; then every rule must be healthy, and every
 * query of the dashboard and of prometheus-adapter must have an answer. The answers are drawn into docs/dashboard.svg.
 * Needs prometheus, promtool and redis-server from Debian.
 */
import { equal, ok } from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { parse, stringify } from 'yaml';
import { startInferenceServer } from '../../test/engine/support/inference-server.ts';
import { encoderGraph } from '../../test/engine/support/packages.ts';
import { writeInferencePackage } from '../../test/engine/support/remote-packages.ts';
import { modelsDir } from '../../test/support/models-dir.ts';
import { freePort, startRedis, until } from '../../test/support/redis.ts';
import { type ServerProcess, startServer } from '../../test/support/server-process.ts';
import { type DrawnPanel, drawDashboard, type Series } from './draw-dashboard.ts';
import { makeVariedLoad } from './varied-load.ts';

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const monitoring = root('deploy/monitoring');
const seconds = Number(process.argv[2] ?? 90);
/** Seconds between two scrapes, and between two points of a query. */
const STEP = 2;
/** The window of rates: short enough to see the load begin. */
const WINDOW = '10s';

for (const args of [
  ['check', 'config', join(monitoring, 'prometheus.yml')],
  ['check', 'rules', join(monitoring, 'alerts.yml')],
  ['test', 'rules', join(monitoring, 'alerts.test.yml')],
]) {
  execFileSync('promtool', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
console.log('promtool: configuration, rules and their tests: ok');

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly gridPos: DrawnPanel['gridPos'];
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string; readonly custom?: { readonly stacking?: { readonly mode: string } } };
  };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

async function allModelsReady({ port }: ServerProcess): Promise<void> {
  await until(async () => {
    const { data } = (await (await fetch(`http://127.0.0.1:${port}/v1/models`)).json()) as {
      data: { status: string }[];
    };
    return data.every(({ status }) => status === 'ready');
  }, 300_000);
}

interface Answer {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, string])[];
}

// Everything that was started ends with this process, also when it is interrupted.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const folder = mkdtempSync(join(tmpdir(), 'umpire-monitoring-'));
const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always']);
const metricsPorts = [await freePort(), await freePort()];
// The servers start one after the other: a model's speed is measured when it is loaded, and a model that shares its
// core may miss its limits.
const servers: ServerProcess[] = [];
const models = modelsDir('minilm-l6');
const cleanUps: (() => unknown)[] = [];
const inferenceServer = await startInferenceServer(
  { teardown: (cleanUp: () => unknown) => cleanUps.push(cleanUp) } as unknown as ExecutionContext,
  { graph: encoderGraph(), output: 'embedding' },
);
await writeInferencePackage(models, inferenceServer.address);
for (const port of metricsPorts) {
  const server = await startServer({
    REDIS_URL: redis.url,
    UMPIRE_METRICS_PORT: String(port),
    UMPIRE_MODELS_DIR: models,
  });
  await allModelsReady(server);
  servers.push(server);
}
const newKey = (...options: readonly string[]): string =>
  execFileSync(process.execPath, [root('src/cli.ts'), 'keys', 'create', '--owner', 'acme', ...options], {
    encoding: 'utf8',
    env: { ...process.env, REDIS_URL: redis.url },
  })
    .trim()
    .split('\n')
    .at(-1) ?? '';

// The shipped configuration, but with addresses in place of the name, and with scrapes as often as a short run needs.
const config = parse(readFileSync(join(monitoring, 'prometheus.yml'), 'utf8'));
config.global = { scrape_interval: `${STEP}s`, evaluation_interval: `${STEP}s` };
config.scrape_configs[0].dns_sd_configs = undefined;
config.scrape_configs[0].static_configs = metricsPorts.map((port, i) => ({
  targets: [`127.0.0.1:${port}`],
  labels: { namespace: 'umpire', pod: `umpire-${i}`, instance: `umpire-${i}` },
}));
writeFileSync(join(folder, 'prometheus.yml'), stringify(config));
copyFileSync(join(monitoring, 'alerts.yml'), join(folder, 'alerts.yml'));
const address = `127.0.0.1:${await freePort()}`;
const prometheus = spawn(
  'prometheus',
  [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=${address}`,
    '--log.level=warn',
  ],
  { stdio: ['ignore', 'inherit', 'inherit'] },
);
const exited = once(prometheus, 'exit');
process.once('exit', () => prometheus.kill('SIGKILL'));

async function api<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(`http://${address}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  const { status, data, error } = (await answer.json()) as { status: string; data: T; error?: string };
  equal(status, 'success', `${path} ${JSON.stringify(parameters)}: ${error}`);
  return data;
}

const filled = (expression: string): string =>
  expression.replaceAll('$__rate_interval', WINDOW).replaceAll('$instance', '.*');
const legend = (format: string, metric: Answer['metric']): string =>
  format.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '');

try {
  await until(async () => (await fetch(`http://${address}/-/ready`).catch(() => undefined))?.status === 200, 30_000);
  const start = Math.ceil(Date.now() / 1000);
  const targets = { servers, redis, key: newKey(), limitedKey: newKey('--rate', '4/s, burst 4') };
  const sent = await makeVariedLoad(targets, seconds);
  const end = Math.floor(Date.now() / 1000);
  console.log(`load: ${sent} requests in ${end - start} s: ok`);

  const { activeTargets } = await api<{ activeTargets: readonly { health: string; lastError: string }[] }>('targets');
  equal(activeTargets.length, 2);
  for (const { health, lastError } of activeTargets) equal(health, 'up', lastError);
  const { groups } = await api<{ groups: readonly { rules: readonly { name: string; health: string }[] }[] }>('rules');
  const rules = groups.flatMap((group) => group.rules);
  for (const { name, health } of rules) equal(health, 'ok', name);
  console.log(`${rules.length} rules evaluated by Prometheus: ok`);

  const { panels, title } = JSON.parse(readFileSync(join(monitoring, 'grafana/umpire.json'), 'utf8')) as {
    panels: readonly Panel[];
    title: string;
  };
  const range = { start: String(start), end: String(end), step: String(STEP) };
  let queries = 0;
  const drawn: DrawnPanel[] = [];
  for (const panel of panels) {
    const series: Series[] = [];
    for (const { expr, legendFormat } of panel.targets ?? []) {
      const { result } = await api<{ result: readonly Answer[] }>('query_range', { query: filled(expr), ...range });
      const found = result.map(({ metric, values }) => ({
        name: legend(legendFormat, metric),
        points: values.map(([at, value]) => [at, Number(value)] as const).filter(([, value]) => Number.isFinite(value)),
      }));
      ok(
        found.some(({ points }) => points.length > 0),
        `${panel.title}: no answer to ${expr}`,
      );
      series.push(...found);
      queries += 1;
    }
    const { unit = 'none', custom } = panel.fieldConfig?.defaults ?? {};
    drawn.push({ ...panel, unit, stacked: custom?.stacking?.mode === 'normal', series });
  }
  console.log(`${queries} queries of the dashboard answered: ok`);

  const adapter = parse(readFileSync(root('deploy/kubernetes/prometheus-adapter.yaml'), 'utf8')).rules.custom[0];
  const query = adapter.metricsQuery
    .replaceAll('<<.GroupBy>>', 'pod')
    .replaceAll('<<.LabelMatchers>>', 'namespace="umpire",pod=~"umpire-0|umpire-1"');
  const { result } = await api<{ result: readonly { value: readonly [number, string] }[] }>('query', { query });
  equal(result.length, 2);
  for (const { value } of result) ok(Number(value[1]) > 0);
  console.log("the autoscaler's metric for each pod: ok");

  writeFileSync(root('docs/dashboard.svg'), drawDashboard(`${title}: ${end - start} s of load`, drawn, start, end));
} finally {
  prometheus.kill('SIGTERM');
  await exited;
  await Promise.all(servers.map((server) => server.stop()));
  await redis.stop();
  for (const cleanUp of cleanUps) await cleanUp();
  rmSync(folder, { recursive: true, force: true });
}
