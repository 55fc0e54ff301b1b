/**
 * A bound on what is under way at a server, in requests and bytes. Waiting calls are let in in the order of their
 * arrival.
 */

interface Waiting {
  readonly bytes: number;
  admit(): void;
}

/** Lets calls in as far as there is room; nothing is inside at first. */
export class Semaphore {
  readonly #most: { readonly requests: number; readonly bytes: number };
  readonly #waiting: Waiting[] = [];
  #inside = 0;
  #bytes = 0;

  constructor(most: { readonly requests: number; readonly bytes: number }) {
    this.#most = most;
  }

  /** How many calls are inside. */
  get inside(): number {
    return this.#inside;
  }

  /**
   * Resolves when there is room, with a function that gives it back. A single item larger than all bytes is let in when
   * nothing else is under way. Rejects with the signal's reason.
   */
  async enter(bytes: number, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#waiting.length === 0 && this.#hasRoom(bytes)) return this.#take(bytes);
    return await new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason);
      };
      const entry: Waiting = {
        bytes,
        admit: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(this.#take(bytes));
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(entry);
    });
  }

  #hasRoom(bytes: number): boolean {
    return this.#inside === 0 || (this.#inside < this.#most.requests && this.#bytes + bytes <= this.#most.bytes);
  }

  #take(bytes: number): () => void {
    this.#inside++;
    this.#bytes += bytes;
    return () => {
      this.#inside--;
      this.#bytes -= bytes;
      for (let next = this.#waiting[0]; next !== undefined && this.#hasRoom(next.bytes); next = this.#waiting[0]) {
        this.#waiting.shift();
        next.admit();
      }
    };
  }
}
