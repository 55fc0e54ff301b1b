/**
 * Alerts and dashboard ask for what a loaded service really shows: every metric, label and value in their expressions
 * is in a scrape.
 */
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { parser } from '@prometheus-io/lezer-promql';
import test from 'ava';
import { parse } from 'yaml';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { ERROR_TABLE } from '../../src/domain/errors.ts';
import { writeCascade } from '../engine/support/cascades.ts';
import { startInferenceServer } from '../engine/support/inference-server.ts';
import { encoderGraph } from '../engine/support/packages.ts';
import { writeInferencePackage } from '../engine/support/remote-packages.ts';
import { send } from '../support/http.ts';
import { startKeyedService } from '../support/keys.ts';
import { lightModel } from '../support/light-model.ts';
import { anchorsOf, pagesOf, textOf } from '../support/pages.ts';
import { until } from '../support/redis.ts';
import { metricsPortOf, type Sample, samplesOf, scrape } from '../support/scrape.ts';

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly refId: string }[];
}

const rules: readonly Rule[] = parse(textOf('deploy/monitoring/alerts.yml')).groups.flatMap(
  ({ rules }: { rules: readonly Rule[] }) => rules,
);
const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(textOf('deploy/monitoring/grafana/umpire.json'));
const adapter = parse(textOf('deploy/kubernetes/prometheus-adapter.yaml')).rules.custom as readonly {
  readonly seriesQuery: string;
  readonly metricsQuery: string;
  readonly name: { readonly as: string };
}[];

/** What Prometheus puts on every target. */
const OF_TARGETS = new Set(['instance', 'job', 'namespace', 'pod']);

/** Every expression with the place where it stands; Grafana's and the adapter's own placeholders are filled. */
const EXPRESSIONS: readonly (readonly [place: string, expression: string])[] = [
  ...rules.map(({ record, alert, expr }) => [record ?? alert ?? '', expr] as const),
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [title, expr.replaceAll('$__rate_interval', '1m')] as const),
  ),
  ...adapter.flatMap(({ name, seriesQuery, metricsQuery }) => [
    [name.as, seriesQuery] as const,
    [
      name.as,
      metricsQuery.replaceAll('<<.GroupBy>>', 'pod').replaceAll('<<.LabelMatchers>>', 'namespace="umpire"'),
    ] as const,
  ]),
];

/** Faults of an expression against what was scraped. */
function faultsOf(expression: string, samples: readonly Sample[], recorded: ReadonlySet<string>): readonly string[] {
  const { selectors, groupedBy } = readPromql(expression);
  const faults: string[] = [];
  const labels = new Set(OF_TARGETS);
  for (const { metric, matchers } of selectors) {
    if (recorded.has(metric)) continue;
    const series = samples.filter((sample) => sample.metric === metric);
    if (series.length === 0) faults.push(`there is no ${metric}`);
    for (const sample of series) for (const label of Object.keys(sample.labels)) labels.add(label);
    for (const { label, operator, value } of matchers) {
      if (OF_TARGETS.has(label)) continue;
      const values = new Set(series.map((sample) => sample.labels[label]).filter((each) => each !== undefined));
      if (values.size === 0) faults.push(`${metric} has no label ${label}`);
      // What is left out need not be there.
      if (operator.startsWith('!')) continue;
      for (const wanted of operator === '=~' ? value.split('|') : [value]) {
        const fits = operator === '=~' ? new RegExp(`^(?:${wanted})$`) : { test: (each: string) => each === wanted };
        if (![...values].some((each) => fits.test(each))) faults.push(`${metric} has no ${label} that is ${wanted}`);
      }
    }
  }
  for (const label of groupedBy) if (!labels.has(label)) faults.push(`nothing has the label ${label}`);
  return faults;
}

