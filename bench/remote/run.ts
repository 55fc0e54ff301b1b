/**
 * `npm run bench -- remote --data FOLDER [--sets banking77,clinc150] [--rows 300] [--cap 26] [--rounds 6] [--seconds
 * 8]`: decisions with more choices than a server takes. A decision server that speaks `/v1/systemone` takes 26 choices
 * and has umpire-mini decide, in a service of its own; for the model `shortlisted` minilm-l6 picks these 26. Its
 * accuracy, cost and latency are compared with minilm-l6 alone and with umpire-mini and all choices, one decision after
 * another; then how much it slows a local model down when the server hangs (isolation.ts). `--only accuracy` or `--only
 * isolation` does one of the two.
 *
 * The last set has rows of all sets, and 300 choices: their labels, and short labels of the folder's other sets.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { sharedTokenizer } from '../../src/engine/text/tokenizer.ts';
import { type Answer, askAll } from '../eval/ask.ts';
import { type DataSet, readDataSets } from '../eval/data-sets.ts';
import { measure } from '../eval/metrics.ts';
import { type Service, startService } from '../load/service.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import { type DecisionServer, startDecisionServer } from './decision-server.ts';
import { measureIsolation } from './isolation.ts';
import { LOCAL, writeModels } from './packages.ts';

/** Choices of the last set: the most that a decision may have. */
const MOST_CHOICES = 300;
/** Characters that a label from another set may have. */
const LONGEST_LABEL = 40;
/** Rows between two lines of progress. */
const PROGRESS = 50;
/** Milliseconds in which the model must be served. */
const PATIENCE = 120_000;

/** A model that is compared. */
interface Contender {
  readonly name: string;
  readonly url: string;
  readonly model: string;
}

/** Runs the benchmark and prints its tables. Throws without `--data`. */
export async function run(numbers: Record<string, number>, words: Record<string, string>): Promise<void> {
  const { data, only } = words;
  if (data === undefined) throw new Error('--data FOLDER: where banking77.jsonl and clinc150.jsonl are');
  const cap = numbers.cap ?? 26;
  const tokenizer = await sharedTokenizer(join(LOCAL, 'tokenizer.json'), sha256Of('tokenizer.json'));
  const tokensOf = (text: string): number => tokenizer.ids(text).length;
  const one = { UMPIRE_ENGINES: '1' };
  const deciding = await startService({ ...one, UMPIRE_MODELS: 'umpire-mini' });
  const decider = { url: `http://127.0.0.1:${deciding.port}`, model: 'umpire-mini' };
  const server = await startDecisionServer(decider, cap, tokensOf);
  const models = writeModels(server.address, cap);
  const service = await startService({ ...one, UMPIRE_MODELS_DIR: models.path });
  try {
    const url = `http://127.0.0.1:${service.port}`;
    await untilServed(service);
    const sets = setsOf(data, (words.sets ?? 'banking77,clinc150').split(','), numbers.rows ?? 300);
    const contenders: readonly Contender[] = [
      { name: 'minilm-l6 alone', url, model: 'minilm-l6' },
      { name: `the server, of ${cap} that minilm-l6 picks`, url, model: 'shortlisted' },
      { name: 'umpire-mini, of all choices', ...decider },
    ];
    if (only !== 'isolation') for (const set of sets) await compare(set, contenders, server, tokensOf);
    if (only !== 'accuracy') {
      const choices = sets[0]?.rows[0]?.choices ?? [];
      const { rounds = 6, seconds = 8 } = numbers;
      await measureIsolation({ url, server, choices, rounds, seconds });
    }
  } finally {
    await service.stop();
    await server.stop();
    await deciding.stop();
    models.remove();
  }
}

/** Waits for the model, without which the service is ready, too. Throws Error with the log if it is never served. */
async function untilServed(service: Service): Promise<void> {
  for (const end = performance.now() + PATIENCE; performance.now() < end; await delay(200)) {
    const response = await fetch(`http://127.0.0.1:${service.port}/v1/models/shortlisted`);
    const { status } = (await response.json()) as { readonly status?: string };
    if (status === 'ready') return;
  }
  const told = service.log().filter((line) => !('requestId' in line));
  throw new Error(`shortlisted is not served:\n${told.map((line) => JSON.stringify(line)).join('\n')}`);
}

function sha256Of(file: string): string {
  return JSON.parse(readFileSync(join(LOCAL, 'model.json'), 'utf8')).files[file].sha256;
}

