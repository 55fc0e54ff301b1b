/**
 * Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, algorithm 7.5) for smooth convex functions, with a
 * diagonal first guess of the curvature and a backtracking line search. The same start gives the same end, bit for bit.
 */

/** A function to minimise: its value, and its gradient into `gradient`. */
export type Objective = (at: Float64Array, gradient: Float64Array) => number;

/** The scale with which a minimisation starts, and when it ends. */
export interface LbfgsOptions {
  /** About the second derivative by each variable; each greater than 0. */
  readonly curvature: Float64Array;
  readonly mostSteps: number;
  /** It ends when a step gains less than this share of the value. */
  readonly tolerance: number;
}

/** Steps that are remembered for the curvature; the book advises 3 to 20. */
const MEMORY = 8;
/** A step must reach this share of the gain that the gradient promises (Armijo). */
const SUFFICIENT = 1e-4;
/** How often a step is halved at most in search of such a gain. */
const MOST_HALVINGS = 20;

interface Pair {
  readonly step: Float64Array;
  readonly change: Float64Array;
  readonly product: number;
}

/** Moves `at` to (nearly) the minimum, and returns the value there. */
export function minimise(objective: Objective, at: Float64Array, options: LbfgsOptions): number {
  const { curvature, mostSteps, tolerance } = options;
  const { length } = at;
  let gradient = new Float64Array(length);
  let nextGradient = new Float64Array(length);
  const trial = new Float64Array(length);
  const pairs: Pair[] = [];
  let value = objective(at, gradient);
  for (let count = 0; count < mostSteps; count++) {
    const direction = descent(gradient, pairs, curvature);
    const slope = dot(direction, gradient);
    if (!(slope < 0)) break;
    let share = 1;
    let next = value;
    for (let halving = 0; ; halving++) {
      for (let i = 0; i < length; i++) trial[i] = (at[i] as number) + share * (direction[i] as number);
      next = objective(trial, nextGradient);
      if (next <= value + SUFFICIENT * share * slope) break;
      if (halving === MOST_HALVINGS) return value;
      share /= 2;
    }
    const step = new Float64Array(length);
    const change = new Float64Array(length);
    for (let i = 0; i < length; i++) {
      step[i] = (trial[i] as number) - (at[i] as number);
      change[i] = (nextGradient[i] as number) - (gradient[i] as number);
    }
    const product = dot(step, change);
    if (product > 0) {
      pairs.push({ step, change, product });
      if (pairs.length > MEMORY) pairs.shift();
    }
    at.set(trial);
    [gradient, nextGradient] = [nextGradient, gradient];
    const gained = value - next;
    value = next;
    if (gained < tolerance * Math.abs(value)) break;
  }
  return value;
}

/** The direction of descent by the two-loop recursion. */
function descent(gradient: Float64Array, pairs: readonly Pair[], curvature: Float64Array): Float64Array {
  const direction = gradient.map((value) => -value);
  const shares = new Float64Array(pairs.length);
  for (let place = pairs.length - 1; place >= 0; place--) {
    const { step, change, product } = pairs[place] as Pair;
    const share = dot(step, direction) / product;
    shares[place] = share;
    add(direction, change, -share);
  }
  const last = pairs.at(-1);
  let scale = 1;
  if (last !== undefined) {
    let square = 0;
    for (let i = 0; i < curvature.length; i++) square += (last.change[i] as number) ** 2 / (curvature[i] as number);
    scale = last.product / square;
  }
  for (let i = 0; i < direction.length; i++) {
    direction[i] = (scale * (direction[i] as number)) / (curvature[i] as number);
  }
  for (const [place, { step, change, product }] of pairs.entries()) {
    add(direction, step, (shares[place] as number) - dot(change, direction) / product);
  }
  return direction;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number);
  return sum;
}

function add(to: Float64Array, what: Float64Array, times: number): void {
  for (let i = 0; i < to.length; i++) to[i] = (to[i] as number) + times * (what[i] as number);
}
