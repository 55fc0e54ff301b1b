/**
 * A place for one process more than there are engines: processes that load models beside those that serve take turns in
 * it.
 */

/** A place for one process at a time. */
export interface SparePlace {
  /** Whether a task has it or waits for it. */
  readonly taken: boolean;
  /** Runs a task once all earlier ones are done; it has the place until its promise settles. */
  use(task: () => Promise<void>): Promise<void>;
}

/** A place that nobody has taken. */
export function createSparePlace(): SparePlace {
  let last = Promise.resolve();
  let users = 0;
  return {
    get taken() {
      return users > 0;
    },
    use(task) {
      users++;
      last = last.then(task).finally(() => {
        users--;
      });
      return last;
    },
  };
}
