/**
 * OpenTelemetry's own settings: the exporter and its resource read `OTEL_EXPORTER_OTLP_…`, `OTEL_RESOURCE_ATTRIBUTES`
 * and `OTEL_SERVICE_NAME` from the environment themselves, and would pass over one that is wrong. So here each is
 * checked, and what the libraries do not read is read. Traces are exported if an endpoint is set; without one nothing
 * else is looked at.
 */

/** The names that OTEL_TRACES_SAMPLER may have. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

/** What the exporter does not read itself. */
export interface TraceSettings {
  /** Which requests are traced, as OTEL_TRACES_SAMPLER names it. */
  readonly sampler: (typeof SAMPLERS)[number];
  /** The share of traces, 0 to 1, where the sampler takes one. */
  readonly ratio: number;
  /** Milliseconds that one export may take, retries included. */
  readonly timeout: number;
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
  const text = (name: string): string | undefined => env[name]?.trim() || undefined;
  const off = text('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || text('OTEL_TRACES_EXPORTER') === 'none';
  const endpoints = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].filter(text);
  if (off || endpoints.length === 0) return { value: undefined, problems: [] };

  const problems: string[] = [];
  const check = (name: string, right: (value: string) => boolean, must: string, shown = true): string | undefined => {
    const value = text(name);
    if (value !== undefined && !right(value)) problems.push(`${name}: ${must}${shown ? `, not '${value}'` : ''}`);
    return value;
  };
  /** Settings of which one for traces goes before the general one, which is not looked at then. */
  const preferred = (ending: string): string => {
    const name = `OTEL_EXPORTER_OTLP_TRACES_${ending}`;
    return text(name) === undefined ? `OTEL_EXPORTER_OTLP_${ending}` : name;
  };
  const whole = (name: string, otherwise: number, most: number): number => {
    const right = (value: string): boolean => /^\d{1,9}$/.test(value) && Number(value) >= 1 && Number(value) <= most;
    return Number(check(name, right, `must be a whole number from 1 to ${most}`) ?? otherwise);
  };

  // The exporter appends a path to the general endpoint, which with a query would become a part of that.
  const [last] = endpoints.slice(-1) as [string];
  const general = last === 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const must = `must be a URL of http or https${general ? ' without a query' : ''}`;
  check(last, (url) => isUrl(url) && !(general && url.includes('?')), must, false);
  check(preferred('PROTOCOL'), (name) => name === 'http/protobuf', 'traces are exported over http/protobuf alone');
  check(preferred('COMPRESSION'), (name) => name === 'none' || name === 'gzip', 'must be none or gzip');
  check('OTEL_TRACES_EXPORTER', (name) => name === 'otlp', 'must be otlp or none');
  // Values of headers and attributes may be secrets, so what is wrong is not repeated.
  for (const name of ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'OTEL_RESOURCE_ATTRIBUTES'])
    check(name, isPairs, "must be 'name=value,…' with values percent-encoded", false);
  const sampler = check('OTEL_TRACES_SAMPLER', isSampler, `must be one of ${SAMPLERS.join(', ')}`);
  const takesShare = sampler?.endsWith('traceidratio') === true;
  const isShare = (value: string): boolean => /^\d*\.?\d+(e-?\d+)?$/i.test(value) && Number(value) <= 1;
  const ratio = check(
    'OTEL_TRACES_SAMPLER_ARG',
    (value) => !takesShare || isShare(value),
    'must be a number from 0 to 1',
  );
  const value: TraceSettings = {
    sampler: sampler !== undefined && isSampler(sampler) ? sampler : 'parentbased_always_on',
    ratio: Number(ratio ?? 1),
    timeout: whole(preferred('TIMEOUT'), 10_000, 600_000),
    delay: whole('OTEL_BSP_SCHEDULE_DELAY', 5000, 600_000),
    queueSize: whole('OTEL_BSP_MAX_QUEUE_SIZE', 2048, 1_000_000),
  };
  return { value, problems };
}

function isUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

function isSampler(name: string): name is TraceSettings['sampler'] {
  return (SAMPLERS as readonly string[]).includes(name);
}

/** Whether `text` is like `a=1,b=%202`, with names and values that a header may have. */
function isPairs(text: string): boolean {
  return text.split(',').every((member) => {
    if (member.trim() === '') return true;
    const [name = '', value, ...more] = member.split('=');
    if (value === undefined || more.length > 0 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name.trim())) return false;
    try {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a header's value may not have.
      return !/[\u0000-\u001f\u007f]/.test(decodeURIComponent(value));
    } catch {
      return false;
    }
  });
}
