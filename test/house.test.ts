/**
 * The bounds of the layout, by the measures of `npm run house`: no circle, no export without a comment, nothing
 * too long to read.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { betweenRooms, circlesOf } from '../scripts/house/imports.ts';
import { MAX_FUNCTION_LINES, readSources } from '../scripts/house/sources.ts';

/** Lines of a file that is one concept without a doubt. A longer one says in its head why it is one: `One file: …`. */
const USUAL_FILE_LINES = 300;
/** Lines beyond which no reason is good enough. */
const MAX_FILE_LINES = 400;
/** Lines below which a file is hardly a concept. */
const LEAST_FILE_LINES = 40;

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const sources = readSources(ROOT, ['src', 'conformance', 'bench', 'scripts', 'test']);
const shipped = sources.filter(({ layer }) => layer === 'src' || layer === 'conformance');

test('no files and no folders import one another in a circle', (t) => {
  const imports = shipped.flatMap((source) => source.imports);
  t.deepEqual(circlesOf(imports), []);
  t.deepEqual(circlesOf(betweenRooms(imports)), []);
});

test('every export has a doc comment', (t) => {
  const found = shipped.flatMap(({ file, bareExports }) => bareExports.map((name) => `${file}: ${name}`));
  t.deepEqual(found, []);
});

test('every value that is exported is imported by another file', (t) => {
  const taken = new Set(sources.flatMap((source) => source.taken));
  t.true(taken.size > 1000);
  t.deepEqual(
    sources.flatMap(({ file, exportedValues }) =>
      exportedValues.map((name) => `${file}#${name}`).filter((name) => !taken.has(name) && !taken.has(`${file}#*`)),
    ),
    [],
  );
});

test(`functions have ${MAX_FUNCTION_LINES} lines at most`, (t) => {
  t.deepEqual(
    shipped.flatMap(({ functions }) => functions).filter(({ lines }) => lines > MAX_FUNCTION_LINES),
    [],
  );
});

/** Literals that a module declares: texts, numbers and regular expressions. Tables of them are seen by reviewers. */
const LITERAL = /^(?:export )?const ([a-z]\w*)(?:: [\w<>]+)? = (?:['"/]|-?\d)[^\n(]*;$/gm;

test('constants are named in UPPER_CASE; comments end within the width of the formatter, which leaves them alone', (t) => {
  const { formatter } = JSON.parse(textOf('biome.json')) as { formatter: { lineWidth: number } };
  for (const { file } of sources) {
    const text = textOf(file);
    t.deepEqual(
      [...text.matchAll(LITERAL)].map(([, name]) => `${file}: ${name}`),
      [],
    );
    const wide = text.split('\n').filter((line) => /^\s*(\/?\*|\/\/)/.test(line) && line.length > formatter.lineWidth);
    t.deepEqual(wide, [], file);
  }
});

test(`files have ${MAX_FILE_LINES} lines at most, and those of more than ${USUAL_FILE_LINES} say in their heads why`, (t) => {
  t.deepEqual(
    sources
      .filter(({ file, lines }) => lines > (/\bOne file: /.test(headOf(file)) ? MAX_FILE_LINES : USUAL_FILE_LINES))
      .map(({ file, lines }) => `${file}: ${lines}`),
    [],
  );
});

test(`a file of fewer than ${LEAST_FILE_LINES} lines with one importer belongs to it, or says in its head why not`, (t) => {
  const importers = Map.groupBy(
    sources.flatMap(({ imports }) => imports),
    ({ to }) => to,
  );
  t.deepEqual(
    sources
      .filter(({ file, layer, lines }) => {
        // Tests reach into anything: they make no concept of it.
        const own = importers.get(file)?.filter(({ from }) => layer === 'test' || !from.startsWith('test/')) ?? [];
        return lines < LEAST_FILE_LINES && new Set(own.map(({ from }) => from)).size === 1;
      })
      .filter(({ file }) => !/\bA file of its own: /.test(headOf(file)))
      .map(({ file, lines }) => `${file}: ${lines}`),
    [],
  );
});

/** The comment that a file begins with. */
function headOf(file: string): string {
  return /^(?:#!.*\n)?\/\*\*[\s\S]*?\*\//.exec(textOf(file))?.[0] ?? '';
}
