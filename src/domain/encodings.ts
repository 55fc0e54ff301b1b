/** What bytes that are not UTF-8 seem to be, for the message to whoever sent them: said only where that is certain enough. */

/** Bytes that are looked at. */
const LOOKED_AT = 64 * 1024;

const gb18030 = new TextDecoder('gb18030', { fatal: true });

/** `; this looks like …`, or nothing. */
export function seemingly(bytes: Uint8Array): string {
  const name = encodingOf(bytes.subarray(0, LOOKED_AT));
  return name === undefined ? '' : `; this looks like ${name}`;
}

function encodingOf(bytes: Uint8Array): string | undefined {
  const [first = 0, second = 0] = bytes;
  if (first === 0x1f && second === 0x8b) return 'gzip, which Content-Encoding must say';
  // A mark, or the opening brace of an object with its other byte.
  if ((first === 0xff && second === 0xfe) || (first === 0x7b && second === 0)) return 'UTF-16';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second === 0x7b)) return 'UTF-16';
  let high = 0;
  let alone = 0;
  for (const [at, byte] of bytes.entries()) {
    if (byte < 0x80) continue;
    high += 1;
    if ((bytes[at - 1] ?? 0) < 0x80 && (bytes[at + 1] ?? 0) < 0x80) alone += 1;
  }
  // Letters with accents stand among others; those of an encoding of two bytes stand together.
  if (alone === high) return 'Latin-1 or Windows-1252';
  if (alone > high / 10) return undefined;
  try {
    gb18030.decode(bytes, { stream: true });
    return 'GBK or another encoding of East Asia';
  } catch {
    return undefined;
  }
}
