/** Golden-section search: the place of the least value of a function that falls and then rises. */

const RATIO = (Math.sqrt(5) - 1) / 2;

/** Searches from `low` to `high`. Every step leaves .618 of the interval; the middle of the last one is the answer. */
export function goldenSection(loss: (at: number) => number, low: number, high: number, steps: number): number {
  let [from, to] = [low, high];
  let [left, right] = [to - RATIO * (to - from), from + RATIO * (to - from)];
  let [atLeft, atRight] = [loss(left), loss(right)];
  for (let step = 0; step < steps; step++) {
    if (atLeft < atRight) {
      [to, right, atRight] = [right, left, atLeft];
      left = to - RATIO * (to - from);
      atLeft = loss(left);
    } else {
      [from, left, atLeft] = [left, right, atRight];
      right = from + RATIO * (to - from);
      atRight = loss(right);
    }
  }
  return (from + to) / 2;
}
