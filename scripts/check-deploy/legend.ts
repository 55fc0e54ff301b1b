/**
 * Where the entries of a drawn panel's legend stand: in rows, none on another, and the number of those
 * that have no room.
 */

/**
 * One entry: its text and where it begins. `series` is its place among the names; undefined for the number of those
 * that are left out.
 */
export interface LegendEntry {
  readonly text: string;
  readonly series: number | undefined;
  readonly left: number;
  readonly row: number;
}

/** The widest letters of the drawing's font, on the average of a name; and the dot before with the space behind. */
const LETTER = 5.9;
const AROUND = 18;
const LONGEST = 26;

/** Lays names out within a width and a number of rows. */
export function layLegend(names: readonly string[], width: number, rows: number): readonly LegendEntry[] {
  const entries: LegendEntry[] = [];
  let [left, row] = [0, 0];
  for (const [series, name] of names.entries()) {
    const text = name.length > LONGEST ? `…${name.slice(1 - LONGEST)}` : name;
    const wide = text.length * LETTER + AROUND;
    const others = names.length - series - 1;
    // In the last row there must be room for the number of those behind, too.
    const kept = (at: number): number =>
      at === rows - 1 && others > 0 ? `+${others} more`.length * LETTER + AROUND : 0;
    if (left > 0 && left + wide + kept(row) > width && row < rows - 1) [left, row] = [0, row + 1];
    if (left > 0 && left + wide + kept(row) > width)
      return [...entries, { text: `+${others + 1} more`, series: undefined, left, row }];
    entries.push({ text, series, left, row });
    left += wide;
  }
  return entries;
}
