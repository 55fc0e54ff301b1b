/** The layout's promises: imports go one way, and what is dangerous or may be exchanged is imported in one place. */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const KIT = fileURLToPath(new URL('../conformance', import.meta.url));

interface Import {
  /** The path of the importing file below src. */
  readonly from: string;
  /** The path of the imported file below src, one below the root such as `../gen/…`, or a package's name. */
  readonly to: string;
}

const sources = globSync('**/*.ts', { cwd: SRC }).map((file) => ({
  file,
  text: readFileSync(join(SRC, file), 'utf8'),
}));

const imports: readonly Import[] = sources.flatMap(({ file, text }) =>
  [...text.matchAll(/(?:\bfrom|\bimport\(?)\s*'([^']+)'/g)].map(([, specifier = '']) => ({
    from: file,
    to: specifier.startsWith('.') ? relative(SRC, resolve(SRC, dirname(file), specifier)) : specifier,
  })),
);

/**
 * What each layer may import beside itself. Files at the root of src put the layers together; the logger's
 * type is everybody's.
 */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  wire: ['service', 'domain', 'engine', 'stores'],
  service: ['domain', 'engine', 'stores'],
  domain: ['engine', 'stores'],
  engine: [],
  stores: [],
  // Another composition of the same parts, with an engine of its own.
  mock: ['wire', 'domain', 'engine', 'stores'],
  // The statistics of what catalogs learn: decisions only use the result.
  learning: ['domain', 'engine', 'stores'],
  cli: ['bridge', 'mcp', 'front', 'mock', 'learning', 'domain', 'engine', 'stores'],
  // Processes in front of a service, which they call as any client does: of its own code they share the errors' table.
  bridge: ['front', 'domain'],
  mcp: ['front', 'domain'],
  front: ['domain'],
};
const ROOT = ['app.ts', 'cli.ts', 'config.ts', 'log-stream.ts', 'logger.ts', 'main.ts', 'version.ts', 'visible.ts'];

const MOCK = 'mock/start-mock.ts';

const layerOf = (path: string): string => path.split('/')[0] as string;

test('src is made of the known layers', (t) => {
  const known = new Set([...Object.keys(BELOW), ...ROOT]);
  t.deepEqual(
    [...new Set(sources.map(({ file }) => layerOf(file)))].filter((layer) => !known.has(layer)),
    [],
  );
});

test('imports go one way: wire, service, domain, then engine and stores', (t) => {
  const wrong = imports.filter(({ from, to }) => {
    const layer = layerOf(from);
    if (ROOT.includes(layer) || /^[\w@]/.test(to) === false) return false;
    const target = layerOf(to);
    if (target === layer || to === 'logger.ts' || to === 'version.ts' || to === 'visible.ts') return false;
    if (layer === 'cli' && to === 'config.ts') return false;
    if (from === MOCK && ['config.ts', 'app.ts'].includes(to)) return false;
    return target in BELOW || ROOT.includes(target) ? !BELOW[layer]?.includes(target) : false;
  });
  t.deepEqual(wrong, []);
});

