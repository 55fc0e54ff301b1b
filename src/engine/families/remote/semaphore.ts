/**
 * A bound on what is under way at a server, in requests and bytes. Waiting calls are let in in the order of their
 * arrival.
 */

/** Lets calls in as far as there is room. */
export interface Semaphore {
  /**
   * Resolves when there is room, with a function that gives it back. A single item larger than all bytes is let in when
   * nothing else is under way. Rejects with the signal's reason.
   */
  enter(bytes: number, signal: AbortSignal): Promise<() => void>;
  readonly inside: number;
}

interface Waiting {
  readonly bytes: number;
  admit(): void;
}

/** A semaphore with nothing inside. */
export function createSemaphore(most: { readonly requests: number; readonly bytes: number }): Semaphore {
  const waiting: Waiting[] = [];
  let inside = 0;
  let taken = 0;

  const hasRoom = (bytes: number): boolean => inside === 0 || (inside < most.requests && taken + bytes <= most.bytes);

  const leave = (bytes: number): void => {
    inside--;
    taken -= bytes;
    for (let next = waiting[0]; next !== undefined && hasRoom(next.bytes); next = waiting[0]) {
      waiting.shift();
      next.admit();
    }
  };

  const take = (bytes: number): (() => void) => {
    inside++;
    taken += bytes;
    return () => leave(bytes);
  };

  return {
    get inside() {
      return inside;
    },
    async enter(bytes, signal) {
      signal.throwIfAborted();
      if (waiting.length === 0 && hasRoom(bytes)) return take(bytes);
      return await new Promise((resolve, reject) => {
        const giveUp = (): void => {
          waiting.splice(waiting.indexOf(entry), 1);
          reject(signal.reason);
        };
        const entry: Waiting = {
          bytes,
          admit() {
            signal.removeEventListener('abort', giveUp);
            resolve(take(bytes));
          },
        };
        signal.addEventListener('abort', giveUp, { once: true });
        waiting.push(entry);
      });
    },
  };
}
