/** Labels beside the ends of lines, so that none lies on another. */

/**
 * Places for labels that want to be at these: in the same order, at least `gap` apart and not below `most`, moved as
 * little as that needs.
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
