/**
 * The `temperature` of a package's options: a number, or points over the number of choices, `{ "points": [[choices,
 * temperature], …] }` with ascending numbers of choices. Between two points it is linear in the logarithm of the number
 * of choices; beyond the first and the last it is constant.
 */
import type { CostCurve } from '../cost-profile.ts';
import type { Checker } from '../packages/manifest.ts';

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

// The options that are common to families with one graph, which reads tokens between [CLS] and [SEP].

/** The files and ids of such a package, and its temperature. */
export interface EncoderOptions {
  readonly graph: string;
  readonly tokenizer: string;
  readonly temperature: Temperature;
  readonly cls: number;
  readonly sep: number;
}

/** Reads these options; what is wrong becomes a problem. */
export function readEncoderOptions(fields: Checker): EncoderOptions {
  const special = fields.object('special_tokens');
  // Packages may name it, although nothing here needs it.
  special.value('unk');
  const options = {
    graph: fields.text('graph', /./u),
    tokenizer: fields.text('tokenizer', /./u),
    temperature: readTemperature(fields),
    cls: special.integer('cls', 0, 2 ** 31),
    sep: special.integer('sep', 0, 2 ** 31),
  };
  special.refuseOthers();
  return options;
}

// Measures what graph runs of several lengths take on one core of this machine.

/** Measures a curve: runs `work` at each size after one unmeasured run and keeps the least CPU time of two. */
export async function measureCurve(
  sizes: readonly number[],
  work: (tokens: number) => Promise<unknown>,
): Promise<CostCurve> {
  const points: [number, number][] = [];
  const distinct = [...new Set(sizes)].sort((a, b) => a - b);
  await work(distinct[0] ?? 1);
  for (const tokens of distinct) {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 2; round++) {
      // CPU time and not the clock: a machine that is busy while a model loads must not make the model look slow.
      const before = process.cpuUsage();
      await work(tokens);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    points.push([tokens, least]);
  }
  return points;
}
