/**
 * The Markdown page that `attacks.sh table` writes: what was measured, and a verdict that follows from the figures
 * alone.
 */
import type { Defect } from './defects.ts';
import type { Measured } from './measure.ts';
import type { Fare, Fares } from './neighbour.ts';
import type { ReadCost } from './reader.ts';
import { BODY_SIZES, type BodyGrowth, type Growth } from './sizes.ts';

/** What was measured before and after the fixes. */
export interface Pair<T> {
  readonly before: T;
  readonly after: T;
}

/** Everything that the page shows. */
export interface Results {
  readonly head: readonly string[];
  readonly rows: readonly { readonly defect: Defect; readonly measured: Pair<Measured | undefined> }[];
  readonly bodies: Readonly<Record<string, Pair<readonly BodyGrowth[]>>>;
  readonly connections: Readonly<Record<string, Pair<readonly Growth[]>>>;
  readonly readers: Pair<readonly ReadCost[]>;
  /** What could not be measured, and why. */
  readonly failures: readonly string[];
}

/** Milliseconds that a neighbour may be without an answer. */
const MOST_GAP = 2000;
/** How far a neighbour's p99 may rise before the page lists it, as a multiple of the p99 without the attack. */
const MOST_TIMES = 2;
/** MiB that may still be held ten seconds after an attack: a heap may grow so much by itself. */
const MOST_LEFT = 64;
/** Milliseconds that one body of 1 MiB may block the serving thread. */
const MOST_HELD = 10;

const ms = (value: number): string => (Number.isNaN(value) ? '–' : value < 10 ? value.toFixed(1) : value.toFixed(0));
const seconds = (value: number): string => `${(value / 1000).toFixed(1)} s`;
const kib = (bytes: number): string => (bytes < 1 << 20 ? `${bytes >> 10} KiB` : `${bytes >> 20} MiB`);

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [
    `| ${head.join(' | ')} |`,
    `|${head.map(() => '---|').join('')}`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ];
}

const fare = ({ answered, asked, p50, p99, gap }: Fare): string =>
  `${answered}/${asked}, ${ms(p50)}/${ms(p99)} ms, ${seconds(gap)}`;
const probes = ({ live, probe }: Fares): string => `${ms(live.p99)} / ${ms(probe.p99)}`;

function verdictOf({ ends = false }: Defect, measured: Measured): string {
  const wrong: string[] = [];
  if (measured.shown.defect) wrong.push('the defect is there');
  if (measured.died !== undefined) wrong.push(`the service ended with ${measured.died}`);
  if (measured.during.decisions.gap > MOST_GAP && !ends)
    wrong.push(`a neighbour was ${seconds(measured.during.decisions.gap)} without an answer`);
  return wrong.join('; ');
}

/** What did not hold after the fixes, a line each. */
export function brokenPromises({ rows, bodies, connections, readers, failures }: Results): string[] {
  const lines: string[] = [...failures];
  for (const { defect, measured } of rows) {
    const wrong = measured.after === undefined ? '' : verdictOf(defect, measured.after);
    if (wrong !== '') lines.push(`${defect.id}: ${wrong}`);
  }
  for (const [id, { after }] of Object.entries(connections)) {
    for (const { connections: count, memory, gap, refused } of after) {
      const left = memory[2] - memory[0];
      if (left > MOST_LEFT)
        lines.push(`${id}, ${count} connections: ${left.toFixed(0)} MiB more than before were still held 10 s after`);
      if (gap > MOST_GAP) lines.push(`${id}, ${count} connections: a neighbour was ${seconds(gap)} without an answer`);
      if (refused) lines.push(`${id}, ${count} connections: decisions were refused 10 s after the attacker had left`);
    }
  }
  for (const [id, { after }] of Object.entries(bodies))
    for (const { size, killed } of after) if (killed > 0) lines.push(`${id}: a body of ${kib(size)} killed an engine`);
  for (const { body, longest } of readers.after) {
    const held = longest.at(-1) ?? 0;
    if (held > MOST_HELD) lines.push(`reading 1 MiB of ${body} held the thread for ${ms(held)} ms`);
  }
  return lines;
}

/** The attacks under which a p99 more than doubled, of decisions or probes, and whether nginx lets them through. */
function slowed({ rows }: Results): string[] {
  const lines: string[] = [];
  for (const { defect, measured } of rows) {
    const { after } = measured;
    if (after === undefined) continue;
    const { calm, during } = after;
    const parts = (
      [
        ['decisions', calm.decisions, during.decisions],
        ['`/health/live`', calm.live, during.live],
        ['`/health/live` on the own port', calm.probe, during.probe],
      ] as const
    )
      .filter(([, before, then]) => then.asked > 0 && !(then.p99 <= MOST_TIMES * before.p99))
      .map(([what, before, then]) =>
        then.answered === 0
          ? `${what}: none answered`
          : `${what} ${ms(before.p99)} → ${ms(then.p99)} ms (${(then.p99 / before.p99).toFixed(1)} times)`,
      );
    if (parts.length === 0) continue;
    const [passes, why] = defect.proxy;
    lines.push(
      `${defect.id}: ${parts.join(', ')}. nginx ${passes ? 'lets it through' : 'does not let it through'}: ${why}`,
    );
  }
  return lines;
}

const list = (lines: readonly string[], none: string): string[] =>
  lines.length === 0 ? [none] : lines.map((line) => `- ${line}`);

