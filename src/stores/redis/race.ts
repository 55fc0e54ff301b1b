/**
 * Bounds the time of one store call. A command that the client has written cannot be taken back, so the caller stops
 * waiting instead.
 */

/** What a call that took too long is rejected with; always this object, so that it can be compared. */
export const TOO_LATE = new Error('Redis did not answer in time');

/** Milliseconds by which a timer may be late; a later one shows that this process was busy, and perhaps not Redis. */
const BUSY_MS = 20;
/** Milliseconds that are then added, since the answer may have arrived and wait to be read. */
const GRACE_MS = 50;

/** The work's outcome, or a rejection with `TOO_LATE` once the time is up; what comes of the work later is ignored. */
export async function race<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  const cut = Promise.withResolvers<never>();
  const due = performance.now() + milliseconds;
  let timer = setTimeout(() => {
    const busy = performance.now() - due > BUSY_MS;
    timer = setTimeout(() => cut.reject(TOO_LATE), busy ? GRACE_MS : 0);
  }, milliseconds);
  work.catch(() => {});
  try {
    return await Promise.race([work, cut.promise]);
  } finally {
    clearTimeout(timer);
  }
}
