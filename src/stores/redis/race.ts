/**
 * One call against the clock. A command that was written cannot be taken back from the client, so the caller
 * stops waiting instead.
 */

/** What a call that took too long is rejected with: always this same object. */
export const TOO_LATE = new Error('Redis did not answer in time');

/** A timer that is later than this shows that this process was busy, not Redis. */
const BUSY_MS = 20;
/** Then answers that may be waiting to be read have so much longer. */
const GRACE_MS = 50;

/** The work's outcome, or a rejection with `TOO_LATE` once the time is up; what comes after that is ignored. */
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
