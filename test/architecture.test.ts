/**
 * The pages for those who change the code are true of the tree: what they name exists, and the architecture names every
 * room of the source.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import test from 'ava';

const root = new URL('..', import.meta.url);
const page = readFileSync(new URL('docs/architecture.md', root), 'utf8');
const contributing = readFileSync(new URL('CONTRIBUTING.md', root), 'utf8');

/** Where a path begins. Diagrams and links name files without backticks. */
const TOP = [
  'src',
  'proto',
  'gen',
  'test',
  'docs',
  'bench',
  'models',
  'training',
  'scripts',
  'deploy',
  'bin',
  'conformance',
].join('|');
const PATH = new RegExp(String.raw`(?<![\w./<-])(?:${TOP})(?:/[\w.-]*[\w-])+(?!/?<)`, 'g');

const namesIn = (text: string): readonly string[] => [...new Set([...text.matchAll(PATH)].map(([path]) => path))];
const NAMED = namesIn(page);

test('every file and folder that is named exists', (t) => {
  t.true(NAMED.length > 100, 'the page names most of the way of a decision');
  t.true(namesIn(contributing).length > 30, 'and CONTRIBUTING.md where each kind of change goes');
  t.deepEqual(
    [...NAMED, ...namesIn(contributing)].filter((path) => !existsSync(new URL(path, root))),
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
