/** Bodies that are made to cost a reader of JSON more than their size, each of about so many bytes. */

const filled = (size: number, unit: (index: number) => string, separator = ','): string => {
  const parts: string[] = [];
  for (let length = 0, index = 0; length < size; index += 1) {
    const part = unit(index);
    parts.push(part);
    length += part.length + separator.length;
  }
  return parts.join(separator);
};
const half = (size: number): number => Math.floor(size / 2);
/** All other fields, so that the hostile one is reached and read. */
const around = (field: string): string => `{"model":"m","instruction":"i",${field}}`;
const input = (value: string): string => around(`"input":${value},"choices":["a","b"]`);
const choices = (value: string): string => around(`"input":"x","choices":${value}`);

const texts: Readonly<Record<string, (size: number) => string>> = {
  'unknown properties': (size) => `{${filled(size, (index) => `"${index}":0`)}}`,
  'unknown properties with escapes': (size) => `{${filled(size, (index) => `"\\\\${index}":0`)}}`,
  'one property again and again': (size) => `{${filled(size, () => '"model":"m"')}}`,
  'one property again and again, with escapes': (size) => `{${filled(size, () => '"\\u006dodel":"m"')}}`,
  'nested lists': (size) => input('['.repeat(half(size)) + ']'.repeat(half(size))),
  'nested objects': (size) => input(`${'{"a":'.repeat(size / 6)}1${'}'.repeat(size / 6)}`),
  'lists in the choices': (size) => choices(`[${filled(size, () => '[]')}]`),
  'a long number': (size) => input('1'.repeat(size)),
  'a long fraction': (size) => input(`0.${'1'.repeat(size)}e-1`),
  'many numbers': (size) => choices(`[${filled(size, () => '1e9')}]`),
  'many empty choices': (size) => choices(`[${filled(size, () => '""')}]`),
  'many choices': (size) => choices(`[${filled(size, (index) => `"${index}"`)}]`),
  '300 long choices': (size) => choices(`[${filled(size, (index) => `"${index}${'x'.repeat(size / 300 - 8)}"`)}]`),
  'a long text': (size) => input(`"${'x'.repeat(size)}"`),
  'a long text of escapes': (size) => input(`"${'\\u0061'.repeat(size / 6)}"`),
  'a long text of quotes': (size) => input(`"${'\\"'.repeat(half(size))}"`),
  'a long text of backslashes': (size) => input(`"${'\\\\'.repeat(half(size))}"`),
  'a long text outside ASCII': (size) => input(`"${'ü'.repeat(half(size))}"`),
  'a long text of emoji': (size) => input(`"${'😀'.repeat(size / 4)}"`),
  'combining marks': (size) => input(`"a${'\u0315\u0300'.repeat(size / 4)}"`),
  'a long name': (size) => `{"${'n'.repeat(size)}":0}`,
  'a long name of escapes': (size) => `{"${'\\u006d'.repeat(size / 6)}":0}`,
  'white space': (size) => `${' '.repeat(half(size))}{"model":"m"${'\n'.repeat(half(size))}}`,
  'a text that does not end': (size) => `{"model":"${'x'.repeat(size)}`,
  'backslashes that do not end': (size) => `{"model":"${'\\'.repeat(size)}`,
};

/** By what they are made of. */
export const hostileBodies: Readonly<Record<string, (size: number) => Buffer>> = Object.fromEntries(
  Object.entries(texts).map(([what, make]) => [what, (size: number) => Buffer.from(make(size))]),
);

/** The same over protobuf: a message of a decision's fields. */
export const hostileMessages: Readonly<Record<string, (size: number) => Buffer>> = {
  'unknown fields': (size) => Buffer.alloc(size, Buffer.from([0x78, 0x01])),
  'unknown fields of many numbers': (size) => Buffer.alloc(size, Buffer.from([0x82, 0x06, 0x00, 0x8a, 0x06, 0x00])),
  'one field again and again': (size) => Buffer.alloc(size, Buffer.from([0x0a, 0x01, 0x6d])),
  'empty choices': (size) => Buffer.alloc(size, Buffer.from([0x22, 0x00])),
  'groups that nest': (size) => Buffer.alloc(size, Buffer.from([0x7b])),
  'long varints': (size) => Buffer.alloc(size, Buffer.from([0x78, ...new Array<number>(9).fill(0x80), 0x01])),
};

/** Milliseconds of CPU that work takes with a body of 64 KiB and with one of 1 MiB: the least of five rounds each. */
export function costs(make: (size: number) => Buffer, work: (body: Buffer) => void): readonly [number, number] {
  const time = (size: number): number => {
    const bytes = make(size);
    const rounds = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage();
      try {
        work(bytes);
      } catch {
        // A refusal is timed like any other outcome.
      }
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    });
    return Math.min(...rounds);
  };
  // The compiler optimises first.
  time(1 << 18);
  return [time(1 << 16), time(1 << 20)];
}
