/** The architecture page is true of the tree: what it names exists, and it names every room of the source. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import test from 'ava';

const root = new URL('..', import.meta.url);
const page = readFileSync(new URL('docs/architecture.md', root), 'utf8');

/** Where a path of the page begins, and the pages and diagrams that name files without backticks. */
const TOP = ['src', 'proto', 'gen', 'test', 'docs', 'bench', 'models', 'training', 'scripts', 'deploy', 'bin'].join(
  '|',
);
const PATH = new RegExp(String.raw`(?<![\w./<-])(?:${TOP})(?:/[\w.-]*[\w-])+(?!/?<)`, 'g');

const NAMED = [...new Set([...page.matchAll(PATH)].map(([path]) => path))];

test('every file and folder that is named exists', (t) => {
  t.true(NAMED.length > 100, 'the page names most of the way of a decision');
  t.deepEqual(
    NAMED.filter((path) => !existsSync(new URL(path, root))),
    [],
  );
});

test('every folder of src, and of its two largest layers, is named', (t) => {
  const folders = ['src', 'src/engine', 'src/wire'].flatMap((parent) =>
    readdirSync(new URL(parent, root), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${parent}/${name}`),
  );
  t.deepEqual(
    folders.filter((folder) => !NAMED.includes(folder)),
    [],
  );
});

test('the steps of a decision are numbered in order, and each names its files', (t) => {
  const steps = page.split('\n').filter((line) => /^\| \d+ \|/.test(line));
  const rest = steps.slice(0, 17);
  t.deepEqual(
    rest.map((line) => Number(line.split('|')[1])),
    Array.from({ length: 17 }, (_, index) => index + 1),
  );
  for (const line of rest) t.regex(line, /`src\//, line);
});
