/** Whatever cites a section of the contract cites one that `docs/contract.md` has. */
import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { CHECKS } from '../conformance/checks.ts';

const root = new URL('..', import.meta.url);
const sections = new Set(
  [...readFileSync(new URL('docs/contract.md', root), 'utf8').matchAll(/^##+ (\d+(?:\.\d+)?)\.? /gm)].map(
    ([, number]) => number,
  ),
);

/** The numbers behind the word "Contract": `Contract 2.7, 3.2 and 4.4 to 4.6`, with an item of a list as `5.5` counted as its section. */
function citationsIn(text: string): readonly string[] {
  return [
    ...text.matchAll(/\b[Cc]ontract,? (?:sections? )?((?:\d+(?:\.\d+)?)(?:(?:, | and | to )\d+(?:\.\d+)?)*)/g),
  ].flatMap(([, list = '']) => list.split(/, | and | to /));
}

test('the page has the sections of the contract', (t) => {
  t.true(sections.size > 30);
  for (const number of ['1', '2.1', '3.2', '4.8', '9', '10', '11', '12']) t.true(sections.has(number), number);
});

test('every check of the conformance kit cites a section that there is', (t) => {
  t.true(CHECKS.length > 100);
  for (const { id, section } of CHECKS) t.true(sections.has(section), `${id}: ${section}`);
});

test('every citation in code and tests is of a section that there is', (t) => {
  let citations = 0;
  for (const folder of ['src', 'test', 'bench', 'scripts', 'proto']) {
    for (const name of readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })) {
      if (!/\.(ts|proto|sh)$/.test(name)) continue;
      for (const cited of citationsIn(readFileSync(new URL(`${folder}/${name}`, root), 'utf8'))) {
        citations += 1;
        const [chapter = '', item] = cited.split('.');
        const itemsOf = item !== undefined && !sections.has(`${chapter}.1`);
        t.true(sections.has(itemsOf ? chapter : cited), `${folder}/${name}: ${cited}`);
      }
    }
  }
  t.true(citations > 15, `${citations} citations`);
});
