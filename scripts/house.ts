/**
 * Measures how the code is laid out, and prints Markdown tables with a column for each checkout: `npm run house
 * [CHECKOUT…]`, by default this one. A checkout needs its `node_modules`. It counts
 * - files and lines of each room of `src`, `test` and `conformance`;
 * - the files and calls on the way of one decision (see `house/decision-way.ts`), unless `--static` is given;
 * - circles of files and folders, and imports that run up (see `house/imports.ts`);
 * - exports without a doc comment and functions over 80 lines (see `house/sources.ts`), in `src` and `conformance`.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { printTable } from '../bench/report/table.ts';
import { ROOT } from './attacks/target.ts';
import { type DecisionWay, followDecision, PROTOCOLS } from './house/decision-way.ts';
import { arrowsUp, betweenRooms, circlesOf } from './house/imports.ts';
import { MAX_FUNCTION_LINES, readSources, type Source } from './house/sources.ts';

/** What was measured of one checkout. */
interface Measured {
  readonly rooms: ReadonlyMap<string, { readonly files: number; readonly lines: number }>;
  readonly figures: ReadonlyMap<string, string>;
  /** The names behind the figures, printed with `--details`. */
  readonly details: readonly (readonly [title: string, lines: readonly string[]])[];
}

async function measure(checkout: string, withDecisions: boolean): Promise<Measured> {
  const sources = readSources(checkout);
  const rooms = new Map<string, { files: number; lines: number }>();
  for (const { room, lines, layer } of sources) {
    for (const name of [room, `${layer}, all`]) {
      const { files, lines: before } = rooms.get(name) ?? { files: 0, lines: 0 };
      rooms.set(name, { files: files + 1, lines: before + lines });
    }
  }
  const own = sources.filter(({ layer }) => layer !== 'test');
  const imports = own.flatMap((source) => source.imports);
  const circles = circlesOf(imports);
  const folderCircles = circlesOf(betweenRooms(imports));
  const upward = arrowsUp(imports);
  const bare = own.flatMap(({ file, bareExports }) => bareExports.map((name) => `${file}: ${name}`));
  const functions = own.flatMap((source: Source) => source.functions).sort((one, other) => other.lines - one.lines);
  const long = functions.filter(({ lines }) => lines > MAX_FUNCTION_LINES);
  const decisions: DecisionWay[] = [];
  if (withDecisions) for (const protocol of PROTOCOLS) decisions.push(await followDecision(checkout, protocol));
  return {
    rooms,
    figures: new Map([
      ...decisions.flatMap(({ protocol, serving, engine, lines, crossings }): [string, string][] => [
        [`files entered by a decision over ${protocol}`, String(serving.length + engine.length)],
        [`of them in the engine process, ${protocol}`, String(engine.length)],
        [`lines of the files entered over ${protocol}`, String(lines)],
        [`calls over a layer's border, ${protocol}`, String(crossings.length)],
      ]),
      ['circles of files', String(circles.length)],
      ['circles of folders', String(folderCircles.length)],
      ['arrows that run up', String(upward)],
      ['exports without a doc comment', String(bare.length)],
      [`functions over ${MAX_FUNCTION_LINES} lines`, String(long.length)],
      ['lines of the longest', String(functions[0]?.lines ?? 0)],
    ]),
    details: [
      ...decisions.flatMap(({ protocol, serving, engine, crossings }): [string, string[]][] => [
        [`Files entered over ${protocol}`, [...serving, ...engine.map((file) => `${file} (engine process)`)]],
        [`Calls over a layer's border, ${protocol}`, [...crossings]],
      ]),
      ['Circles of files', circles.map((circle) => circle.join(', '))],
      ['Circles of folders', folderCircles.map((circle) => circle.join(', '))],
      ['Exports without a doc comment', bare],
      [`Functions over ${MAX_FUNCTION_LINES} lines`, long.map(({ name, place, lines }) => `${lines} ${place} ${name}`)],
    ],
  };
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { static: { type: 'boolean' }, details: { type: 'boolean' } },
});
const checkouts = (positionals.length > 0 ? positionals : [ROOT]).map((checkout) => resolve(checkout));
const measured: Measured[] = [];
for (const checkout of checkouts) measured.push(await measure(checkout, values.static !== true));

/** A row for each name that occurs in any checkout. */
const rowsOf = <V>(maps: readonly ReadonlyMap<string, V>[], cells: (value: V | undefined) => readonly string[]) =>
  [...new Set(maps.flatMap((map) => [...map.keys()]))].map((name) => [
    name,
    ...maps.flatMap((map) => cells(map.get(name))),
  ]);
const titles = checkouts.map((checkout) => checkout.split('/').at(-1) as string);

printTable(
  ['', ...titles],
  rowsOf(
    measured.map(({ figures }) => figures),
    (figure) => [figure ?? ''],
  ),
);
console.log();
printTable(
  ['room', ...titles.flatMap((title) => [`${title}: files`, 'lines'])],
  rowsOf(
    measured.map(({ rooms }) => rooms),
    (room) => [String(room?.files ?? ''), String(room?.lines ?? '')],
  ).sort(([one], [other]) => ((one as string) < (other as string) ? -1 : 1)),
);
if (values.details === true) {
  for (const [index, { details }] of measured.entries()) {
    for (const [title, lines] of details)
      console.log(`\n${titles[index]}: ${title}\n${lines.map((line) => `  ${line}`).join('\n')}`);
  }
}
