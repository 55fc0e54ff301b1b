/** Places labels beside the ends of lines so that none covers another. */

/**
 * The places of labels whose ideal places are `wanted`: in the same order, at least `gap` apart and at most at `most`,
 * moved no further than that needs.
 */
export function spreadLabels(wanted: readonly number[], gap: number, most: number): readonly number[] {
  const order = wanted.map((_, place) => place).toSorted((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const placed = [...wanted];
  let least = Number.NEGATIVE_INFINITY;
  for (const place of order) {
    placed[place] = Math.max(placed[place] as number, least);
    least = (placed[place] as number) + gap;
  }
  let bound = most;
  for (const place of order.toReversed()) {
    placed[place] = Math.min(placed[place] as number, bound);
    bound = (placed[place] as number) - gap;
  }
  return placed;
}
