/** Records of JSON lines and CSV, in pieces of any size. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import test from 'ava';
import { csvLine } from '../../../src/cli/decide/csv.ts';
import { type Entry, readTextFile } from '../../../src/cli/decide/lines.ts';
import { createRecordReader, entriesIn, entriesOf } from '../../../src/cli/decide/records.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

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
  'semicolons, as Excel writes them in half of Europe': [
    '\ufeffinput;label\r\n"a; b";x\r\n"1,5 kg, net";"two\r\nlines"\r\n',
    [
      [2, { input: 'a; b', label: 'x' }],
      [3, { input: '1,5 kg, net', label: 'two\r\nlines' }],
    ],
  ],
  'rows without text, as a spreadsheet ends a table': [
    'input;label\r\n;\r\na;x\r\n;\r\n;\r\n',
    [[3, { input: 'a', label: 'x' }]],
  ],
  'columns that are empty, as Excel and LibreOffice keep them': [
    'input,label,,\r\na,x,,\r\nb,y,,z\r\n',
    [
      [2, { input: 'a', label: 'x', 'column 3': '', 'column 4': '' }],
      [3, { input: 'b', label: 'y', 'column 3': '', 'column 4': 'z' }],
    ],
  ],
  'the index of pandas, and what it quotes': [
    ',input,label\n0,"say ""hi"", then\ngo",x\n1,,\n',
    [
      [2, { '': '0', input: 'say "hi", then\ngo', label: 'x' }],
      [4, { '': '1', input: '', label: '' }],
    ],
  ],
  'a table of Google, whose last line has no end': [
    'input,label\r\n"two\nlines",x\r\n=1+1,y',
    [
      [2, { input: 'two\nlines', label: 'x' }],
      [4, { input: '=1+1', label: 'y' }],
    ],
  ],
  tabs: ['input\tlabel\na, b; c\tx\n', [[2, { input: 'a, b; c', label: 'x' }]]],
  'a first line that names the separator': ['sep=|\r\n"a, b"|c,d;e\r\nf|g\r\n', [[3, { 'a, b': 'f', 'c,d;e': 'g' }]]],
  'JSON objects over several lines': [
    '{\n  "input": "a {",\n  "more": {"b": [1]}\n}\n{\n  "input": "never closed",\n{ "input":\n"c" } { "input": "d" }\n',
    [
      [1, { input: 'a {', more: { b: [1] } }],
      [5, 'is an object that does not end'],
      [7, { input: 'c' }],
      [8, { input: 'd' }],
    ],
  ],
  'a list of JSON objects': [
    '\ufeff[\n  {"input": "a]"}, {"input": "b"},\n  {\n    "input": "c"\n  },\n  "no object"\n]\n',
    [
      [2, { input: 'a]' }],
      [2, { input: 'b' }],
      [3, { input: 'c' }],
      [6, 'is not a JSON object'],
    ],
  ],
  'a property that is given twice': [
    '{"input":"a","label":"x","label":"y"}\n{"input":"a","inner":{"input":"b"}}\n{"in\\u0070ut":"a","input":"b"}\n',
    [
      [1, 'has "label" twice'],
      [2, { input: 'a', inner: { input: 'b' } }],
      [3, 'has "input" twice'],
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
    [2, 'is not UTF-8: save it in UTF-8, a table as CSV'],
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

const utf16 = (text: string, bigEndian: boolean): Buffer => {
  const bytes = Buffer.from(`\ufeff${text}`, 'utf16le');
  return bigEndian ? bytes.swap16() : bytes;
};

const WRITTEN: Readonly<Record<string, (text: string) => Buffer>> = {
  'UTF-8 with a mark': (text) => Buffer.from(`\ufeff${text}`),
  'UTF-16, little end first': (text) => utf16(text, false),
  'UTF-16, big end first': (text) => utf16(text, true),
  'carriage returns alone': (text) => Buffer.from(text.replaceAll('\n', '\r')),
  'carriage returns and line feeds': (text) => Buffer.from(text.replaceAll('\n', '\r\n')),
};

for (const [name, write] of Object.entries(WRITTEN)) {
  test(`${name}: the same records`, async (t) => {
    const bytes = write('input;label\n"Größe; 5 €";ja\nπ;nein\n');
    for (const size of [40, 1000]) {
      t.deepEqual(shown(await inPieces(bytes, size)), [
        [2, { input: 'Größe; 5 €', label: 'ja' }],
        [3, { input: 'π', label: 'nein' }],
      ]);
    }
  });
}

test('carriage returns end the lines of a file whose cells have line feeds', async (t) => {
  const bytes = Buffer.from('input,label\r"two\nlines",x\rb,y\r');
  t.deepEqual(shown(await inPieces(bytes, 1000)), [
    [2, { input: 'two\nlines', label: 'x' }],
    [4, { input: 'b', label: 'y' }],
  ]);
});

test('Windows-1252 and workbooks are named as what they seem to be, with the line and the command that converts it', async (t) => {
  const bytes = Buffer.from('input,label\nplain,x\nGr\xf6\xdfe passt nicht,y\n\xfcber,z\n', 'latin1');
  const [, row] = await inPieces(bytes, 1000);
  t.true(row !== undefined && 'problem' in row.read);
  const file = join(temporaryFolder(), 'examples.csv');
  writeFileSync(file, Buffer.from('PK\x03\x04\n\x08\x00'));
  await t.throwsAsync(readTextFile(file), { message: /^an \.xlsx file is a zip archive: save the table as CSV/ });
  writeFileSync(file, Buffer.from('input,label\nplain,x\ndas Ger\xe4t,y\n', 'latin1'));
  await t.throwsAsync(readTextFile(file), {
    message: /examples\.csv, line 3: is not UTF-8; this looks like Latin-1 or Windows-1252: iconv -f WINDOWS-1252/,
  });
});
