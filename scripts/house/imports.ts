/** The graph of imports: its circles, and how far it is from running one way. */
import { dirname } from 'node:path';

/** An import of one file by another; both are paths from the root of the checkout. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

/** The folder of a file, or the file itself if it lies at the root of `src`, of a layer or of the kit. */
function roomOf(file: string): string {
  const depth = file.split('/').length;
  return depth <= (file.startsWith('src/') ? 3 : 2) ? file : dirname(file);
}

/** The imports between different rooms, as imports of rooms. */
export function betweenRooms(imports: readonly Import[]): readonly Import[] {
  return imports.map(({ from, to }) => ({ from: roomOf(from), to: roomOf(to) })).filter(({ from, to }) => from !== to);
}

/** The groups of two or more nodes in which each can be reached from every other. */
export function circlesOf(imports: readonly Import[]): readonly (readonly string[])[] {
  const next = Map.groupBy(imports, ({ from }) => from);
  const reachedFrom = (start: string): ReadonlySet<string> => {
    const seen = new Set<string>();
    const open = [start];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const { to } of next.get(at) ?? []) {
        if (seen.has(to)) continue;
        seen.add(to);
        open.push(to);
      }
    }
    return seen;
  };
  const reached = new Map([...next.keys()].map((node) => [node, reachedFrom(node)]));
  const circles = [...reached].flatMap(([node, seen]) =>
    seen.has(node) ? [[...seen].filter((other) => reached.get(other)?.has(node)).sort()] : [],
  );
  return [...new Map(circles.map((circle) => [circle.join(), circle])).values()];
}

/** How many imports between rooms run up, in the order of rooms in which the fewest do. */
export function arrowsUp(imports: readonly Import[]): number {
  const arrows = betweenRooms(imports);
  return circlesOf(arrows)
    .map((circle) => fewestUp(circle, arrows))
    .reduce((sum, count) => sum + count, 0);
}

/**
 * The same within one circle. Computes for each set of rooms, from the smallest on, the fewest imports up that any
 * order of them has.
 */
function fewestUp(rooms: readonly string[], arrows: readonly Import[]): number {
  if (rooms.length > 20) throw new Error(`a circle of ${rooms.length} rooms is too large to try its orders`);
  const weights = rooms.map((from) =>
    rooms.map((to) => arrows.filter((arrow) => arrow.from === from && arrow.to === to).length),
  );
  const fewest = new Float64Array(2 ** rooms.length).fill(Number.POSITIVE_INFINITY);
  fewest[0] = 0;
  for (let above = 0; above < fewest.length; above++) {
    for (const [next, row] of weights.entries()) {
      if (above & (1 << next)) continue;
      const up = row.reduce((sum, weight, other) => (above & (1 << other) ? sum + weight : sum), 0);
      const both = above | (1 << next);
      fewest[both] = Math.min(fewest[both] as number, (fewest[above] as number) + up);
    }
  }
  return fewest.at(-1) as number;
}
