/** Random identifiers: `dec_…` for decisions and `req_…` for requests, 128 bits each in base64url. */
import { randomFillSync } from 'node:crypto';

const BYTES = 16;
// One system call serves 256 identifiers: at thousands of requests a second, a call for each would cost more than the
// rest of a request's bookkeeping.
const POOL = Buffer.allocUnsafe(BYTES * 256);
let used = POOL.length;

/** A fresh identifier with the prefix. */
export function newId(prefix: 'dec_' | 'req_'): string {
  if (used === POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const id = prefix + POOL.toString('base64url', used, used + BYTES);
  used += BYTES;
  return id;
}
