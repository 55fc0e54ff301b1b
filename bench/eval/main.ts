/**
 * `npm run eval -- --models a,b [--data FOLDER,…] [--sets a,b] [--rows N] [--url URL] [--out FOLDER] [--concurrency N]
 * [--parallel] [--wordings]`: measures how well models decide, through a service over HTTP. It starts a service of its
 * own unless `--url` names one. `--data` names one or more folders; without it the everyday test, the ordinary test and
 * the sample in the repository are read. `--parallel` also measures how far answers agree between sets in parallel
 * languages. `--wordings` asks only the questions whose choices have other wordings, once in each. Prints Markdown;
 * with `--out` also writes `results.md`, `results.json`, `accuracy.svg` and `reliability.svg` to that folder.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startService } from '../load/service.ts';
import { accuracyChart, reliabilityChart } from './charts.ts';
import { readFolders } from './data-sets.ts';
import { parallelSets } from './parallel.ts';
import { markdown, parallelTable } from './report.ts';
import { evaluate } from './run.ts';
import { readWordings, rewordedSets } from './wordings.ts';

const { values } = parseArgs({
  options: {
    models: { type: 'string', default: 'umpire-mini' },
    data: {
      type: 'string',
      default: ['everyday', 'ordinary', 'sample']
        .map((folder) => fileURLToPath(new URL(folder, import.meta.url)))
        .join(),
    },
    sets: { type: 'string' },
    rows: { type: 'string' },
    url: { type: 'string' },
    out: { type: 'string' },
    concurrency: { type: 'string', default: '4' },
    parallel: { type: 'boolean', default: false },
    wordings: { type: 'boolean', default: false },
  },
});

const found = readFolders(values.data.split(','), {
  ...(values.sets === undefined ? {} : { sets: values.sets.split(',') }),
  ...(values.rows === undefined ? {} : { rows: Number(values.rows) }),
});
const sets = values.wordings ? rewordedSets(found, readWordings()) : found;
if (values.parallel && parallelSets(sets).length === 0) {
  throw new Error('--parallel: no set is parallel to an English one, as topics_de to topics_en');
}
const service = values.url === undefined ? await startService() : undefined;
try {
  const url = values.url?.replace(/\/$/, '') ?? `http://127.0.0.1:${service?.port}`;
  const results = await evaluate(
    { url, concurrency: Number(values.concurrency) },
    values.models.split(','),
    sets,
    (line) => console.error(line),
  );
  const text = [markdown(results), ...(values.parallel ? [parallelTable(results)] : [])].join('\n\n');
  console.log(text);
  if (values.out !== undefined) {
    mkdirSync(values.out, { recursive: true });
    const write = (name: string, content: string): void => writeFileSync(join(values.out ?? '', name), content);
    write('results.md', `${text}\n`);
    write(
      'results.json',
      `${JSON.stringify(
        results.map((each) => ({
          ...each,
          sets: Object.fromEntries(each.sets),
          kinds: Object.fromEntries(each.kinds),
        })),
        null,
        2,
      )}\n`,
    );
    write('accuracy.svg', accuracyChart(results));
    write('reliability.svg', reliabilityChart(results));
  }
} finally {
  await service?.stop();
}
