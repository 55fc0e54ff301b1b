/**
 * The files of deployments agree with each other and with what the service and the bridge do: ports, probes, options,
 * the time to drain, the metric that is scaled on, and where their files are.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import test from 'ava';
import { parse } from 'yaml';
import { BRIDGE_COMMAND } from '../../src/cli/bridge.ts';
import { SETTINGS } from '../../src/config.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const textOf = (path: string): string => readFileSync(`${root}deploy/${path}`, 'utf8');
const read = (path: string) => parse(textOf(`kubernetes/${path}`));
const { bridge: composed, umpire } = parse(textOf('compose.yaml')).services;
const pod = read('base/workload.yaml').spec.template;
const [container] = pod.spec.containers;
const setting = (name: string): string =>
  container.env.find((each: { readonly name: string }) => each.name === name).value;
const portNamed = (name: string, { ports } = container): number =>
  ports.find((each: { readonly name: string }) => each.name === name).containerPort;
/** Of a unit of systemd, the value of a setting. */
const valueIn =
  (unit: string) =>
  (name: string): string =>
    new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

/** The MiB of a size. */
const mib = (size: string): number => Number.parseInt(size, 10) * (/g/i.test(size) ? 1024 : 1);

/** What a container must have room for, by the formula of running.md, in MiB. */
function mostMemory(env: Readonly<Record<string, string>>): number {
  const of = (name: string): number => Number(env[name] ?? SETTINGS.find((each) => each.name === name)?.default);
  return of('UMPIRE_MEMORY') + (1 + of('UMPIRE_ENGINES')) * of('UMPIRE_ENGINE_MEMORY');
}

test('Prometheus finds the metrics where they are, and nobody outside its namespace does', (t) => {
  const port = setting('UMPIRE_METRICS_PORT');
  t.is(portNamed('metrics'), Number(port));
  t.is(pod.metadata.annotations['prometheus.io/port'], port);
  t.is(pod.metadata.annotations['prometheus.io/path'], '/metrics');
  for (const { name, targetPort } of read('base/service.yaml').spec.ports)
    t.deepEqual([name, targetPort], ['http', 'http']);
  for (const overlay of ['embedded', 'redis']) {
    const ingress = read(`overlays/${overlay}/network-policy.yaml`).spec.ingress as readonly {
      readonly from?: readonly unknown[];
      readonly ports: readonly { readonly port: string }[];
    }[];
    const open = ingress.filter(({ from }) => from === undefined).flatMap(({ ports }) => ports.map(({ port }) => port));
    t.deepEqual(open, ['http']);
    const metrics = ingress.filter(({ ports }) => ports.some(({ port }) => port === 'metrics'));
    const monitoring = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'monitoring' } } };
    const froms = metrics.map(({ from }) => from);
    t.deepEqual(froms, [[monitoring]]);
  }
});

test('a pod is taken out before it stops accepting, and has the time to finish', (t) => {
  const { readinessProbe, livenessProbe, startupProbe } = container;
  t.is(readinessProbe.httpGet.path, '/health/ready');
  t.is(startupProbe.httpGet.path, '/health/ready');
  t.is(livenessProbe.httpGet.path, '/health/live');
  for (const probe of [readinessProbe, livenessProbe, startupProbe]) t.is(probe.httpGet.port, 'metrics');
  const delay = Number(setting('UMPIRE_DRAIN_DELAY'));
  t.true(readinessProbe.periodSeconds * readinessProbe.failureThreshold + readinessProbe.timeoutSeconds < delay);
  t.true(pod.spec.terminationGracePeriodSeconds > delay + Number(setting('UMPIRE_DRAIN_GRACE')));
});

test('there is an engine for each core, and memory for all of them', (t) => {
  const { limits } = container.resources;
  t.is(setting('UMPIRE_ENGINES'), limits.cpu);
  t.true(
    mostMemory({ UMPIRE_MEMORY: setting('UMPIRE_MEMORY'), UMPIRE_ENGINES: setting('UMPIRE_ENGINES') }) <
      mib(limits.memory),
  );
  // What running.md says of the serving process and of an engine with all models.
  t.true(420 + 2 * 402 < mib(container.resources.requests.memory));
});

test('what Compose limits holds what its settings allow, on a machine with any number of cores', (t) => {
  const { environment, mem_limit: limit } = umpire;
  t.regex(environment.UMPIRE_ENGINES, /^\d+$/);
  t.true(mostMemory(environment) < mib(limit));
});

