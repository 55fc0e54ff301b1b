/**
 * The `temperature` of a package's options: a number, or points over the number of choices, `{ "points": [[choices,
 * temperature], …] }` with ascending numbers of choices. Between two points it is linear in the logarithm of the number
 * of choices; beyond the first and the last it is constant.
 */
import type { Checker } from '../packages/checker.ts';

/** The temperature for a decision among this many choices; always above 0. */
export type Temperature = (choices: number) => number;

const LEAST = 1e-6;
const GREATEST = 1e6;
const POINTS = '{ "points": [[choices, temperature], …] }';

/** Reads the field `temperature` of a package's options; what is wrong becomes a problem. */
export function readTemperature(fields: Checker): Temperature {
  const value = fields.value('temperature');
  const points = pointsOf(value);
  if (points === undefined) {
    if (typeof value === 'number' && value >= LEAST && value <= GREATEST) return () => value;
    fields.problem(`must be a number from ${LEAST} to ${GREATEST}, or ${POINTS}`, 'temperature');
    return () => 1;
  }
  if (points.length === 0) {
    fields.problem(`must be ${POINTS}, with rising whole numbers of choices`, 'temperature');
    return () => 1;
  }
  return (choices) => interpolate(points, choices);
}

interface Point {
  readonly choices: number;
  readonly temperature: number;
}

/** The points, none when they are malformed, or undefined when the value is not of that form at all. */
function pointsOf(raw: unknown): readonly Point[] | undefined {
  if (typeof raw !== 'object' || raw === null) return undefined;
  const list: unknown = 'points' in raw ? raw.points : undefined;
  if (!Array.isArray(list)) return [];
  const points: Point[] = [];
  for (const item of list as readonly unknown[]) {
    const [choices, temperature, ...rest] = Array.isArray(item) ? (item as readonly unknown[]) : [];
    const before = points.at(-1)?.choices ?? 0;
    const isPoint =
      typeof choices === 'number' && typeof temperature === 'number' && Number.isInteger(choices) && rest.length === 0;
    if (!isPoint || choices <= before || !(temperature >= LEAST && temperature <= GREATEST)) return [];
    points.push({ choices, temperature });
  }
  return points;
}

function interpolate(points: readonly Point[], choices: number): number {
  const above = points.findIndex((point) => point.choices >= choices);
  const high = points.at(above);
  const low = points[above - 1];
  if (high === undefined) throw new RangeError('no points');
  // at(-1) is the last point, for a number of choices beyond it.
  if (above === -1 || low === undefined) return high.temperature;
  const share = Math.log(choices / low.choices) / Math.log(high.choices / low.choices);
  return low.temperature + share * (high.temperature - low.temperature);
}
