/**
 * Places the entries of a drawn panel's legend: in rows, so that none covers another, with the number of those for
 * which there is no room.
 */

/**
 * One entry: its text and where it begins. `series` is its place among the names; undefined for the entry that counts
 * the names that are left out.
 */
export interface LegendEntry {
  readonly text: string;
  readonly series: number | undefined;
  readonly left: number;
  readonly row: number;
}

/** Pixels of a letter, on the average of a name in the widest letters of the drawing's font. */
const LETTER = 5.9;
/** Pixels of the dot before a name and the space after it. */
const AROUND = 18;
/** Letters of a name that are shown. */
const LONGEST = 26;

/** Places names within a width, in pixels, and a number of rows. */
export function layLegend(names: readonly string[], width: number, rows: number): readonly LegendEntry[] {
  const entries: LegendEntry[] = [];
  let [left, row] = [0, 0];
  for (const [series, name] of names.entries()) {
    const text = name.length > LONGEST ? `…${name.slice(1 - LONGEST)}` : name;
    const wide = text.length * LETTER + AROUND;
    const others = names.length - series - 1;
    // The last row must also have room for the number of the names that follow.
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
