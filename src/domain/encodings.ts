/** What bytes that are not UTF-8 seem to be, for the message to whoever sent them: nothing where that is uncertain. */

/** Bytes that are looked at. */
const LOOKED_AT = 4096;

/** `; this looks like …`, or nothing. */
export function seemingly(body: Uint8Array): string {
  const [first = 0, second = 0] = body;
  const from = body.findIndex((byte) => byte >= 0x80);
  const name =
    first === 0x1f && second === 0x8b
      ? 'gzip: unpack it, or send it with Content-Encoding: gzip'
      : // A mark, or the other half of an ASCII letter.
        first + second === 0xff + 0xfe || first === 0 || second === 0
        ? 'UTF-16'
        : encodingOf(body.subarray(from, from + LOOKED_AT));
  return name === undefined ? '' : `; this looks like ${name}`;
}

/** The encoding of bytes of which the first is not ASCII. */
function encodingOf(bytes: Uint8Array): string | undefined {
  const high = (at: number): boolean => (bytes[at] ?? 0) >= 0x80;
  const places = [...bytes.keys()].filter(high);
  // Letters with accents stand among others; those of an encoding of two bytes stand together.
  if (!places.some((at) => high(at - 1) || high(at + 1))) return 'Latin-1 or Windows-1252';
  const lost = new TextDecoder().decode(bytes).split('\ufffd').length - 1;
  try {
    // The last letter may be cut off.
    new TextDecoder('gb18030', { fatal: true }).decode(bytes, { stream: true });
    return lost > places.length / 2 ? 'GBK or another encoding of East Asia' : undefined;
  } catch {
    return undefined;
  }
}
