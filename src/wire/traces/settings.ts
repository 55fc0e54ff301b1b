/**
 * Where traces go, in OpenTelemetry's own settings. They are exported if an endpoint is set; without one nothing else
 * is looked at. An `OTEL_EXPORTER_OTLP_TRACES_…` takes precedence over the same setting in `OTEL_EXPORTER_OTLP_…`.
 */
import type { Parsed } from '../../domain/settings.ts';

/** How the settings are documented, in the order of the README's table. */
export const TRACE_SETTINGS: readonly {
  readonly name: string;
  readonly default: string;
  readonly meaning: string;
}[] = [
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    default: '',
    meaning:
      'Where [traces](docs/tracing.md) are sent by OTLP/HTTP; `/v1/traces` is appended. Off unless this or the next setting is set',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', default: '', meaning: 'The same, as a complete URL' },
  {
    name: 'OTEL_EXPORTER_OTLP_HEADERS',
    default: '',
    meaning: 'Headers of every export as `name=value,…`, with percent-encoded values',
  },
  { name: 'OTEL_EXPORTER_OTLP_TIMEOUT', default: '10000', meaning: 'Milliseconds that one export may take' },
  { name: 'OTEL_EXPORTER_OTLP_PROTOCOL', default: 'http/protobuf', meaning: 'The only value' },
  { name: 'OTEL_SERVICE_NAME', default: 'umpire', meaning: '`service.name` of the traces' },
  {
    name: 'OTEL_RESOURCE_ATTRIBUTES',
    default: '',
    meaning: 'Further attributes of the resource in the traces, as `name=value,…`',
  },
  {
    name: 'OTEL_TRACES_SAMPLER',
    default: 'parentbased_always_on',
    meaning:
      'Which requests are traced: `always_on`, `always_off`, `traceidratio`, or one of these with the prefix `parentbased_`',
  },
  { name: 'OTEL_TRACES_SAMPLER_ARG', default: '1', meaning: 'The share of traces that `traceidratio` takes' },
  { name: 'OTEL_BSP_SCHEDULE_DELAY', default: '5000', meaning: 'Milliseconds between two exports' },
  {
    name: 'OTEL_BSP_MAX_QUEUE_SIZE',
    default: '2048',
    meaning: 'Spans that may wait for export; further spans are dropped',
  },
  { name: 'OTEL_TRACES_EXPORTER', default: 'otlp', meaning: '`none` switches traces off' },
  { name: 'OTEL_SDK_DISABLED', default: 'false', meaning: '`true` switches traces off, whatever else is set' },
];

/** The names that OTEL_TRACES_SAMPLER may have. */
export const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** Which requests are traced. */
export interface SamplerSettings {
  readonly name: (typeof SAMPLERS)[number];
  /** The share of traces, 0 to 1, where the name asks for one. */
  readonly ratio: number;
}

