/**
 * HTTP/2 frames written byte by byte (RFC 9113, 4.1), for what no client would send. Headers are literals without
 * indexing (RFC 7541, 6.2.2).
 */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  rst: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const;

export const FLAG = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

/** One frame; `length` may lie about the payload. */
export function frame(
  type: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
  flags = 0,
  length: number = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length & 0xffffff, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** Four bytes. */
export function word(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** A number with a prefix of seven bits (RFC 7541, 5.1), as lengths of texts have it; none here is Huffman-coded. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  const head: number[] = [];
  if (bytes.length < 127) {
    head.push(bytes.length);
  } else {
    head.push(127);
    let rest = bytes.length - 127;
    while (rest >= 128) {
      head.push((rest % 128) + 128);
      rest = Math.floor(rest / 128);
    }
    head.push(rest);
  }
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** A block of headers. */
export function block(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(headers.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** The headers that every request has. */
export function request(
  method: string,
  path: string,
  more: readonly (readonly [string, string])[] = [],
): readonly (readonly [string, string])[] {
  return [[':method', method], [':path', path], [':scheme', 'http'], [':authority', 'a'], ...more];
}

/** SETTINGS with these values by their identifiers. */
export function settings(values: Readonly<Record<number, number>> = {}): Buffer {
  const pairs = Object.entries(values).map(([id, value]) => {
    const pair = Buffer.alloc(6);
    pair.writeUInt16BE(Number(id), 0);
    pair.writeUInt32BE(value, 2);
    return pair;
  });
  return frame(TYPE.settings, 0, Buffer.concat(pairs));
}

/** HEADERS with their end; `flags` END_STREAM unless said otherwise. */
export function headers(
  stream: number,
  list: readonly (readonly [string, string])[],
  flags: number = FLAG.endStream,
): Buffer {
  return frame(TYPE.headers, stream, block(list), FLAG.endHeaders | flags);
}

export const rst = (stream: number, code: number): Buffer => frame(TYPE.rst, stream, word(code));
export const goaway = (last: number, code: number): Buffer =>
  frame(TYPE.goaway, 0, Buffer.concat([word(last), word(code)]));
export const windowUpdate = (stream: number, by: number): Buffer => frame(TYPE.window, stream, word(by));
