import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { ConfigError, readConfig, SETTINGS } from '../src/config.ts';
import { usableCores } from '../src/engine/options.ts';
import { makeCertificate } from './support/certificates.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const problemsOf = (env: Record<string, string>): readonly string[] => {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

test('an empty environment is a whole configuration', (t) => {
  const config = readConfig({});
  t.like(config, {
    port: 8080,
    host: '::',
    anonymous: true,
    corsOrigins: [],
    tls: undefined,
    logLevel: 'info',
    reflection: false,
    holdings: {
      connections: { perAddress: 512, total: 2048 },
      requestRate: { perSecond: 5000, burst: 20_000 },
      unread: { perAddress: 32 * 1024 * 1024, total: 256 * 1024 * 1024 },
      writeTimeout: 30_000,
    },
    drainDelay: 2000,
    drainGrace: 30_000,
    engineMemory: 450 * 1024 * 1024,
    models: [],
    store: { kind: 'sqlite', folder: 'data' },
    catalogBounds: { catalogs: 1000, bytes: 16 * 1024 * 1024 },
  });
  t.true(config.engines >= 1);
  t.true(config.modelsDir.endsWith('models'));
});

test('empty and blank settings are the same as none, and spaces around a value do not count', (t) => {
  const empty = Object.fromEntries(SETTINGS.map(({ name }) => [name, '  ']));
  t.deepEqual(readConfig(empty), readConfig({}));
  t.is(readConfig({ PORT: ' 9000 ' }).port, 9000);
  t.is(readConfig({ PORT: '/run/umpire.sock' }).port, '/run/umpire.sock');
});

test('models to serve are named, and `all` stands for whatever is there', (t) => {
  const modelsOf = (value: string) => readConfig({ UMPIRE_MODELS: value }).models;
  t.deepEqual(modelsOf('umpire-mini, minilm-l6@r1,'), ['umpire-mini', 'minilm-l6@r1']);
  t.deepEqual(modelsOf('all'), []);
});

test('values that count', (t) => {
  t.like(readConfig({ PORT: '0', UMPIRE_REFLECTION: 'on', LOG_LEVEL: 'silent', UMPIRE_DRAIN_DELAY: '0.5' }), {
    port: 0,
    reflection: true,
    logLevel: 'silent',
    drainDelay: 500,
  });
});

