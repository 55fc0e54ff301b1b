/** OpenTelemetry's settings: what they mean, and that a wrong one is named and never repeated if it may be a secret. */
import test from 'ava';
import { parseTraceSettings } from '../../../src/wire/traces/settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

const OFF: readonly Record<string, string>[] = [
  {},
  { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' },
  { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  { OTEL_TRACES_SAMPLER: 'nonsense' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
  { ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' },
  { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' },
];

for (const env of OFF) {
  test(`traces are off and nothing is judged: ${JSON.stringify(env)}`, (t) => {
    t.deepEqual(parseTraceSettings(env), { value: undefined, problems: [] });
  });
}

test('an endpoint alone is a whole configuration', (t) => {
  t.deepEqual(parseTraceSettings(ENDPOINT), {
    value: { sampler: 'parentbased_always_on', ratio: 1, timeout: 10_000, delay: 5000, queueSize: 2048 },
    problems: [],
  });
});

test('settings of traces go before the general ones', (t) => {
  const { value, problems } = parseTraceSettings({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'not looked at',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:1/here?key=1',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'br',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2000',
    OTEL_EXPORTER_OTLP_HEADERS: ' authorization = Basic%20dTpw , x-scope=b%3Dc,',
  });
  t.deepEqual(problems, []);
  t.is(value?.timeout, 2000);
});

test('samplers and their share', (t) => {
  for (const sampler of ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]))
    t.is(parseTraceSettings({ ...ENDPOINT, OTEL_TRACES_SAMPLER: sampler }).value?.sampler, sampler as never);
  for (const [argument, ratio] of Object.entries({
    '0': 0,
    '1': 1,
    '0.01': 0.01,
    '.5': 0.5,
    '1e-3': 0.001,
    '1.0': 1,
  })) {
    const env = { ...ENDPOINT, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: argument };
    const { value, problems } = parseTraceSettings(env);
    t.deepEqual(problems, []);
    t.is(value?.ratio, ratio, argument);
  }
});

const WRONG: readonly (readonly [env: Record<string, string>, problem: RegExp])[] = [
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /^OTEL_EXPORTER_OTLP_ENDPOINT: must be a URL/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'grpc://collector:4317' }, /^OTEL_EXPORTER_OTLP_ENDPOINT:/],
  [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'junk' }, /^OTEL_EXPORTER_OTLP_TRACES_ENDPOINT:/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c/otlp/?key=secret' }, /^OTEL_EXPORTER_OTLP_ENDPOINT: .*without a query$/],
  [{ OTEL_EXPORTER_OTLP_COMPRESSION: 'br' }, /^OTEL_EXPORTER_OTLP_COMPRESSION: must be none or gzip/],
  [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /^OTEL_EXPORTER_OTLP_PROTOCOL: .*http\/protobuf alone, not 'grpc'/],
  [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }, /^OTEL_EXPORTER_OTLP_TRACES_PROTOCOL:/],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER:/],
  [{ OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, /^OTEL_EXPORTER_OTLP_TIMEOUT:/],
  [{ OTEL_EXPORTER_OTLP_TIMEOUT: '10s' }, /^OTEL_EXPORTER_OTLP_TIMEOUT:/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, /^OTEL_EXPORTER_OTLP_HEADERS: must be 'name=value/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'a b=secret' }, /^OTEL_EXPORTER_OTLP_HEADERS:/],
  [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=secret%0d%0ab:c' }, /^OTEL_EXPORTER_OTLP_HEADERS:/],
  [{ OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=%ffsecret' }, /^OTEL_EXPORTER_OTLP_TRACES_HEADERS:/],
  [{ OTEL_RESOURCE_ATTRIBUTES: '=secret' }, /^OTEL_RESOURCE_ATTRIBUTES:/],
  [{ OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /^OTEL_TRACES_SAMPLER: must be one of/],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1.5' }, /^OTEL_TRACES_SAMPLER_ARG:/],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '-1' }, /^OTEL_TRACES_SAMPLER_ARG:/],
  [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: 'half' }, /^OTEL_TRACES_SAMPLER_ARG:/],
  [{ OTEL_BSP_SCHEDULE_DELAY: '-5' }, /^OTEL_BSP_SCHEDULE_DELAY:/],
  [{ OTEL_BSP_MAX_QUEUE_SIZE: '0' }, /^OTEL_BSP_MAX_QUEUE_SIZE:/],
];

for (const [env, problem] of WRONG) {
  test(`${JSON.stringify(env)} is named as wrong`, (t) => {
    const { problems } = parseTraceSettings({ ...ENDPOINT, ...env });
    t.is(problems.length, 1);
    t.regex(problems[0] ?? '', problem);
    t.notRegex(problems[0] ?? '', /secret/);
  });
}
