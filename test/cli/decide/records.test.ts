/** Records of JSON lines and CSV, in pieces of any size. */
import { Readable } from 'node:stream';
import test from 'ava';
import { createRecordReader, csvLine, type Entry, entriesIn, entriesOf } from '../../../src/cli/decide/records.ts';

const shown = (entries: readonly Entry[]) =>
  entries.map(({ line, read }) => [line, 'value' in read ? read.value : read.problem]);

async function inPieces(text: string | Buffer, size: number): Promise<readonly Entry[]> {
  const bytes = Buffer.from(text as string);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );
  const entries: Entry[] = [];
  for await (const entry of entriesIn(Readable.from(pieces), createRecordReader())) entries.push(entry);
  return entries;
}

const FILES: Readonly<Record<string, readonly [text: string, entries: readonly unknown[]]>> = {
  'JSON lines': [
    '\n{"input":"a"}\r\n\nnonsense\n[1]\n{"input":"ü\\n"}',
    [
      [2, { input: 'a' }],
      [4, 'is not a JSON object'],
      [5, 'is not a JSON object'],
      [6, { input: 'ü\n' }],
    ],
  ],
  'CSV with quotes, commas and line ends in cells': [
    '\ufeffinput, label \r\n"a ""b"", c",x\r\n\r\n"two\r\nlines",\n5" pipe,y\n',
    [
      [2, { input: 'a "b", c', label: 'x' }],
      [4, { input: 'two\r\nlines', label: '' }],
      [6, { input: '5" pipe', label: 'y' }],
    ],
  ],
  'a broken row does not take those behind it along': [
    'input,label\n"never closed,x\n"a",y\nb,z\n"c" d,z\ne\n"f",z\n"open,z\ng,h',
    [
      [2, 'has text after a closing quote'],
      [3, { input: 'a', label: 'y' }],
      [4, { input: 'b', label: 'z' }],
      [5, 'has text after a closing quote'],
      [6, 'has 1 columns, the header has 2'],
      [7, { input: 'f', label: 'z' }],
      [8, 'has a quote that is not closed'],
      [9, { input: 'g', label: 'h' }],
    ],
  ],
  'a header that names a column twice': ['a,b,a\n1,2,3\n', [[1, 'names the column "a" twice']]],
};

for (const [name, [text, entries]] of Object.entries(FILES)) {
  test(`${name}: the same as a whole and in pieces`, async (t) => {
    t.deepEqual(shown(entriesOf(text)), entries as never);
    for (const size of [1, 2, 7, 1000]) t.deepEqual(shown(await inPieces(text, size)), entries as never, `${size}`);
  });
}

test('where a record ends in bytes, and whether it is whole', async (t) => {
  const text = '{"input":"ü"}\n{"input":"b"}\n{"inp';
  const ends = (await inPieces(text, 3)).map(({ end, whole }) => [end, whole]);
  t.deepEqual(ends, [
    [15, true],
    [29, true],
    [34, false],
  ]);
});

test('what is no UTF-8 or far too long is a record that says so', async (t) => {
  const text = Buffer.concat([
    Buffer.from('{"input":"a"}\n{"input":"'),
    Buffer.from([0xff, 0xfe]),
    Buffer.from('"}\n{"input":"'),
    Buffer.alloc(9_000_000, 'x'),
    Buffer.from('"}\n{"input":"b"}\n'),
  ]);
  t.deepEqual(shown(await inPieces(text, 65_536)), [
    [1, { input: 'a' }],
    [2, 'is not UTF-8'],
    [3, 'is longer than 8388608 bytes'],
    [4, { input: 'b' }],
  ]);
});

test('a row that was written is read back', (t) => {
  const cells = ['a', 'b,c', '"quoted"', 'two\nlines', ' space ', '', 'c\r', '="1"'];
  const names = cells.map((_, place) => `c${place}`);
  const [entry] = entriesOf(csvLine(names) + csvLine(cells));
  t.deepEqual(entry !== undefined && 'value' in entry.read ? Object.values(entry.read.value) : undefined, cells);
});
