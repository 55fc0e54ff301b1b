/** Whatever cites a section of the contract cites one that `docs/contract.md` has. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { CHECKS } from '../conformance/checks.ts';

const root = new URL('..', import.meta.url);
const sections = new Set(
  [...readFileSync(new URL('docs/contract.md', root), 'utf8').matchAll(/^##+ (\d+(?:\.\d+)?)\.? /gm)].map(
    ([, number]) => number,
  ),
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
      yield [file, readFileSync(new URL(file, root), 'utf8')];
    }
  }
}

test('the page has the sections of the contract', (t) => {
  t.true(sections.size > 30);
  for (const number of ['1', '2.1', '3.2', '4.8', '9', '10', '11', '12']) t.true(sections.has(number), number);
});

test('every check of the conformance kit cites a section that there is', (t) => {
  t.true(CHECKS.length > 100);
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
  for (const folder of ['conformance', 'test', 'docs'])
    t.true(
      [...files].some((file) => file.startsWith(`${folder}/`)),
      `nothing in ${folder} cites it: is the form of citations another one?`,
    );
});
