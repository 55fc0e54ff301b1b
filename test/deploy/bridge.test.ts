/** Where the bridge is deployed, it is started with options that it has, and asked on the ports where it listens. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import test from 'ava';
import { parse } from 'yaml';
import { BRIDGE_COMMAND } from '../../src/cli/bridge.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8');
const { bridge: composed, umpire } = parse(read('compose.yaml')).services;
const { patches } = parse(read('kubernetes/components/bridge/kustomization.yaml'));
const [deployment, service] = patches.map(({ patch }: { readonly patch: string }) => parse(patch).spec);
const [besides, container] = deployment.template.spec.containers;
const unit = read('systemd/umpire-bridge.service');
const settingOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
const portNamed = (name: string): number =>
  container.ports.find((each: { readonly name: string }) => each.name === name).containerPort;

function optionsOf([node = '', entry = '', command, ...args]: readonly string[]): Record<string, unknown> {
  if (!/(^|\/)node$/.test(node) || command !== 'bridge' || !existsSync(`${root}${entry}`))
    throw new Error(`${command}`);
  return parseArgs({ args, options: BRIDGE_COMMAND.options, strict: true }).values;
}

test('each is started with options that there are, in front of the service beside it', (t) => {
  const started = settingOf('ExecStart').replace(' $BRIDGE_OPTIONS', '').split(' ');
  t.like(optionsOf(started), { url: 'http://127.0.0.1:8080', host: '0.0.0.0' });
  t.like(optionsOf(composed.command), { url: 'http://umpire:8080', host: '0.0.0.0', 'metrics-port': '9465' });
  t.like(optionsOf(container.args), { url: 'http://127.0.0.1:8080', host: '0.0.0.0', 'metrics-port': '9465' });
});

test('ports and probes are those of the bridge, and the service believes what it says of addresses', (t) => {
  t.deepEqual([portNamed('bridge'), portNamed('bridge-metrics')], [8090, 9465]);
  t.deepEqual(service.ports, [{ name: 'bridge', port: 8090, targetPort: 'bridge' }]);
  for (const name of ['startupProbe', 'readinessProbe', 'livenessProbe'])
    t.is(container[name].httpGet.port, 'bridge-metrics');
  t.like(besides, { name: 'umpire', env: { 0: { name: 'UMPIRE_TRUSTED_PROXIES', value: '127.0.0.1,::1' } } });
  t.deepEqual(composed.ports, ['8090:8090']);
  t.regex(composed.healthcheck.test.join(' '), /127\.0\.0\.1:8090\/health\/ready/);
  t.is(composed.image, umpire.image);
});

test('there is time to drain', (t) => {
  const delay = Number(container.env[0].value);
  const { readinessProbe } = container;
  t.true(readinessProbe.periodSeconds * readinessProbe.failureThreshold + readinessProbe.timeoutSeconds < delay);
  t.true(Number(settingOf('TimeoutStopSec')) > 2 + 30);
});
