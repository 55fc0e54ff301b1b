/**
 * `node bench/eval/take-sample.ts --data FOLDER [--rows 60]`: writes the sample in `bench/eval/sample`: rows of the
 * full sets, and pairs of questions and negations from the list in `training/two_stage`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { readDataSets } from './data-sets.ts';

/** The sets whose licence and source are clear: see sample/SOURCES.md. */
const TAKEN = ['banking77', 'clinc150', 'clinc150_oos', 'metatool'];

const { values } = parseArgs({ options: { data: { type: 'string' }, rows: { type: 'string', default: '60' } } });
if (values.data === undefined) throw new Error('--data FOLDER is needed');
const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

for (const set of readDataSets(values.data, { sets: TAKEN, rows: Number(values.rows) })) {
  const [first = ''] = gunzipSync(readFileSync(`${values.data}/${set.name}.jsonl.gz`))
    .toString('utf8')
    .split('\n', 1);
  const rows = set.rows.map((row) => JSON.stringify({ ...row, choices: set.fixedChoices ? null : row.choices }));
  writeFileSync(pathOf(`sample/${set.name}.jsonl`), [first, ...rows, ''].join('\n'));
}

const pairs: string[] = [];
let input = '';
for (const line of readFileSync(pathOf('../../training/two_stage/lists/negations.txt'), 'utf8').split('\n')) {
  if (line.startsWith('= ')) input = line.slice(2);
  if (line.startsWith('#') || !line.includes(' | ')) continue;
  const [question, negation, label] = line.split(' | ');
  const opposite = label === 'yes' ? 'no' : 'yes';
  pairs.push(JSON.stringify({ input, instruction: question, choices: null, label }));
  pairs.push(JSON.stringify({ input, instruction: negation, choices: null, label: opposite }));
}
const META = {
  set: 'negations',
  labels: ['yes', 'no'],
  licence: 'Apache-2.0',
  sources: [],
  notes: 'written for Umpire',
  pairs: true,
};
writeFileSync(pathOf('sample/negations.jsonl'), [JSON.stringify({ meta: META }), ...pairs, ''].join('\n'));
