/**
 * Pages are true: their links lead somewhere, the files, tests, sections of the contract, settings, codes and log lines
 * that they name exist, and the architecture names every room of the source.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { CHECKS } from '../conformance/checks.ts';
import { CALLER_VARIABLES, SETTINGS } from '../src/config.ts';
import { ERROR_TABLE } from '../src/domain/errors.ts';
import { TOKEN_VARIABLE_PATTERN } from '../src/engine/packages/servers.ts';
import { anchorsOf, pagesOf, textOf } from './support/pages.ts';

const root = new URL('..', import.meta.url);
const pages = pagesOf('README.md', 'deploy/README.md', 'docs/');

/** Pages for those who change the code: held to their links alone. */
const developerPages = pagesOf('CONTRIBUTING.md', 'bench/README.md', 'bench/results/');

test('every link leads to a file, and to a heading that is there', (t) => {
  let [links, headings] = [0, 0];
  for (const { name, text } of [...pages, ...developerPages]) {
    for (const [, target = '', anchor] of text.matchAll(/\]\(([^)#:]*)(?:#([^)]+))?\)/g)) {
      links += 1;
      const file = new URL(target, new URL(name, root));
      t.true(target === '' || existsSync(file), `${name}: ${target}`);
      if (anchor === undefined) continue;
      headings += 1;
      t.true(anchorsOf(target === '' ? text : readFileSync(file, 'utf8')).has(anchor), `${name}: ${target}#${anchor}`);
    }
  }
  t.true(links > 100 && headings > 10, `${links} links, ${headings} to headings`);
});

test('the page of benchmarks lists the results that there are', (t) => {
  const page = developerPages.find(({ name }) => name === 'bench/README.md')?.text ?? '';
  const listed = [...page.matchAll(/^\| \[[^\]]+\]\(results\/([^)]+)\)/gm)].map(([, file]) => file);
  t.deepEqual(listed.toSorted(), readdirSync(new URL('bench/results', root)).toSorted());
});

test('every test that is named exists, and so does its title', (t) => {
  let files = 0;
  let titles = 0;
  for (const { name, text } of [...pages, ...developerPages]) {
    // In a table the file's name may be followed by the title.
    for (const [, file = '', title] of text.matchAll(/`(test\/[^`*\s]*\.ts)`(?:: ([^|\n]+?) \|)?/g)) {
      files += 1;
      t.true(existsSync(new URL(file, root)), `${name}: ${file}`);
      if (title === undefined || !existsSync(new URL(file, root))) continue;
      titles += 1;
      t.true(textOf(file).includes(title), `${name}: ${file}: ${title}`);
    }
  }
  t.true(files > 20 && titles > 15, `${files} files, ${titles} titles`);
});

test('every setting that is named exists', (t) => {
  const known = new Set([...SETTINGS.map((setting) => setting.name), ...CALLER_VARIABLES]);
  for (const { name, text } of pages) {
    for (const [setting] of text.matchAll(/\b(UMPIRE|REDIS|TLS)_[A-Z_]+\b/g)) {
      // Whoever has a token names its variable.
      t.true(
        known.has(setting) || TOKEN_VARIABLE_PATTERN.test(setting) || setting === 'UMPIRE_TOKEN_',
        `${name}: ${setting}`,
      );
    }
  }
  for (const file of [
    'Dockerfile',
    'compose.yaml',
    'kubernetes/base/workload.yaml',
    'monitoring/alerts.yml',
    'systemd/umpire.service',
  ]) {
    for (const [setting] of textOf(`deploy/${file}`).matchAll(/\bUMPIRE_[A-Z_]+\b/g)) {
      t.true(known.has(setting), `${file}: ${setting}`);
    }
  }
});

test('the symptoms name codes, reasons and log lines that there are', (t) => {
  const page = pages.find(({ name }) => name === 'docs/troubleshooting.md')?.text ?? '';
  const sources = readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => textOf(`src/${name}`))
    .join('\n');
  const rows = page.split('\n').filter((line) => line.startsWith('| ') && !/^\| (A caller|It) /.test(line));
  t.true(rows.length > 15);
  let lines = 0;
  // Outside the tables, too, what is neither a command nor a word is a line of the log.
  for (const [, quoted = ''] of page.matchAll(/`([a-z][^`|]* [^`]*)`/g)) {
    if (/^(npm|bin\/umpire|redis-cli) /.test(quoted)) continue;
    lines += 1;
    for (const part of quoted.split('…')) t.true(sources.includes(part), quoted);
  }
  t.true(lines > 15);
  for (const row of rows) {
    const [, symptom = '', log = ''] = row.split('|');
    for (const [, status, code = ''] of symptom.matchAll(/(\d{3}) `([a-z_]+)`/g)) {
      const reason = ERROR_TABLE[code.toUpperCase() as keyof typeof ERROR_TABLE];
      t.is(String(reason?.http), status ?? '', `${code}`);
    }
    for (const [, quoted = ''] of log.matchAll(/`([^`]+)`/g)) {
      if (/^[A-Z_]+$/.test(quoted)) t.true(quoted in ERROR_TABLE, quoted);
    }
  }
});