test('every metric, label and value that an expression names is in a scrape', async (t) => {
  const models = lightModel();
  const { address } = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding' });
  await writeInferencePackage(models, address);
  await writeCascade(models, { steps: [{ model: 'minilm-l6', sure: 1 }, { model: 'remote' }] });
  const service = await startKeyedService({ UMPIRE_METRICS_PORT: '0', UMPIRE_MODELS_DIR: models }, {});
  t.teardown(() => service.stop());
  const body = { model: 'minilm-l6', input: 'a', instruction: 'b', choices: ['c', 'd'] };
  const post = async (path: string, json: unknown): Promise<number> => {
    const headers = { authorization: `Bearer ${service.key}` };
    return (await send(service.port, { path, headers, body: JSON.stringify(json) })).status;
  };
  const served = (model: string) =>
    service.app.engine.models().some(({ id, status }) => id === model && status === 'ready');
  // It is ready with its first model.
  await until(() => ['minilm-l6', 'remote', 'cascade'].every(served), 20_000);
  t.is(await post('/v1/decisions', body), 200);
  t.is(await post('/v1/decisions', { ...body, model: 'remote' }), 200);
  t.is(await post('/v1/decisions', { ...body, model: 'cascade' }), 200);
  t.is(await post('/v1/catalogs', { id: 'e', model: 'minilm-l6', choices: ['c', 'd'] }), 201);
  const { choices: _, ...rest } = body;
  t.is(await post('/v1/decisions', { ...rest, catalog: 'e' }), 200);
  await createClient(DecisionService, createGrpcTransport({ baseUrl: service.url })).createDecision(body);

  const recorded = new Set(rules.flatMap(({ record }) => record ?? []));
  const look = async (): Promise<readonly string[]> => {
    const samples = samplesOf(await scrape(metricsPortOf(service)));
    return EXPRESSIONS.flatMap(([place, expression]) =>
      faultsOf(expression, samples, recorded).map((fault) => `${place}: ${fault}`),
    );
  };
  // A request is counted when its connection says that the response is out, which the caller may know first.
  let faults: readonly string[] = [];
  await until(async () => {
    faults = await look();
    return faults.length === 0;
  }).catch(() => {});
  t.deepEqual(faults, []);

  const samples = samplesOf(await scrape(metricsPortOf(service)));
  const families = new Set(samples.flatMap(({ metric }) => [metric, metric.replace(/_(bucket|sum|count)$/, '')]));
  let named = 0;
  for (const { name, text } of pagesOf('docs/')) {
    for (const [, metric = ''] of text.matchAll(/`((?:umpire|process|nodejs)_[a-z_]+)(?:\{[^`]*)?`/g)) {
      // The bridge is a process of its own, whose metrics its tests scrape.
      if (metric.startsWith('umpire_bridge_')) continue;
      named += 1;
      t.true(families.has(metric), `${name}: ${metric}`);
    }
  }
  t.true(named > 20);

  const faultsIn = (expression: string): readonly string[] => faultsOf(expression, samples, recorded);
  t.deepEqual(faultsIn('sum(rate(umpire_request_total[1m]))'), ['there is no umpire_request_total']);
  t.deepEqual(faultsIn('umpire_stage_seconds_sum{stage="infernal"}'), [
    'umpire_stage_seconds_sum has no stage that is infernal',
  ]);
  t.deepEqual(faultsIn('sum by (owner) (umpire_ready{model="x"})'), [
    'umpire_ready has no label model',
    'umpire_ready has no model that is x',
    'nothing has the label owner',
  ]);
  t.throws(() => faultsIn('sum(rate(umpire_ready[1m]) +'), { instanceOf: SyntaxError });
});

test('what burns the error budget is every reason that is 500 or 503, in every window', (t) => {
  const ours = Object.entries(ERROR_TABLE).filter(([, { http }]) => http === 500 || http === 503);
  const expected = ours.map(([reason]) => reason.toLowerCase()).sort();
  const records = rules.filter(({ record }) => record?.startsWith('umpire:failures:'));
  t.is(records.length, 4);
  for (const { record = '', expr } of records) {
    const [selector] = readPromql(expr).selectors;
    t.deepEqual(selector?.matchers[0]?.value.split('|').sort(), expected);
    t.true(expr.includes(`[${record.replace('umpire:failures:rate', '')}]`), record);
  }
});

test('each alert has a severity, a summary, a place in the guide, and a test that makes it fire', (t) => {
  const alerts = rules.filter(({ alert }) => alert !== undefined);
  t.true(alerts.length >= 9);
  const tests = parse(textOf('deploy/monitoring/alerts.test.yml')).tests as readonly {
    readonly alert_rule_test?: readonly { readonly alertname: string; readonly exp_alerts?: readonly unknown[] }[];
  }[];
  const cases = tests.flatMap(({ alert_rule_test = [] }) => alert_rule_test);
  for (const { alert = '', labels, annotations } of alerts) {
    t.regex(labels?.severity ?? '', /^(critical|warning)$/, alert);
    t.truthy(annotations?.summary, alert);
    const [page = '', anchor = ''] = (annotations?.runbook ?? '').split('#');
    t.true(anchorsOf(textOf(page)).has(anchor), annotations?.runbook);
    const fires = cases.filter(({ alertname, exp_alerts }) => alertname === alert && exp_alerts !== undefined);
    const silent = cases.filter(({ alertname, exp_alerts }) => alertname === alert && exp_alerts === undefined);
    t.true(fires.length > 0 && silent.length > 0, alert);
  }
});

test('the guide names panels that there are, and each of them asks for something', (t) => {
  const named = [...textOf('docs/troubleshooting.md').matchAll(/(?<!\*)\*([^*]+)\*(?!\*)/g)].map(([, title]) => title);
  for (const title of named) {
    t.true(title === 'Load' || dashboard.panels.some((panel) => panel.title === title), title);
  }
  for (const { type, title, targets = [] } of dashboard.panels) if (type !== 'row') t.true(targets.length > 0, title);
});

/** One condition on a label. */
interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** One metric that is asked for. */
interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

interface Question {
  readonly selectors: readonly Selector[];
  /** Labels that the expression groups or joins by. */
  readonly groupedBy: readonly string[];
}

/** Reads an expression. @throws SyntaxError with the place. */
function readPromql(expression: string): Question {
  const selectors: { metric: string; matchers: Matcher[] }[] = [];
  const groupedBy: string[] = [];
  parser.parse(expression).iterate({
    enter({ name, from, to, node }) {
      const text = expression.slice(from, to);
      if (node.type.isError) throw new SyntaxError(`no PromQL at ${from}: ${expression}`);
      if (name === 'VectorSelector') {
        const metric = node.getChild('Identifier');
        if (metric === null) throw new SyntaxError(`a selector without a metric: ${text}`);
        selectors.push({ metric: expression.slice(metric.from, metric.to), matchers: [] });
      }
      if (name === 'UnquotedLabelMatcher') {
        const [, label = '', operator = '', value = ''] = /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/s.exec(text) ?? [];
        selectors.at(-1)?.matchers.push({ label, operator, value });
      }
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') groupedBy.push(text);
    },
  });
  return { selectors, groupedBy };
}
