/** `umpire review` on a real terminal, a pseudo-terminal of `script`: what it draws, and how it leaves the terminal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf } from '../../support/terminal.ts';

const UMPIRE = fileURLToPath(new URL('../../../bin/umpire', import.meta.url));
const [SECOND_SCREEN, FIRST_SCREEN] = ['\u001b[?1049h', '\u001b[?1049l'];

const record = { instruction: 'Which team?', choice: 'billing', probabilities: { billing: 0.6, returns: 0.4 } };
const decided = [0.9, 0.5, 0.6]
  .map((confidence, i) => `${JSON.stringify({ input: `text ${i}`, confidence, ...record })}\n`)
  .join('');

/** A review in a terminal of 80 columns and 24 rows, in a shell that says what the terminal was before and is after. */
async function review(t: ExecutionContext, content = decided) {
  const folder = temporaryFolder();
  const file = join(folder, 'decided.jsonl');
  writeFileSync(file, content);
  const script = [
    'stty cols 80 rows 24; stty -g > before; tty > tty',
    `sh -c 'echo $$ > pid; exec ${UMPIRE} review decided.jsonl'`,
    'echo $? > status; stty -g > after',
  ].join('\n');
  const child: ChildProcess = spawn('script', ['-qfec', script, '/dev/null'], { cwd: folder });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout?.on('data', (bytes: Buffer) => {
    output += bytes;
  });
  const of = (name: string): string => readFileSync(join(folder, name), 'utf8').trim();
  return {
    file,
    of,
    /** Types, and waits until the newest page has this. */
    async type(keys: string, expected: RegExp): Promise<string> {
      const from = output.length;
      child.stdin?.write(keys);
      const page = (): string => {
        const pages = output
          .slice(keys === '' ? 0 : from)
          .split('\u001b[H')
          .slice(1);
        const newest = pages.findLast((each) => each.includes('\u001b[J')) ?? '';
        return newest.slice(0, newest.indexOf('\u001b[J')).replaceAll('\u001b[K', '').replaceAll('\r\n', '\n');
      };
      for (const end = Date.now() + 20_000; !expected.test(page()); ) {
        if (Date.now() > end) throw new Error(`not shown: ${expected}\n${output}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return page();
    },
    send: (keys: string) => child.stdin?.write(keys),
    signal: (name: NodeJS.Signals) => process.kill(Number(of('pid')), name),
    resize: (columns: number, rows: number) =>
      once(spawn('stty', ['-F', of('tty'), 'cols', String(columns), 'rows', String(rows)]), 'close'),
    /** Waits for the end. The terminal must be as it was, whatever the status. */
    async ended(status: number): Promise<string> {
      await once(child, 'close');
      t.is(of('status'), String(status), output);
      t.is(of('after'), of('before'));
      t.is(output.split(SECOND_SCREEN).length, 2);
      const [, left = ''] = output.split(FIRST_SCREEN);
      return left;
    },
    labels: () =>
      existsSync(`${file}.reviewed.jsonl`)
        ? linesOf(readFileSync(`${file}.reviewed.jsonl`, 'utf8')).map((line) => JSON.parse(line).label)
        : [],
  };
}

test('a whole review: every key answers at once, a resize draws anew, the last answer ends it', async (t) => {
  const run = await review(t);
  t.is(
    await run.type('', /Enter as decided/),
    [
      '0 of 3 have a label, 0 skipped',
      'Which team?',
      '',
      'text 1',
      '',
      'Decided: billing 0.500',
      '',
      '1 billing 0.600   2 returns 0.400',
      '',
      'Enter as decided  / find  - skip  < undo  + note  > more text  . end',
    ].join('\n'),
  );
  await run.type('2', /^1 of 3 have a label/);
  await run.type('\u007f', /^0 of 3 have a label/);
  await run.type('/', /\n\/_$/);
  await run.type('retü\u0008\u007f', /\n\/re_$/);
  await run.type('\u001b', /Enter as decided/);
  await run.resize(40, 12);
  await run.type('', / <\nundo .* end$/);
  // An arrow and what is pasted are no answers.
  await run.type('\u001b[A\u001b[200~12\u001b[201~', /^0 of 3 have a label/);
  // In a note it is a part of that, whatever keys it has.
  await run.type('+see \u001b[200~2\r.\u001b[201~', /\n\+see 2 \._$/);
  await run.type('\u001b', /Enter as decided/);
  await run.type('\r', /^1 of 3 have a label/);
  await run.type('2', /^2 of 3 have a label/);
  run.send('1');
  const left = await run.ended(0);
  t.regex(left, /decided\.jsonl\.reviewed\.jsonl: 3 of 3 have a label, 0 skipped/);
  t.deepEqual(run.labels(), ['billing', 'returns', 'billing']);
});

test('the page of the docs is what a terminal shows of the sample', async (t) => {
  const docs = (name: string): string => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
  const run = await review(t, docs('learning/asked.jsonl'));
  const page = await run.type('', /Enter as decided/);
  t.true(docs('teaching.md').includes(`\`\`\`\n${page}\n\`\`\`\n`), page);
  run.send('.');
  await run.ended(0);
});

for (const [name, end, status] of [
  ['the key that ends it', { keys: '.' }, 0],
  ['Ctrl-D', { keys: '\u0004' }, 0],
  ['Ctrl-C', { keys: '\u0003' }, 130],
  ['SIGTERM', { signal: 'SIGTERM' }, 130],
  ['SIGINT from elsewhere', { signal: 'SIGINT' }, 130],
  ['SIGHUP', { signal: 'SIGHUP' }, 0],
] as const) {
  test(`the terminal is as it was after ${name}, and what was answered is kept`, async (t) => {
    const run = await review(t);
    await run.type('', /Enter as decided/);
    await run.type('2', /^1 of 3/);
    if ('signal' in end) run.signal(end.signal);
    else run.send(end.keys);
    t.regex(await run.ended(status), /1 of 3 have a label/);
    t.deepEqual(run.labels(), ['returns']);
  });
}