test('the conformance kit sees a deployment from outside: it shares the messages of the contract alone, and the command runs it', (t) => {
  for (const file of globSync('**/*.ts', { cwd: KIT })) {
    const text = readFileSync(join(KIT, file), 'utf8');
    for (const [, specifier = ''] of text.matchAll(/(?:\bfrom|\bimport\(?)\s*'(\.[^']+)'/g))
      t.regex(relative(KIT, resolve(KIT, dirname(file), specifier)), /^(?:[a-z]|\.\.\/gen\/)/, `${file}: ${specifier}`);
  }
  t.deepEqual(
    [...new Set(imports.filter(({ to }) => to.startsWith('../conformance/')).map(({ from }) => from))],
    ['cli/conformance.ts'],
  );
});

test('what is in front of a service shares the table of errors and the messages of the contract with it, and no more', (t) => {
  const allowed = /^(bridge|mcp|front)\/|^(domain\/errors|logger|version)\.ts$|^\.\.\/gen\//;
  t.deepEqual(
    imports.filter(({ from, to }) => /^(bridge|mcp|front)\//.test(from) && /\.ts$/.test(to) && !allowed.test(to)),
    [],
  );
});

test('nothing imports the entries, and only they and the mock import the composition root', (t) => {
  t.deepEqual(
    imports.filter(({ to }) => ['main.ts', 'cli.ts', 'engine/worker/main.ts'].includes(to)),
    [],
  );
  t.deepEqual(
    imports.filter(({ from, to }) => to === 'app.ts' && from !== 'main.ts' && from !== MOCK),
    [],
  );
});

/**
 * The rooms of the engine from top to bottom: a file imports its own room and those below it. What lies at the root of
 * a layer is a room of its own.
 */
const ENGINE: readonly string[] = [
  'engine/package-tools',
  'engine/create-engine.ts',
  'engine/pool',
  'engine/processes',
  'engine/worker',
  'engine/job-cost.ts',
  'engine/families/remote/dialects',
  'engine/families/remote/grpc',
  'engine/families/remote/http',
  'engine/families/remote',
  'engine/families/two-stage',
  'engine/families',
  'engine/text',
  'engine/packages',
  'engine/cost-profile.ts',
  'engine/tempered.ts',
  'engine/options.ts',
  'engine/errors.ts',
  'engine/engine.ts',
];

/** The rooms of the wire, and what each may import of the others. */
const WIRE: Readonly<Record<string, readonly string[]>> = {
  listener: ['dispatch.ts', 'holdings', 'http'],
  'dispatch.ts': ['holdings', 'http', 'rpc'],
  rest: ['health.ts', 'http'],
  rpc: ['health.ts', 'holdings', 'http'],
  metrics: ['health.ts', 'holdings', 'http', 'listener'],
  traces: ['http'],
  holdings: ['http'],
  'access-log.ts': ['http'],
};

/** The folder of a file, or the file itself where it lies at the root of a layer. */
const roomOf = (path: string): string => (path.split('/').length > 2 ? dirname(path) : path);

const own: readonly Import[] = imports.filter(({ to }) => sources.some(({ file }) => file === to));

test('the rooms of the engine import one way', (t) => {
  const inside = own.filter(({ from, to }) => layerOf(from) === 'engine' && layerOf(to) === 'engine');
  t.deepEqual([...new Set(inside.flatMap(({ from, to }) => [roomOf(from), roomOf(to)]))].sort(), [...ENGINE].sort());
  t.deepEqual(
    inside.filter(({ from, to }) => ENGINE.indexOf(roomOf(from)) > ENGINE.indexOf(roomOf(to))),
    [],
  );
});

test('the rooms of the wire import what the table says, and all of that', (t) => {
  const found = new Map<string, Set<string>>();
  for (const { from, to } of own) {
    const [one, other] = [roomOf(from), roomOf(to)];
    if (layerOf(from) !== 'wire' || layerOf(to) !== 'wire' || one === other) continue;
    const room = one.slice('wire/'.length);
    found.set(room, (found.get(room) ?? new Set()).add(other.slice('wire/'.length)));
  }
  const sorted = (table: Iterable<readonly [string, Iterable<string>]>) =>
    [...table].map(([room, others]) => `${room}: ${[...others].sort().join(', ')}`).sort();
  t.deepEqual(sorted(found), sorted(Object.entries(WIRE)));
});

/** Who may import what: a package or a module of Node's, and the folder or file that it is for. */
const RESERVED: readonly (readonly [what: RegExp, where: RegExp])[] = [
  [/^onnxruntime-node$/, /^engine\/worker\//],
  [/^@huggingface\/tokenizers$/, /^engine\/text\//],
  [/^@grpc\/grpc-js$/, /^(engine\/families\/remote\/grpc\/client|front\/umpire)\.ts$/],
  [/^redis$/, /^stores\/redis\//],
  [/^node:sqlite$/, /^stores\/sqlite\//],
  [/^@connectrpc\/connect\/protocol/, /^wire\/rpc\/connect-private\.ts$/],
  [/^@connectrpc\//, /^wire\/rpc\//],
  [/^@modelcontextprotocol\//, /^(mcp\/|cli\/mcp\.ts$)/],
  [/^node:https?2?$/, /^(wire|front|engine\/families\/remote\/http)\//],
  [/^node:child_process$/, /^engine\/processes\//],
  [/^pino$/, /^logger\.ts$/],
  [/^prom-client$/, /^(wire\/metrics|front)\//],
  [/^@opentelemetry\//, /^wire\/traces\//],
];

for (const [what, where] of RESERVED) {
  test(`${what.source} is imported only in ${where.source}`, (t) => {
    const found = imports.filter(({ to }) => what.test(to));
    t.true(found.length > 0, 'nobody imports it: the rule is out of date');
    t.deepEqual(
      found.filter(({ from }) => !where.test(from)),
      [],
    );
  });
}

test('handlers and rules know no protocol: no generated HTTP annotation, no header, no status number', (t) => {
  const wrong = sources.filter(
    ({ file, text }) =>
      /^(service|domain)\//.test(file) &&
      /gen\/google\/|IncomingMessage|ServerResponse|statusCode|writeHead/.test(text),
  );
  t.deepEqual(
    wrong.map(({ file }) => file),
    [],
  );
});

/**
 * Beside the entries: the engine's environment is made of the server's, one reads there what it was handed for a
 * server, two measure the process that they run in, and threads share a clock.
 */
const TOUCHES_PROCESS = new Set([
  'main.ts',
  'cli.ts',
  'engine/worker/main.ts',
  'engine/processes/fork-engine.ts',
  'engine/families/remote/server-options.ts',
  'engine/families/temperature.ts',
  'stores/sqlite/write-queue.ts',
  'wire/watchdog.ts',
]);
const PROCESS =
  /\bprocess\.(env|exit|exitCode|argv|stdout|stderr|stdin|title|cwd|chdir|umask|execPath|hrtime|cpuUsage|memoryUsage|nextTick|on|once)\b|'node:process'/;

test('`process` is touched by the entries alone', (t) => {
  const touching = sources
    .filter(({ file, text }) => !file.startsWith('cli/') && PROCESS.test(text))
    .map(({ file }) => file);
  t.deepEqual(
    touching.filter((file) => !TOUCHES_PROCESS.has(file)),
    [],
  );
  t.deepEqual(
    [...TOUCHES_PROCESS].filter((file) => !touching.includes(file)),
    [],
    'the list is out of date',
  );
});

test('files are named in kebab-case, and begin by saying what they promise', (t) => {
  for (const { file, text } of sources) {
    t.regex(file, /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*\.ts$/);
    t.regex(text, /^(#!.*\n)?\/\*\*/, `${file} has no head comment`);
    t.notRegex(text, /^export default/m, file);
  }
});