test('the autoscaler asks for the metric that the adapter makes', (t) => {
  const { metrics, minReplicas } = read('overlays/redis/autoscaler.yaml').spec;
  const [pods] = metrics.filter(({ type }: { readonly type: string }) => type === 'Pods');
  const [rule] = read('prometheus-adapter.yaml').rules.custom;
  t.is(pods.pods.metric.name, rule.name.as);
  t.true(minReplicas > read('overlays/redis/disruption-budget.yaml').spec.maxUnavailable);
});

const unitSettingOf = valueIn(textOf('systemd/umpire.service'));
const usual = (name: string): number => Number(SETTINGS.find((setting) => setting.name === name)?.default);

test('the unit starts what there is, as the process that signals reach', (t) => {
  const [node = '', entry = ''] = unitSettingOf('ExecStart').split(' ');
  t.true(existsSync(node.replace('/opt/umpire/', root)));
  t.true(existsSync(`${root}${entry}`));
  t.is(unitSettingOf('WorkingDirectory'), '/opt/umpire');
  t.is(unitSettingOf('KillMode'), 'mixed');
  t.regex(unitSettingOf('ExecReload'), /-HUP \$MAINPID$/);
});

test('the store is in the one folder that may be written, and the drain has the time that it takes', (t) => {
  t.regex(unitSettingOf('Environment'), /UMPIRE_DATA_DIR=\/var\/lib\/umpire\b/);
  t.is(unitSettingOf('StateDirectory'), 'umpire');
  t.is(unitSettingOf('ProtectSystem'), 'strict');
  t.true(Number(unitSettingOf('TimeoutStopSec')) > usual('UMPIRE_DRAIN_DELAY') + usual('UMPIRE_DRAIN_GRACE') + 10);
  t.true(Number(unitSettingOf('LimitNOFILE')) > 2 * usual('UMPIRE_MAX_CONNECTIONS'));
});

const { patches } = parse(textOf('kubernetes/components/bridge/kustomization.yaml'));
const [deployment, bridgeService] = patches.map(({ patch }: { readonly patch: string }) => parse(patch).spec);
const [besides, bridge] = deployment.template.spec.containers;
const bridgeSettingOf = valueIn(textOf('systemd/umpire-bridge.service'));

function optionsOf([node = '', entry = '', command, ...args]: readonly string[]): Record<string, unknown> {
  if (!/(^|\/)node$/.test(node) || command !== 'bridge' || !existsSync(`${root}${entry}`))
    throw new Error(`${command}`);
  return parseArgs({ args, options: BRIDGE_COMMAND.options, strict: true }).values;
}

test('each is started with options that there are, in front of the service beside it', (t) => {
  const started = bridgeSettingOf('ExecStart').replace(' $BRIDGE_OPTIONS', '').split(' ');
  t.like(optionsOf(started), { url: 'http://127.0.0.1:8080', host: '0.0.0.0' });
  t.like(optionsOf(composed.command), { url: 'http://umpire:8080', host: '0.0.0.0', 'metrics-port': '9465' });
  t.like(optionsOf(bridge.args), { url: 'http://127.0.0.1:8080', host: '0.0.0.0', 'metrics-port': '9465' });
});

test('ports and probes are those of the bridge, and the service believes what it says of addresses', (t) => {
  t.deepEqual([portNamed('bridge', bridge), portNamed('bridge-metrics', bridge)], [8090, 9465]);
  t.deepEqual(bridgeService.ports, [{ name: 'bridge', port: 8090, targetPort: 'bridge' }]);
  for (const name of ['startupProbe', 'readinessProbe', 'livenessProbe'])
    t.is(bridge[name].httpGet.port, 'bridge-metrics');
  t.like(besides, { name: 'umpire', env: { 0: { name: 'UMPIRE_TRUSTED_PROXIES', value: '127.0.0.1,::1' } } });
  t.deepEqual(composed.ports, ['8090:8090']);
  t.regex(composed.healthcheck.test.join(' '), /127\.0\.0\.1:8090\/health\/ready/);
  t.is(composed.image, umpire.image);
});

test('there is time to drain', (t) => {
  const delay = Number(bridge.env[0].value);
  const { readinessProbe } = bridge;
  t.true(readinessProbe.periodSeconds * readinessProbe.failureThreshold + readinessProbe.timeoutSeconds < delay);
  t.true(Number(bridgeSettingOf('TimeoutStopSec')) > 2 + 30);
});