/** The sets, and one of rows from all of them with as many choices as a decision may have. */
function setsOf(folder: string, names: readonly string[], rows: number): readonly DataSet[] {
  const sets = readDataSets(folder, { sets: names, rows });
  const others = readDataSets(folder, { rows: 1 }).filter(
    ({ name, fixedChoices }) => fixedChoices && !names.includes(name),
  );
  const fill = others.flatMap((set) => set.rows[0]?.choices ?? []).filter(({ length }) => length <= LONGEST_LABEL);
  const labels = new Set([...sets.flatMap((set) => set.rows[0]?.choices ?? []), ...fill]);
  const choices = [...labels].slice(0, MOST_CHOICES);
  const mixed = sets.flatMap((set) => set.rows.filter((_, i) => i % sets.length === 0));
  const all: DataSet = {
    ...{
      name: `${names.join(' and ')}, all labels`,
      kind: undefined,
      language: undefined,
      fixedChoices: true,
      pairs: false,
    },
    rows: mixed.map((row) => ({ ...row, choices })),
  };
  return [...sets, all];
}

/**
 * Has all contenders decide a set row by row, in turns, and prints how well and how fast, and what the server was
 * asked.
 */
async function compare(
  set: DataSet,
  contenders: readonly Contender[],
  server: DecisionServer,
  tokensOf: (text: string) => number,
): Promise<void> {
  const { rows } = set;
  const answers = new Map<Contender, Answer[]>(contenders.map((each) => [each, []]));
  const times = new Map<Contender, number[]>(contenders.map((each) => [each, []]));
  const before = { ...server.asked };
  let held = 0;
  const accuracyOf = (each: Contender): number =>
    measure({ ...set, rows: rows.slice(0, answers.get(each)?.length) }, answers.get(each) ?? []).accuracy;
  for (const [place, row] of rows.entries()) {
    for (const each of contenders) {
      const began = performance.now();
      const [answer] = await askAll({ url: each.url, concurrency: 1 }, each.model, [row]);
      times.get(each)?.push(performance.now() - began);
      answers.get(each)?.push(answer as Answer);
    }
    if (server.asked.last.includes(row.label)) held++;
    // A set takes minutes on a busy machine, so progress is shown.
    if ((place + 1) % PROGRESS === 0) {
      console.error(
        `${set.name}, ${place + 1} rows: ${contenders.map((each) => accuracyOf(each).toFixed(3)).join(' ')}`,
      );
    }
  }
  const rightOf = (each: Contender, place: number, label: string): number => {
    const answer = answers.get(each)?.[place];
    return answer?.kind === 'decided' && answer.choice === label ? 1 : 0;
  };
  console.log(`\n${set.name}: ${rows[0]?.choices.length} choices, ${rows.length} rows\n`);
  printTable(
    ['', 'accuracy', 'more than the first ± 1 s.e.', 'ECE', 'Brier', 'p50, ms', 'p99, ms'],
    contenders.map((each) => {
      const { accuracy, ece, brier } = measure(set, answers.get(each) ?? []);
      const gains = rows.map(({ label }, i) => rightOf(each, i, label) - rightOf(contenders[0] as Contender, i, label));
      const gain = gains.reduce((sum, one) => sum + one, 0) / rows.length;
      const spread = gains.reduce((sum, one) => sum + (one - gain) ** 2, 0) / rows.length;
      const taken = times.get(each) ?? [];
      return [
        each.name,
        accuracy.toFixed(3),
        `${gain.toFixed(3)} ± ${Math.sqrt(spread / rows.length).toFixed(3)}`,
        ...[ece, brier].map((value) => value.toFixed(3)),
        ...[median(taken), quantile(taken, 0.99)].map((value) => value.toFixed(1)),
      ];
    }),
  );
  const per = (name: 'requests' | 'choices' | 'tokens'): string =>
    ((server.asked[name] - before[name]) / rows.length).toFixed(name === 'requests' ? 2 : 0);
  const all = rows.map(({ input, instruction, choices }) =>
    [input, instruction, ...choices].reduce((sum, text) => sum + tokensOf(text), 0),
  );
  console.log(
    `\nthe server, a decision: ${per('requests')} requests, ${per('choices')} choices, ${per('tokens')} tokens of texts ` +
      `(all choices: ${median(all)}); the label was among its choices in ${((100 * held) / rows.length).toFixed(1)} %`,
  );
}
