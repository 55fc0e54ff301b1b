/**
 * The guides are true: their links lead somewhere, the settings, codes and log lines that they name exist, and
 * their clients run.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { CALLER_VARIABLES, SETTINGS } from '../src/config.ts';
import { ERROR_TABLE } from '../src/domain/errors.ts';
import { TOKEN_VARIABLE_PATTERN } from '../src/engine/packages/servers.ts';

const root = new URL('..', import.meta.url);
const pages = ['README.md', 'deploy/README.md', ...readdirSync(new URL('docs', root)).map((name) => `docs/${name}`)]
  .filter((name) => name.endsWith('.md'))
  .map((name) => ({ name, text: readFileSync(new URL(name, root), 'utf8') }));

/** Pages for those who change the code: held to their links alone. */
const developerPages = [
  'CONTRIBUTING.md',
  'bench/README.md',
  ...readdirSync(new URL('bench/results', root)).map((name) => `bench/results/${name}`),
].map((name) => ({ name, text: readFileSync(new URL(name, root), 'utf8') }));

test('every link leads to a file', (t) => {
  let links = 0;
  for (const { name, text } of [...pages, ...developerPages]) {
    for (const [, target = ''] of text.matchAll(/\]\(([^)#]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      links += 1;
      t.true(existsSync(new URL(target, new URL(name, root))), `${name}: ${target}`);
    }
  }
  t.true(links > 10);
});

/** What a heading is called in links to it: `## 9. Versioning` is `#9-versioning`. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_ -]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

test('every link to a heading leads to one', (t) => {
  let links = 0;
  for (const { name, text } of [...pages, ...developerPages]) {
    for (const [, target = '', anchor = ''] of text.matchAll(/\]\(([^)#:]*)#([^)]+)\)/g)) {
      links += 1;
      const page = target === '' ? text : readFileSync(new URL(target, new URL(name, root)), 'utf8');
      t.true(anchorsOf(page).has(anchor), `${name}: ${target}#${anchor}`);
    }
  }
  t.true(links > 10);
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
      t.true(readFileSync(new URL(file, root), 'utf8').includes(title), `${name}: ${file}: ${title}`);
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
    for (const [setting] of readFileSync(new URL(`deploy/${file}`, root), 'utf8').matchAll(/\bUMPIRE_[A-Z_]+\b/g)) {
      t.true(known.has(setting), `${file}: ${setting}`);
    }
  }
});

test('the symptoms name codes, reasons and log lines that there are', (t) => {
  const page = pages.find(({ name }) => name === 'docs/troubleshooting.md')?.text ?? '';
  const sources = readdirSync(new URL('src', root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(new URL(`src/${name}`, root), 'utf8'))
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