const WRONG: readonly (readonly [env: Record<string, string>, problem: RegExp])[] = [
  [{ PORT: '-1' }, /^PORT: .*0 to 65535, not '-1'/],
  [{ PORT: '65536' }, /^PORT:/],
  [{ PORT: '80.5' }, /^PORT:/],
  [{ PORT: '0x50' }, /^PORT:/],
  [{ PORT: '1e3' }, /^PORT:/],
  [{ PORT: 'http' }, /^PORT:/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /^OTEL_EXPORTER_OTLP_PROTOCOL:/],
  [{ UMPIRE_MODELS: 'umpire-mini,Umpire' }, /^UMPIRE_MODELS: 'Umpire' is not a model/],
  [{ UMPIRE_MODELS: 'umpire-mini@' }, /^UMPIRE_MODELS: 'umpire-mini@' is not/],
  [{ UMPIRE_MODELS: 'a@b@c' }, /^UMPIRE_MODELS: 'a@b@c' is not/],
  [{ UMPIRE_ENGINES: '0' }, /^UMPIRE_ENGINES: .*1 to 256/],
  [{ UMPIRE_ENGINES: '999999999999' }, /^UMPIRE_ENGINES:/],
  [{ UMPIRE_ENGINE_MEMORY: '99' }, /^UMPIRE_ENGINE_MEMORY:/],
  [{ UMPIRE_MEMORY: 'lots' }, /^UMPIRE_MEMORY:/],
  [{ UMPIRE_MAX_CONNECTIONS: '0' }, /^UMPIRE_MAX_CONNECTIONS:/],
  [{ UMPIRE_REQUEST_RATE: 'often' }, /^UMPIRE_REQUEST_RATE: 'often' is not a rate/],
  [{ UMPIRE_REQUEST_RATE: '10/s' }, /^UMPIRE_REQUEST_RATE: '10\/s': burst must be at least 50/],
  [{ UMPIRE_LOOKUP_RATE: '9/s' }, /^UMPIRE_LOOKUP_RATE: there is no such setting any more; UMPIRE_REQUEST_RATE counts/],
  [{ UMPIRE_MAX_WATCHES: '9' }, /^UMPIRE_MAX_WATCHES: .* any more; UMPIRE_MAX_REQUESTS counts watches, too$/],
  [{ UMPIRE_WRITE_TIMEOUT: '0' }, /^UMPIRE_WRITE_TIMEOUT: must be a whole number from 1 to 3600/],
  [{ UMPIRE_DRAIN_DELAY: '-1' }, /^UMPIRE_DRAIN_DELAY: .*seconds/],
  [{ UMPIRE_DRAIN_GRACE: '3601' }, /^UMPIRE_DRAIN_GRACE:/],
  [{ UMPIRE_DRAIN_GRACE: '10s' }, /^UMPIRE_DRAIN_GRACE:/],
  [{ UMPIRE_CATALOGS_PER_OWNER: '0' }, /^UMPIRE_CATALOGS_PER_OWNER:/],
  [{ LOG_LEVEL: 'verbose' }, /^LOG_LEVEL: .*trace, debug/],
  [{ UMPIRE_LISTEN_WHEN: 'later' }, /^UMPIRE_LISTEN_WHEN: .*started, ready/],
  [{ UMPIRE_REFLECTION: 'yes' }, /^UMPIRE_REFLECTION: .*on, off/],
  [{ UMPIRE_MODELS_DIR: '/nowhere/at/all' }, /^UMPIRE_MODELS_DIR: .*not a folder/],
  [{ UMPIRE_MODELS_DIR: import.meta.filename }, /^UMPIRE_MODELS_DIR: .*not a folder/],
  [{ UMPIRE_TRUSTED_PROXIES: '10.0.0.0/33' }, /^UMPIRE_TRUSTED_PROXIES:/],
  [{ UMPIRE_TRUSTED_PROXIES: 'proxy.example' }, /^UMPIRE_TRUSTED_PROXIES:/],
  [{ UMPIRE_RATE_ANONYMOUS: 'fast' }, /^UMPIRE_RATE_ANONYMOUS:/],
  [{ UMPIRE_QUOTA_KEY: '0' }, /^UMPIRE_QUOTA_KEY:/],
  [{ REDIS_URL: 'http://x' }, /^REDIS_URL:/],
  [{ TLS_CERT: '/nowhere/cert.pem' }, /TLS_CERT and TLS_KEY belong together/],
  [{ TLS_CERT: '/nowhere/cert.pem', TLS_KEY: '/nowhere/key.pem' }, /^TLS_CERT: .*ENOENT/],
  [
    { TLS_CERT: import.meta.filename, TLS_KEY: import.meta.filename },
    /^TLS_CERT and TLS_KEY: not a certificate and its unencrypted key, as PEM /,
  ],
  [{ UMPIRE_PROT: '1' }, /^UMPIRE_PROT: there is no such setting$/],
  [
    { UMPIRE_MAX_CONECTIONS: '1' },
    /^UMPIRE_MAX_CONECTIONS: there is no such setting; did you mean UMPIRE_MAX_CONNECTIONS\?$/,
  ],
  [{ UMPIRE_MODELS: 'umpire-minni' }, /^UMPIRE_MODELS: no package of umpire-minni is in .*; there are .*umpire-mini, /],
  [{ UMPIRE_MODELS: 'llama,umpire-mini@r1' }, /^UMPIRE_MODELS: no package of .*; there are minilm-l6, umpire-base, /],
  [{ UMPIRE_ANONYMOUS: '0' }, /^UMPIRE_ANONYMOUS: .*on, off/],
  [
    { UMPIRE_CORS_ORIGINS: 'https://a.example/path' },
    /^UMPIRE_CORS_ORIGINS: 'https:\/\/a.example\/path' is not an origin/,
  ],
  [{ UMPIRE_CORS_ORIGINS: '*' }, /^UMPIRE_CORS_ORIGINS: '\*' is not an origin/],
  [{ UMPIRE_TOKEN: '1' }, /^UMPIRE_TOKEN: there is no such setting/],
  [{ UMPIRE_TOKEN_lower: '1' }, /^UMPIRE_TOKEN_lower: there is no such setting/],
];

for (const [env, problem] of WRONG) {
  test(`${Object.entries(env)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')} is a problem`, (t) => {
    const problems = problemsOf(env);
    t.true(
      problems.some((each) => problem.test(each)),
      problems.join('\n') || 'no problem was found',
    );
  });
}

test('all problems are reported together, and none shows a password', (t) => {
  const problems = problemsOf({
    PORT: 'x',
    UMPIRE_ENGINES: 'x',
    LOG_LEVEL: 'x',
    UMPIRE_RATE_KEY: 'x',
    REDIS_URL: 'redsi://user:geheim@host',
    UMPIRE_NONE: 'x',
  });
  t.is(problems.length, 6);
  t.notRegex(problems.join('\n'), /geheim/);
});

