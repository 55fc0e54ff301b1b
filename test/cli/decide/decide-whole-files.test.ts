/** `umpire decide` over whole files: cut and gone on with, interrupted, watched, and larger than its memory. */
import { once } from 'node:events';
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import {
  asking,
  CHOICES,
  decide,
  fault,
  jsonLines,
  launch,
  newFile,
  record,
  records,
  start,
} from '../../support/decide-command.ts';
import { startScripted } from '../../support/listening.ts';
import { runUmpire } from '../../support/terminal.ts';

for (const format of ['json', 'csv'] as const) {
  test(`--resume goes on behind whole lines, wherever a ${format} file was cut`, async (t) => {
    const url = await start(t);
    const file = newFile(
      format === 'json'
        ? records(12)
        : `id,input,label\n${Array.from({ length: 12 }, (_, i) => `${i},"the ""${CHOICES[i % 3]}"", one\nof ${i}",${CHOICES[i % 3]}\n`).join('')}`,
    );
    const whole = newFile();
    t.is((await decide(url, [file, '--out', whole])).status, 0);
    const expected = readFileSync(whole, 'utf8');
    // Every place of the file is a place to cut it: these are of all kinds.
    for (let size = 0; size <= expected.length; size += 101) {
      const cut = newFile(expected);
      truncateSync(cut, size);
      const { status, err } = await decide(url, [file, '--out', cut, '--resume']);
      t.is(status, 0, `${size}: ${err}`);
      t.is(readFileSync(cut, 'utf8'), expected, String(size));
    }
    const again = await decide(url, [file, '--out', whole, '--resume']);
    t.is(again.err, '0 lines decided after 12 that were there\n');
    // Neither a file that is there nor that of other records is touched.
    t.regex((await decide(url, [file, '--out', whole])).err, /exists; --resume continues after/);
    const foreign = newFile('some notes\nof mine\n');
    for (const [records_, out, message] of [
      [file, foreign, /was not written for these records|line 1/],
      [newFile(readFileSync(file, 'utf8').replaceAll('one', 'two')), whole, /is not of this file's records/],
      [
        newFile(
          `${readFileSync(file, 'utf8')
            .split('\n')
            .slice(0, format === 'json' ? 3 : 5)
            .join('\n')}\n`,
        ),
        whole,
        /is not of this file's records/,
      ],
    ] as const) {
      const before = readFileSync(out, 'utf8');
      const { status, err } = await decide(url, [records_, '--out', out, '--resume']);
      t.is(status, 1);
      t.regex(err, message);
      t.is(readFileSync(out, 'utf8'), before);
    }
  });
}

test('--resume steps over lines with errors as well, and from standard input', async (t) => {
  const url = await start(t);
  const input = `{"input":""}\nnonsense\n${records(3)}[]\n`;
  const out = newFile();
  t.is((await decide(url, ['--out', out], { input })).status, 1);
  const expected = readFileSync(out, 'utf8');
  truncateSync(out, expected.length - 30);
  const { err } = await decide(url, ['--out', out, '--resume'], { input });
  t.is(err, 'umpire decide: 1 line decided after 5 that were there, 1 of them with an error\n');
  t.is(readFileSync(out, 'utf8'), expected);
});

test('Ctrl-C leaves whole lines and ends with 130; --resume makes the same file', async (t) => {
  const url = await start(t, { faults: [fault('delay=20', 1)] });
  const file = newFile(records(600));
  const out = newFile();
  const args = asking(url, file);
  const { child, said } = launch([...args, '--at-once', '8', '--out', out]);
  while (!existsSync(out) || readFileSync(out, 'utf8').split('\n').length < 20) await sleep(10);
  child.kill('SIGINT');
  const [code] = await once(child, 'close');
  t.is(code, 130);
  const lines = jsonLines(readFileSync(out, 'utf8')).length;
  t.true(lines >= 19 && lines < 600);
  t.is(said(), `umpire decide: interrupted; ${lines} lines decided, --resume continues after them\n`);
  const resumed = await runUmpire([...args, '--out', out, '--resume']);
  t.is(resumed.err, `${600 - lines} lines decided after ${lines} that were there\n`);
  t.deepEqual(
    jsonLines(readFileSync(out, 'utf8')).map(({ id }) => id),
    Array.from({ length: 600 }, (_, i) => i),
  );
});

test('Ctrl-C ends a command that waits for standard input, or for the service', async (t) => {
  const url = await start(t);
  const asked = Promise.withResolvers<void>();
  const silent = await startScripted(t, () => asked.resolve());
  for (const at of [url, silent]) {
    const { child } = launch(asking(at));
    child.stdin.write(records(1));
    if (at === url) await once(child.stdout, 'data');
    else await asked.promise;
    child.kill('SIGINT');
    const [code] = await once(child, 'close');
    t.is(code, 130);
  }
});

test('a reader that closes early ends it quietly', async (t) => {
  const url = await start(t);
  const { child, said } = launch(asking(url));
  // The input never ends: only the closed pipe can end the command.
  const endless = Readable.from(
    (function* () {
      for (let i = 0; ; i++) yield `${JSON.stringify(record(i))}\n`;
    })(),
  );
  child.stdin.on('error', () => {});
  endless.pipe(child.stdin);
  await once(child.stdout, 'data');
  child.stdout.destroy();
  const [code] = await once(child, 'exit');
  endless.destroy();
  t.deepEqual([code, said()], [0, '']);
});

test('a terminal sees how far it is, how fast and how long it takes still; a pipe does not', async (t) => {
  const url = await start(t, { faults: [fault('delay=15', 1)] });
  const shown: string[] = [];
  const file = newFile(records(300));
  await decide(url, [file, '--at-once', '4'], { status: (line) => shown.push(line) });
  t.true(shown.length >= 3);
  t.regex(shown.at(-2) ?? '', /^\[#+-*\] +\d+ % {2}\d+ lines, [\d.]+\/s(, \d+:\d\d left)?$/);
  t.is(shown.at(-1), '');
});

test('a file that is larger than the memory runs in flat memory', async (t) => {
  const url = await startScripted(t, async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const choice = CHOICES.find((each) => JSON.parse(Buffer.concat(pieces).toString()).input.includes(each));
    const output = { choice, confidence: 0.5, probabilities: {} };
    response.writeHead(200).end(JSON.stringify({ model: 'mock@r1', output }));
  });
  // 160 MiB of records through a process that may hold 128 MiB.
  const file = newFile();
  const filler = 'x'.repeat(64_000);
  const line = (i: number): string => `${JSON.stringify({ ...record(i), filler })}\n`;
  writeFileSync(file, '');
  for (let from = 0; from < 2500; from += 500)
    writeFileSync(file, Array.from({ length: 500 }, (_, i) => line(from + i)).join(''), { flag: 'a' });
  const out = newFile();
  const { child, said } = launch(asking(url, file, '--out', out), { NODE_OPTIONS: '--max-old-space-size=128' });
  const [code] = await once(child, 'exit');
  t.is(code, 0, said());
  t.is(said(), '2500 lines decided\n');
  let place = 0;
  for (const text of readFileSync(out, 'utf8').split('\n').slice(0, -1)) {
    const { id, choice } = JSON.parse(text);
    if (id !== place || choice !== CHOICES[place % 3]) t.fail(`line ${place}: ${id}, ${choice}`);
    place++;
  }
  t.is(place, 2500);
});
