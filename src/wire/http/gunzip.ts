/**
 * Decompresses a body once, before anything reads it: so a compressed body is bounded and counted by what it becomes,
 * in every protocol.
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { BodyMeter } from '../../domain/body-limits.ts';
import type { DomainError } from '../../domain/errors.ts';
import { MAX_BODY_BYTES } from './byte-collector.ts';

/** The one compression that is supported. */
export const GZIP = 'gzip';

/** Bytes that one byte of DEFLATE can become: the longest match, 258 bytes, takes two bits. */
const MOST_RATIO = 1032;

const unzip = promisify(gunzip);

/** What a compressed body became. Nothing beyond the bound of a body is unpacked. */
export type Unpacked =
  | { readonly kind: 'plain'; readonly bytes: Uint8Array }
  | { readonly kind: 'too_large' | 'broken' }
  | { readonly kind: 'refused'; readonly fault: DomainError };

/** Decompresses; `meter` counts the bytes that compression had saved. */
export async function unpack(bytes: Uint8Array, meter: BodyMeter): Promise<Unpacked> {
  let plain: Uint8Array | undefined;
  let kind: 'too_large' | 'broken' = 'broken';
  try {
    plain = await unzip(bytes, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') kind = 'too_large';
  }
  // A body that is refused has been unpacked in part, and zlib does not say how far: the most that is possible counts.
  const became = plain?.length ?? Math.min(MAX_BODY_BYTES, MOST_RATIO * bytes.length);
  const fault = meter.count(Math.max(0, became - bytes.length));
  if (plain === undefined) return { kind };
  return fault === undefined ? { kind: 'plain', bytes: plain } : { kind: 'refused', fault };
}
