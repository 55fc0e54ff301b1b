/** Results as Markdown, which can be pasted into a model card unchanged. */
import type { NoneOfThese, Quality } from './metrics.ts';
import type { Agreement } from './parallel.ts';
import type { ModelQuality } from './run.ts';
import type { WordingQuality } from './wordings.ts';

const share = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(3));

/** A table for each model, and if there are several, one that compares their accuracies. */
export function markdown(results: readonly ModelQuality[]): string {
  const tables = results.map(({ model, sets, mean, kinds, pooled, wordings }) => {
    const rows = [...sets].map(([name, quality]) => line(name, quality));
    return [
      `### ${model}`,
      '',
      '| set | rows | refused | accuracy | macro-F1 | ECE | Brier | wrong, ≥ 0.9 sure | ≥ 0.9 sure |',
      '|---|---:|---:|---:|---:|---:|---:|---:|---:|',
      ...rows,
      ...[...kinds].map(([kind, quality]) => line(`mean of kind ${kind}`, quality)),
      line('mean of the sets', mean),
      line('all rows', pooled),
      ...[...sets].flatMap(([name, { opposite }]) =>
        opposite === undefined ? [] : ['', `${name}: opposite answers on ${share(opposite)} of the pairs.`],
      ),
      ...noneLines(pooled.none),
      ...wordingLines(wordings),
    ].join('\n');
  });
  return [...tables, ...(results.length > 1 ? [comparison(results)] : [])].join('\n\n');
}

/** The same decisions in several languages: for every model a line for each set that is not English. */
export function parallelTable(results: readonly ModelQuality[]): string {
  const row = (cells: readonly string[], { pairs, same, apart }: Agreement): string =>
    `| ${[...cells, pairs, share(same), share(apart)].join(' | ')} |`;
  return [
    '### The same decision in other languages',
    '',
    '| model | set | language | pairs | same answer | median apart |',
    '|---|---|---|---:|---:|---:|',
    ...results.flatMap(({ model, parallel: { sets, all } }) => [
      ...sets.map((set) => row([model, set.name, set.language], set)),
      ...(all === undefined ? [] : [row([model, 'all', ''], all)]),
    ]),
  ].join('\n');
}

function line(name: string, quality: Quality): string {
  const { rows, refused, accuracy, macroF1, ece, brier, wrongAndSure, sure } = quality;
  const shares = [accuracy, macroF1, ece, brier, wrongAndSure].map(share);
  const cells = [name, rows, refused, ...shares, sure];
  return `| ${cells.join(' | ')} |`;
}

function noneLines({ right, missed, wrong, chosen }: NoneOfThese): readonly string[] {
  if (right + wrong === 0) return [];
  return ['', `None of these: missed in ${missed} of ${right} rows, wrongly chosen in ${chosen} of ${wrong}.`];
}

function wordingLines(wordings: WordingQuality | undefined): readonly string[] {
  if (wordings === undefined) return [];
  const { accuracies, same, rows } = wordings;
  const [least, most] = [Math.min(...accuracies), Math.max(...accuracies)];
  return [
    '',
    `Wordings of the choices: ${accuracies.map(share).join(', ')} right (${share(most - least)} apart); the same answer in all on ${share(same)} of ${rows} rows.`,
  ];
}

function comparison(results: readonly ModelQuality[]): string {
  const names = [...(results[0]?.sets.keys() ?? [])];
  const rows = [
    ...names.map((name) => [name, ...results.map(({ sets }) => share(sets.get(name)?.accuracy))]),
    ...[...(results[0]?.kinds.keys() ?? [])].map((kind) => [
      `mean of kind ${kind}`,
      ...results.map(({ kinds }) => share(kinds.get(kind)?.accuracy)),
    ]),
    ['mean', ...results.map(({ mean }) => share(mean.accuracy))],
  ];
  return [
    '### Accuracy, side by side',
    '',
    `| set | ${results.map(({ model }) => model).join(' | ')} |`,
    `|---|${results.map(() => '---:|').join('')}`,
    ...rows.map((cells) => `| ${cells.join(' | ')} |`),
  ].join('\n');
}