function verdict(results: Results): string[] {
  const gaps = results.rows
    .filter(({ measured, defect }) => measured.after !== undefined && defect.ends !== true)
    .map(({ defect, measured }) => ({ id: defect.id, gap: measured.after?.during.decisions.gap ?? 0 }));
  const longest = gaps.toSorted((a, b) => b.gap - a.gap)[0];
  const unseen = results.rows
    .filter(({ measured, defect }) => measured.before !== undefined && verdictOf(defect, measured.before) === '')
    .map(({ defect }) => defect.id);
  return [
    '## Verdict',
    '',
    `The longest time that a neighbour was without a decision after the fixes: ${seconds(longest?.gap ?? 0)} (${longest?.id ?? '–'}); at most ${seconds(MOST_GAP)}.`,
    ...(unseen.length === 0
      ? ['Every attack showed its defect before the fixes.']
      : [`Not shown before the fixes, on this machine and with these bounds: ${unseen.join(', ')}.`]),
    '',
    'What did not hold after the fixes:',
    '',
    ...list(brokenPromises(results), 'nothing.'),
    '',
    `Where the neighbour's p99 rose above ${MOST_TIMES} times its figure without the attack, after the fixes. Attacker, neighbour and service share the cores, so this includes the attacker's own work:`,
    '',
    ...list(slowed(results), 'nowhere.'),
    '',
  ];
}

function defects({ rows }: Results): string[] {
  const cell = (measured: Measured | undefined): string => (measured === undefined ? '–' : measured.shown.figure);
  return [
    '## The attacks',
    '',
    ...table(
      ['', 'Defect', 'Before', 'After', 'Test'],
      rows.map(({ defect, measured }) => [
        defect.id,
        defect.what,
        cell(measured.before),
        cell(measured.after),
        `\`${defect.test[0]}\`: ${defect.test[1]}`,
      ]),
    ),
    '',
  ];
}

function neighbours({ rows }: Results): string[] {
  const cores = ({ cores: { serving, attacker } }: Measured): string =>
    `${serving === undefined ? '–' : serving.toFixed(2)} / ${attacker.toFixed(2)}`;
  return [
    '## A neighbour at another address',
    '',
    'Decisions answered/asked, p50/p99, the longest time without an answer; p99 of `/health/live` in milliseconds on the port of callers / on that of probes, which did not exist before; cores kept busy by the serving process / by the attacker.',
    '',
    ...table(
      ['', '', 'Decisions without', 'during', 'Live without', 'during', 'Cores'],
      rows.flatMap(({ defect, measured }) =>
        (['before', 'after'] as const).flatMap((when) => {
          const one = measured[when];
          return one === undefined
            ? []
            : [
                [
                  defect.id,
                  when,
                  fare(one.calm.decisions),
                  fare(one.during.decisions),
                  probes(one.calm),
                  probes(one.during),
                  cores(one),
                ],
              ];
        }),
      ),
    ),
    '',
  ];
}

function growth({ bodies, connections }: Results): string[] {
  const sized = Object.entries(bodies).flatMap(([id, pair]) =>
    (['before', 'after'] as const).map((when) => [
      id,
      when,
      ...pair[when].map(
        ({ ms: took, status, killed }) =>
          `${ms(took)} ms, ${status || 'no answer'}${killed > 0 ? `, engines killed so far ${killed}` : ''}`,
      ),
    ]),
  );
  const held = Object.entries(connections).flatMap(([id, pair]) =>
    (['before', 'after'] as const).flatMap((when) =>
      pair[when].map(({ connections: count, memory, held: during, after }) => [
        id,
        when,
        count.toLocaleString('en'),
        ...memory.map((mib) => mib.toFixed(0)),
        during,
        after,
      ]),
    ),
  );
  return [
    '## Growth',
    '',
    'Time until one such body by itself was answered:',
    '',
    ...table(['', '', ...BODY_SIZES.map(kib)], sized),
    '',
    'Memory of the serving process by connections, one size after another against one service: D4 with 30 health watches on each, D5 with a request on each, D7 with two unread answers of 1 MiB on each.',
    '',
    ...table(
      ['', '', 'Connections', 'MiB before', 'held', '10 s after', "Neighbour's decisions meanwhile", '8 to 10 s after'],
      held,
    ),
    '',
  ];
}

function readers({ readers: { before, after } }: Results): string[] {
  const ratios = ({ ratios: of }: ReadCost): string =>
    of.map((ratio) => ratio.toFixed(ratio < 0.1 ? 3 : 1)).join(' / ');
  const longest = ({ longest: of }: ReadCost): string => of.map(ms).join(' / ');
  return [
    '## Reading JSON beside `JSON.parse`',
    '',
    `Time as a multiple of \`JSON.parse\` of the same text, and the longest that one body held the thread in milliseconds, for ${BODY_SIZES.map(kib).join(' / ')}. The first two are ordinary, the others hostile.`,
    '',
    ...table(
      ['Body', 'Before, times', 'After, times', 'Before, ms', 'After, ms'],
      before.map((cost, index) => {
        const own = after[index];
        return own === undefined
          ? [cost.body, ratios(cost), '–', longest(cost), '–']
          : [cost.body, ratios(cost), ratios(own), longest(cost), longest(own)];
      }),
    ),
  ];
}

/** The page as Markdown. */
export function writePage(results: Results): string {
  return [
    ...results.head,
    '',
    ...verdict(results),
    ...defects(results),
    ...neighbours(results),
    ...growth(results),
    ...readers(results),
    '',
  ].join('\n');
}