/** Where traces are exported, and how. */
export interface TraceSettings {
  readonly url: string;
  /** Sent with every export. They may hold a secret: never logged. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds that one export may take, retries included. */
  readonly timeout: number;
  /** The attributes by which the spans say where they come from, `service.name` among them. */
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: SamplerSettings;
  /** Milliseconds that a span may wait for others to be sent with it. */
  readonly delay: number;
  /** How many spans may wait; any more are dropped. */
  readonly queueSize: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the settings; `value` is undefined where traces are off. `problems` names each setting that is wrong. */
export function parseTraceSettings(env: Environment): {
  readonly value: TraceSettings | undefined;
  readonly problems: readonly string[];
} {
  const off = { value: undefined, problems: [] };
  const text = (name: string): string | undefined => env[name]?.trim() || undefined;
  if (text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || text('OTEL_TRACES_EXPORTER') === 'none') return off;
  const general = text('OTEL_EXPORTER_OTLP_ENDPOINT');
  const specific = text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  if (general === undefined && specific === undefined) return off;

  const problems: string[] = [];
  const named = (ending: string): readonly [name: string, value: string | undefined] => {
    const name = `OTEL_EXPORTER_OTLP_TRACES_${ending}`;
    const value = text(name);
    return value === undefined ? [`OTEL_EXPORTER_OTLP_${ending}`, text(`OTEL_EXPORTER_OTLP_${ending}`)] : [name, value];
  };
  const whole = ([name, value]: readonly [string, string | undefined], otherwise: number, most: number): number => {
    if (value === undefined) return otherwise;
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (number >= 1 && number <= most) return number;
    problems.push(`${name}: must be a whole number from 1 to ${most}, not '${value}'`);
    return otherwise;
  };
  const pairs = ([name, value]: readonly [string, string | undefined], key: RegExp): Record<string, string> => {
    const read = parsePairs(value ?? '', key);
    if ('value' in read) return read.value;
    problems.push(`${name}: ${read.problem}`);
    return {};
  };

  const [protocolName, protocol = 'http/protobuf'] = named('PROTOCOL');
  if (protocol !== 'http/protobuf') {
    problems.push(`${protocolName}: traces are exported over http/protobuf alone, not '${protocol}'`);
  }
  const exporter = text('OTEL_TRACES_EXPORTER') ?? 'otlp';
  if (exporter !== 'otlp') problems.push(`OTEL_TRACES_EXPORTER: must be otlp or none, not '${exporter}'`);
  const url =
    specific === undefined
      ? endpoint('OTEL_EXPORTER_OTLP_ENDPOINT', general ?? '', 'v1/traces', problems)
      : endpoint('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', specific, '', problems);
  const attributes = pairs(['OTEL_RESOURCE_ATTRIBUTES', text('OTEL_RESOURCE_ATTRIBUTES')], ATTRIBUTE);
  const value: TraceSettings = {
    url,
    headers: pairs(named('HEADERS'), HEADER),
    timeout: whole(named('TIMEOUT'), 10_000, 600_000),
    resource: {
      'service.name': 'umpire',
      'service.instance.id': crypto.randomUUID(),
      ...attributes,
      ...(text('OTEL_SERVICE_NAME') === undefined ? {} : { 'service.name': text('OTEL_SERVICE_NAME') as string }),
    },
    sampler: sampler(text('OTEL_TRACES_SAMPLER'), text('OTEL_TRACES_SAMPLER_ARG'), problems),
    delay: whole(['OTEL_BSP_SCHEDULE_DELAY', text('OTEL_BSP_SCHEDULE_DELAY')], 5000, 600_000),
    queueSize: whole(['OTEL_BSP_MAX_QUEUE_SIZE', text('OTEL_BSP_MAX_QUEUE_SIZE')], 2048, 1_000_000),
  };
  return { value, problems };
}

const HEADER = /^[\w!#$%&'*+.^`|~-]+$/;
const ATTRIBUTE = /^[!-~]+$/;

/** `a=1,b=%202` as an object. */
function parsePairs(text: string, key: RegExp): Parsed<Record<string, string>> {
  const pairs: [string, string][] = [];
  for (const member of text.split(',').filter((each) => each.trim() !== '')) {
    const at = member.indexOf('=');
    const name = member.slice(0, Math.max(0, at)).trim();
    const value = decoded(member.slice(at + 1).trim());
    // The values may be secrets, so what is wrong is not repeated.
    if (at === -1 || !key.test(name) || value === undefined)
      return { problem: "must be 'name=value,…' with values percent-encoded" };
    pairs.push([name, value]);
  }
  return { value: Object.fromEntries(pairs) };
}

function decoded(text: string): string | undefined {
  try {
    const value = decodeURIComponent(text);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a header's value may not have.
    return /[\u0000-\u001f\u007f]/.test(value) ? undefined : value;
  } catch {
    return undefined;
  }
}

function endpoint(name: string, text: string, path: string, problems: string[]): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    problems.push(`${name}: must be a URL of http or https`);
    return '';
  }
  if (path !== '') url.pathname = `${url.pathname.replace(/\/$/, '')}/${path}`;
  return url.href;
}

function sampler(name: string | undefined, argument: string | undefined, problems: string[]): SamplerSettings {
  const known = SAMPLERS.find((each) => each === (name ?? 'parentbased_always_on'));
  if (known === undefined) {
    problems.push(`OTEL_TRACES_SAMPLER: must be one of ${SAMPLERS.join(', ')}, not '${name}'`);
  }
  const ratio = argument === undefined ? 1 : /^\d*\.?\d+(e-?\d+)?$/i.test(argument) ? Number(argument) : Number.NaN;
  if (known?.endsWith('traceidratio') && !(ratio <= 1)) {
    problems.push(`OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1, not '${argument}'`);
  }
  return { name: known ?? 'parentbased_always_on', ratio };
}
