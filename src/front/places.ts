/** Bounds on what callers hold at one time: places by address and in all, and turns of those who may wait. */

/** Places that are taken at once or not at all. */
export class Places {
  readonly #most: number;
  readonly #mostEach: number;
  readonly #held = new Map<string, number>();
  #all = 0;

  /** `mostEach`: of one address. */
  constructor(most: number, mostEach: number) {
    this.#most = most;
    this.#mostEach = mostEach;
  }

  /** Takes a place, to be given back once; or says who has too many. */
  take(address: string): (() => void) | 'address' | 'all' {
    const held = this.#held.get(address) ?? 0;
    if (held >= this.#mostEach) return 'address';
    if (this.#all >= this.#most) return 'all';
    this.#held.set(address, held + 1);
    this.#all += 1;
    return () => {
      const left = (this.#held.get(address) as number) - 1;
      if (left === 0) this.#held.delete(address);
      else this.#held.set(address, left);
      this.#all -= 1;
    };
  }
}

/** Lets a number of tasks run at a time; the others wait in the order in which they came. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Runs a task once it is its turn. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
