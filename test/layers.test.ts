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

/** What each layer may import beside itself. Files at the root of src put the layers together; the logger's type is everybody's. */
const below: Readonly<Record<string, readonly string[]>> = {
  wire: ['service', 'domain', 'engine', 'stores'],
  service: ['domain', 'engine', 'stores'],
  domain: ['engine', 'stores'],
  engine: [],
  stores: [],
  // Another composition of the same parts, with an engine of its own.
  mock: ['wire', 'domain', 'engine', 'stores'],
  cli: ['mock', 'domain', 'engine', 'stores'],
};
const ROOT = ['app.ts', 'cli.ts', 'config.ts', 'log-stream.ts', 'logger.ts', 'main.ts', 'version.ts'];

const MOCK = 'mock/start-mock.ts';

const layerOf = (path: string): string => path.split('/')[0] as string;

test('src is made of the known layers', (t) => {
  const known = new Set([...Object.keys(below), ...ROOT]);
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
    if (target === layer || to === 'logger.ts' || to === 'version.ts') return false;
    if (layer === 'cli' && to === 'config.ts') return false;
    if (from === MOCK && ['config.ts', 'app.ts'].includes(to)) return false;
    return target in below || ROOT.includes(target) ? !below[layer]?.includes(target) : false;
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

test('nothing imports the entries, and only they and the mock import the composition root', (t) => {
  t.deepEqual(
    imports.filter(({ to }) =>
      ['main.ts', 'cli.ts', 'engine/worker/main.ts', 'engine/open-inference/main.ts'].includes(to),
    ),
    [],
  );
  t.deepEqual(
    imports.filter(({ from, to }) => to === 'app.ts' && from !== 'main.ts' && from !== MOCK),
    [],
  );
});

/** Who may import what: a package or a module of Node's, and the folder or file that it is for. */
const reserved: readonly (readonly [what: RegExp, where: RegExp])[] = [
  [/^onnxruntime-node$/, /^engine\/worker\//],
  [/^@huggingface\/tokenizers$/, /^engine\/worker\//],
  [/^@grpc\/grpc-js$/, /^engine\/open-inference\/client\.ts$/],
  [/^redis$/, /^stores\/redis\//],
  [/^node:sqlite$/, /^stores\/sqlite\//],
  [/^@connectrpc\/connect\/protocol/, /^wire\/rpc\/connect-private\.ts$/],
  [/^@connectrpc\//, /^wire\/rpc\//],
  [/^node:https?2?$/, /^wire\//],
  [/^node:child_process$/, /^engine\/pool\//],
  [/^pino$/, /^logger\.ts$/],
  [/^prom-client$/, /^wire\/metrics\//],
  [/^@opentelemetry\//, /^wire\/traces\//],
];

for (const [what, where] of reserved) {
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

/** Beside the entries: the engine's environment is made of the server's, two measure the process that they run in, and threads share a clock. */
const TOUCHES_PROCESS = new Set([
  'main.ts',
  'cli.ts',
  'engine/worker/main.ts',
  'engine/open-inference/main.ts',
  'engine/pool/engine-process.ts',
  'engine/cost-profile.ts',
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

test('files are one concept long, named in kebab-case, and begin by saying what they promise', (t) => {
  for (const { file, text } of sources) {
    t.true(text.split('\n').length <= 301, `${file} is longer than 300 lines`);
    t.regex(file, /^([a-z0-9]+(-[a-z0-9]+)*\/)*[a-z0-9]+(-[a-z0-9]+)*\.ts$/);
    t.regex(text, /^(#!.*\n)?\/\*\*/, `${file} has no head comment`);
    t.notRegex(text, /^export default/m, file);
  }
});
