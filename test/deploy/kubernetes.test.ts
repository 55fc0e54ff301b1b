/**
 * The manifests agree with each other and with what the service does: ports, probes, the time to drain, the metric
 * that is scaled on.
 */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { SETTINGS } from '../../src/config.ts';

const read = (path: string) => parse(readFileSync(new URL(`../../deploy/kubernetes/${path}`, import.meta.url), 'utf8'));
const pod = read('base/workload.yaml').spec.template;
const [container] = pod.spec.containers;
const setting = (name: string): string =>
  container.env.find((each: { readonly name: string }) => each.name === name).value;
const portNamed = (name: string): number =>
  container.ports.find((each: { readonly name: string }) => each.name === name).containerPort;

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
    t.deepEqual(
      metrics.map(({ from }) => from),
      [[monitoring]],
    );
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

test('the one pod of embedded drains briefly, since nothing can take over from it', (t) => {
  const { patches } = read('overlays/embedded/kustomization.yaml');
  const { spec } = parse(patches[0].patch).spec.template;
  const { env } = spec.containers.find(({ name }: { readonly name: string }) => name === container.name);
  t.deepEqual(env, [{ name: 'UMPIRE_DRAIN_DELAY', value: '2' }]);
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
  const compose = parse(readFileSync(new URL('../../deploy/compose.yaml', import.meta.url), 'utf8'));
  const { environment, mem_limit: limit } = compose.services.umpire;
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