/** Where a path begins. Diagrams and links name files without backticks. */
const TOP = 'src|proto|gen|test|docs|bench|models|training|scripts|deploy|bin|conformance';
const PATH = new RegExp(String.raw`(?<![\w./<-])(?:${TOP})(?:/[\w.-]*[\w-])+(?!/?<)`, 'g');

const namesIn = (text: string): readonly string[] => [...new Set([...text.matchAll(PATH)].map(([path]) => path))];
const NAMED = namesIn(textOf('docs/architecture.md'));
const TO_CHANGE = namesIn(textOf('CONTRIBUTING.md'));

test('every file and folder that the pages for developers name exists', (t) => {
  t.true(NAMED.length > 100, 'the page names most of the way of a decision');
  t.true(TO_CHANGE.length > 30, 'and CONTRIBUTING.md where each kind of change goes');
  const found = [...NAMED, ...TO_CHANGE].filter((path) => !existsSync(new URL(path, root)));
  t.deepEqual(found, []);
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

const sections = new Set(
  [...textOf('docs/contract.md').matchAll(/^##+ (\d+(?:\.\d+)?)\.? /gm)].map(([, number]) => number),
);

const LIST = String.raw`((?:\d+(?:\.\d+)?)(?:(?:, | and | to )\d+(?:\.\d+)?)*)`;

/** How a section of the contract is cited: `Contract 2.7, 3.2 and 4.4 to 4.6`, "section 12 of the contract". */
const CITATIONS = [
  String.raw`\b[Cc]ontract(?:'s)?,? (?:sections? )?${LIST}(?!\.\d)`,
  String.raw`\b[Ss]ections? ${LIST} of (?:the contract\b|.?docs/contract\.md)`,
];

/** How the contract cites itself. */
const OWN_CITATIONS = [String.raw`\b[Ss]ections? ${LIST}`];

function citationsIn(text: string, forms: readonly string[]): readonly string[] {
  return forms
    .flatMap((form) => [...text.matchAll(new RegExp(form, 'g'))])
    .flatMap(([, list = '']) => list.split(/, | and | to /));
}

/** Every text of the repository in which somebody may cite: code, comments, pages, protos, settings of deployments. */
function* texts(): Generator<readonly [file: string, text: string]> {
  const folders = ['src', 'conformance', 'test', 'bench', 'scripts', 'proto', 'docs', 'deploy', 'training', '.'];
  for (const folder of folders) {
    for (const name of readdirSync(new URL(folder, root), { recursive: folder !== '.', encoding: 'utf8' })) {
      const file = join(folder, name);
      if (!/\.(ts|proto|sh|md|py|ya?ml)$/.test(name) || /(^|\/)(node_modules|generated)\//.test(name)) continue;
      yield [file, textOf(file)];
    }
  }
}

test('every check of the conformance kit cites a section that there is', (t) => {
  t.true(CHECKS.length > 100 && sections.size > 30);
  for (const { id, section } of CHECKS) t.true(sections.has(section), `${id}: ${section}`);
});

test('every citation in code, tests and pages is of a section that there is', (t) => {
  const files = new Set<string>();
  for (const [file, text] of texts()) {
    for (const cited of citationsIn(text, file === 'docs/contract.md' ? OWN_CITATIONS : CITATIONS)) {
      files.add(file);
      // An item of a numbered list, as in 5.5, counts as its section.
      const [chapter = '', item] = cited.split('.');
      const itemsOf = item !== undefined && !sections.has(`${chapter}.1`);
      t.true(sections.has(itemsOf ? chapter : cited), `${file}: ${cited}`);
    }
  }
  t.true(files.size > 15, `${files.size} files cite the contract`);
});