test('a certificate and a key that do not belong together are a problem', (t) => {
  const [one, two] = [makeCertificate('one'), makeCertificate('two')];
  t.deepEqual(problemsOf({ TLS_CERT: one.certFile, TLS_KEY: one.keyFile }), []);
  const local = problemsOf({ PORT: '/run/umpire.sock', TLS_CERT: one.certFile, TLS_KEY: one.keyFile });
  t.deepEqual(local, ['PORT: a Unix socket speaks no TLS, which is for the proxy in front of it']);
  t.is(problemsOf({ TLS_CERT: one.certFile, TLS_KEY: two.keyFile }).length, 1);
  const broken = join(one.certFile, '..', 'broken.pem');
  writeFileSync(broken, '\n');
  t.deepEqual(problemsOf({ TLS_CERT: broken, TLS_KEY: one.keyFile }), [`TLS_CERT: '${broken}' is empty`]);
  const pipe = join(one.certFile, '..', 'pipe');
  execFileSync('mkfifo', [pipe]);
  t.deepEqual(problemsOf({ TLS_CERT: one.certFile, TLS_KEY: pipe }), [`TLS_KEY: '${pipe}' is not a regular file`]);
  writeFileSync(broken, 'no certificate');
  t.is(problemsOf({ TLS_CERT: broken, TLS_KEY: one.keyFile }).length, 1);
});

test('what Kubernetes adds for services called umpire is not taken for settings', (t) => {
  t.deepEqual(
    problemsOf({
      UMPIRE_SERVICE_HOST: '10.0.0.1',
      UMPIRE_SERVICE_PORT: '8080',
      UMPIRE_SERVICE_PORT_HTTP: '8080',
      UMPIRE_PORT: 'tcp://10.0.0.1:8080',
      UMPIRE_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
      UMPIRE_PORT_8080_TCP_PROTO: 'tcp',
      UMPIRE_PORT_8080_TCP_PORT: '8080',
      UMPIRE_PORT_8080_TCP_ADDR: '10.0.0.1',
      UMPIRE_REDIS_SERVICE_HOST: '10.0.0.2',
      UMPIRE_REDIS_PORT_6379_TCP_ADDR: '10.0.0.2',
      UMPIRE_METRICS_PORT: 'tcp://10.0.0.3:9090',
    }),
    [],
  );
});

test('every setting is documented once, with its default: written out, it changes nothing', (t) => {
  const names = SETTINGS.map(({ name }) => name);
  t.is(new Set(names).size, names.length);
  const read = (env: Record<string, string>) => readConfig(env);
  const unset = read({});
  for (const { name, default: otherwise, meaning } of SETTINGS) {
    t.regex(name, /^[A-Z][A-Z_]+$/);
    t.true(meaning.length > 10);
    if (otherwise === '' || name in WORDS) continue;
    t.deepEqual(JSON.stringify(read({ [name]: otherwise })), JSON.stringify(unset), name);
  }
  for (const [name, value] of Object.entries(WORDS))
    t.is(JSON.stringify(read({ [name]: value })), JSON.stringify(unset));
});

/** Defaults that are words for what a machine or an installation has. */
const WORDS = {
  UMPIRE_ENGINES: String(availableParallelism()),
  UMPIRE_MODELS_DIR: fileURLToPath(new URL('../models', import.meta.url)),
};

test("tokens for models at servers are nobody else's to name", (t) => {
  t.deepEqual(problemsOf({ UMPIRE_TOKEN_RERANKER: 'secret' }), []);
});

const cores = availableParallelism();

for (const [quota, expected] of [
  ['50000 100000', 1],
  ['150000 100000', 1],
  ['200000 100000', Math.min(2, cores)],
  ['99900000 100000', cores],
  ['max 100000', cores],
] as const) {
  test(`version 2 with cpu.max ${quota}`, (t) => {
    const root = temporaryFolder();
    writeFileSync(join(root, 'cpu.max'), `${quota}\n`);
    t.is(usableCores(root), expected);
  });
}

for (const [quota, expected] of [
  ['50000', 1],
  ['150000', 1],
  ['-1', cores],
] as const) {
  test(`version 1 with a quota of ${quota}`, (t) => {
    const root = temporaryFolder();
    mkdirSync(join(root, 'cpu'));
    writeFileSync(join(root, 'cpu/cpu.cfs_quota_us'), `${quota}\n`);
    writeFileSync(join(root, 'cpu/cpu.cfs_period_us'), '100000\n');
    t.is(usableCores(root), expected);
  });
}

test('without cgroups all cores count, and so many engines are the default', (t) => {
  t.is(usableCores(join(temporaryFolder(), 'none')), cores);
  t.is(readConfig({}).engines, usableCores());
});
