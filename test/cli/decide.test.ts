/** `umpire decide` against the whole service on a real socket, with an engine of words and faults by chance. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { entriesOf, type Fields } from '../../src/cli/records.ts';
import { mintKey } from '../../src/domain/keys.ts';
import { createLogger } from '../../src/logger.ts';
import { type MockOptions, startMock } from '../../src/mock/start-mock.ts';
import { faultOf } from '../support/fault-of.ts';
import { newUserEnv } from '../support/new-user.ts';
import { runUmpire } from '../support/terminal.ts';

const launcher = fileURLToPath(new URL('../../bin/umpire', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'umpire-decide-'));
test.after.always(() => rmSync(folder, { recursive: true, force: true }));
const key = mintKey();
const choices = ['red', 'green', 'blue'];
const choicesFile = join(folder, 'choices.txt');
writeFileSync(choicesFile, `${choices.join('\n')}\n`);

let files = 0;
const newFile = (content?: string): string => {
  const file = join(folder, `file-${files++}`);
  if (content !== undefined) writeFileSync(file, content);
  return file;
};

async function start(t: ExecutionContext, options: Partial<MockOptions> = {}) {
  const mock = await startMock({
    env: { PORT: '0' },
    models: [{ id: 'mock', revision: 'r1', status: 'ready' }],
    limits: { inputTokens: 3000, candidateTokens: 8, choices: 30 },
    keys: { acme: key },
    faults: [],
    seed: 1,
    logger: createLogger('silent', { write: () => {} }),
    ...options,
  });
  t.teardown(() => mock.stop());
  return mock.url;
}

const fault = (spec: string, rate: number) => ({ spec: faultOf(spec), rate });
const record = (i: number) => ({ id: i, input: `the ${choices[i % 3]} one ${i}`, label: choices[i % 3] });
const records = (count: number): string =>
  Array.from({ length: count }, (_, i) => `${JSON.stringify(record(i))}\n`).join('');
const jsonLines = (text: string): readonly Fields[] => {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line is not whole');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
};
const decide = (url: string, args: readonly string[], terminal: Parameters<typeof runUmpire>[1] = {}) =>
  runUmpire(
    ['decide', '--url', url, '--model', 'mock', '--choices', choicesFile, '--instruction', 'which colour', ...args],
    terminal,
  );

test('JSON lines: fields stay, answers stand behind them in order, an error stands in its line', async (t) => {
  const url = await start(t);
  const file = newFile(
    [
      JSON.stringify(record(0)),
      'nonsense',
      JSON.stringify({ input: '' }),
      JSON.stringify({ input: 'a blue one', instruction: 'own words' }),
      JSON.stringify({ input: 'word '.repeat(4000) }),
      JSON.stringify({ input: 'red', choice: 'mine' }),
      '{"input":"\\ud800"}',
      JSON.stringify({ input: 7 }),
      JSON.stringify(record(1)),
      '',
    ].join('\n'),
  );
  const { status, out, err } = await decide(url, [file, '--probabilities']);
  t.is(status, 1);
  t.is(err, 'umpire decide: 9 lines decided, 6 of them with an error\n');
  const lines = jsonLines(out);
  t.like(lines[0], { ...record(0), choice: 'red', model: 'mock@r1' });
  t.deepEqual(Object.keys(lines[0] ?? {}), ['id', 'input', 'label', 'choice', 'confidence', 'probabilities', 'model']);
  t.deepEqual(Object.keys(lines[0]?.probabilities as object).toSorted(), choices.toSorted());
  t.like(lines[0]?.probabilities, { red: lines[0]?.confidence });
  t.like(lines[3], { instruction: 'own words', choice: 'blue' });
  t.like(lines[8], { ...record(1), choice: 'green' });
  const errors = lines.map(({ error }) => error as { code: string; message: string; param: string } | undefined);
  t.deepEqual(
    errors.map((error) => error?.code),
    [
      undefined,
      'unreadable_line',
      'missing_field',
      undefined,
      'input_tokens_exceeded',
      'unreadable_line',
      'invalid_value',
      'missing_field',
      undefined,
    ],
  );
  t.deepEqual(lines[1], {
    line: 2,
    error: { code: 'unreadable_line', message: 'line 2: is not a JSON object', param: null },
  });
  t.is(errors[4]?.param, 'input');
});

test('CSV in and out: quotes, columns and order stay; one form becomes the other', async (t) => {
  const url = await start(t);
  const csv = 'id,input,note\n1,"a ""red"", one","two\nlines"\n2,,\n3,"open,x\n4,blue, padded \n';
  const { status, out } = await decide(url, [newFile(csv)]);
  t.is(status, 1);
  t.is(out.split('\n')[0], 'id,input,note,choice,confidence,model,learned,error');
  const rows = entriesOf(out).map(({ fields }) => fields as Fields);
  t.like(rows[0], { id: '1', input: 'a "red", one', note: 'two\nlines', choice: 'red', model: 'mock@r1', error: '' });
  t.like(rows[1], { id: '2', choice: '', error: 'missing_field: input must be a text that is not empty' });
  t.like(rows[2], { id: '', error: 'unreadable_line: line 5: has a quote that is not closed' });
  t.like(rows[3], { id: '4', note: ' padded ', choice: 'blue' });

  const asJson = await decide(url, ['--format', 'json'], { input: 'input\nred\n' });
  t.like(jsonLines(asJson.out)[0], { input: 'red', choice: 'red' });
  t.is(asJson.err, '1 lines decided\n');
  const asCsv = await decide(url, ['--format', 'csv'], {
    input: `{"input":"red","n":[1,2]}\n{"input":"blue","more":true}\n`,
  });
  t.is(asCsv.out.split('\n')[0], 'input,n,choice,confidence,model,learned,error');
  t.regex(asCsv.out, /^red,"\[1,2\]",red,0\.\d+,mock@r1,,$/m);
  t.regex(asCsv.err, /^1 records have fields that the first one does not have: the CSV is without them\n/);

  for (const [header, message] of [
    ['text,label', /the header has no column 'input'/],
    ['input,choice', /the header has a column 'choice', which the answers add/],
    ['input,a,a', /line 1: names the column "a" twice/],
  ] as const) {
    const refused = await decide(url, [], { input: `${header}\n1,2,3\n` });
    t.is(refused.status, 1);
    t.regex(refused.err, message);
    t.is(refused.out, '');
  }
  const none = await runUmpire(['decide', '--url', url, '--model', 'mock', '--choices', choicesFile], {
    input: 'input\nred\n',
  });
  t.regex(none.err, /no column 'instruction'; --instruction TEXT is for records that have none/);
  t.deepEqual(await decide(url, []), { status: 0, out: '', err: '0 lines decided\n' });
});

test('a service that limits and fails gets fewer requests, and every line its answer in order', async (t) => {
  const url = await start(t, {
    env: { PORT: '0', UMPIRE_RATE_KEY: '300/s, burst 40', UMPIRE_CONCURRENCY_KEY: '6' },
    faults: [
      fault('503; retry-after=none', 0.03),
      fault('429; retry-after=1', 0.005),
      fault('cut=answer', 0.02),
      fault('cut=body', 0.02),
      fault('500', 0.02),
      fault('delay=40', 0.1),
    ],
  });
  const count = 400;
  const { status, out, err } = await decide(url, ['--key', key], { input: records(count) });
  t.is(status, 0, err);
  const lines = jsonLines(out);
  t.deepEqual(
    lines.map(({ id, choice, label, error }) => [id, choice, label, error]),
    Array.from({ length: count }, (_, i) => [i, choices[i % 3], choices[i % 3], undefined]),
  );
  t.false((out + err).includes(key.slice(9)));
});

/** A server that answers by a function, for what the service itself never does. */
async function scripted(t: ExecutionContext, answer: Parameters<typeof createServer>[1]): Promise<[string, Server]> {
  const server = createServer(answer as never);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return [`http://127.0.0.1:${(server.address() as AddressInfo).port}`, server];
}

const decision = JSON.stringify({
  model: 'mock@r1',
  output: { choice: 'red', confidence: 0.5, probabilities: { red: 0.5, blue: 0.5 } },
});

test('requests are few at first, more while they are answered; Retry-After is waited for', async (t) => {
  let underWay = 0;
  let answered = 0;
  let refusedAt: number | undefined;
  const peaks: number[] = [];
  const arrivals: number[] = [];
  const connections = new Set<unknown>();
  const [url] = await scripted(t, async (request, response) => {
    connections.add(request.socket);
    arrivals.push(performance.now());
    peaks.push(++underWay);
    request.resume();
    // Longer than a busy machine takes to send the next.
    await sleep(60);
    underWay--;
    if (answered === 150 && refusedAt === undefined) {
      refusedAt = performance.now();
      response.writeHead(429, { 'retry-after': '1' });
      response.end(
        '{"error":{"code":"rate_limit_exceeded","message":"slowly","type":"rate_limit_error","param":null}}',
      );
      return;
    }
    answered++;
    response.writeHead(200, { 'content-type': 'application/json' }).end(decision);
  });
  const { status, out } = await decide(url, ['--at-once', '32'], { input: records(400) });
  t.is(status, 0);
  t.is(jsonLines(out).length, 400);
  t.is(arrivals.length, 401);
  t.true(Math.max(...peaks.slice(0, 3)) <= 3, String(peaks.slice(0, 3)));
  t.true(Math.max(...peaks) <= 32 && Math.max(...peaks.slice(0, 150)) >= 16, String(Math.max(...peaks)));
  // In the time that was asked for nothing comes but what was on its way.
  const asked = arrivals.filter((at) => at > (refusedAt ?? 0) && at < (refusedAt ?? 0) + 900);
  t.true(asked.length <= 32, String(asked.length));
  // Connections are kept.
  t.true(connections.size <= 100, String(connections.size));
});

test('what all texts would get ends the run, and the file is as it was', async (t) => {
  const url = await start(t);
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [['--url', url, '--model', 'none', '--choices', choicesFile], /unknown_model: .*; 0 lines were decided/],
    [['--url', url, '--model', 'mock', '--catalog', 'none'], /authentication_required: /],
    [['--url', url, '--model', 'mock', '--catalog', 'none', '--key', key], /unknown_catalog: /],
    [['--url', url, '--model', 'mock', '--catalog', 'none', '--key', mintKey()], /authentication_required: /],
    [['--url', `${url}/below`, '--model', 'mock', '--choices', choicesFile], /route_not_found: /],
    [['--url', 'http://127.0.0.1:9', '--model', 'mock', '--choices', choicesFile], /: (nobody answers|no_answer)/],
  ];
  for (const [args, message] of cases) {
    const ran = await runUmpire(['decide', ...args, '--instruction', 'x', '--patience', '1s'], { input: records(5) });
    t.is(ran.status, 1, String(message));
    t.regex(ran.err, message);
    t.is(ran.out, '');
  }
  for (const args of [
    [],
    ['--url', 'ftp://a', '--model', 'm', '--catalog', 'c'],
    ['--url', 'http://a:b@c', '--model', 'm', '--catalog', 'c'],
    ['--url', url, '--model', 'm'],
    ['--url', url, '--model', 'm', '--catalog', 'c', '--choices', choicesFile],
    ['--url', url, '--model', 'm', '--catalog', 'c', '--resume'],
    ['--url', url, '--model', 'm', '--catalog', 'c', '--at-once', '0'],
    ['--url', url, '--model', 'm', '--catalog', 'c', '--format', 'xml'],
    ['--url', url, '--model', 'm', '--catalog', 'c', '--key', 'not a\nkey'],
  ]) {
    const ran = await runUmpire(['decide', ...args]);
    t.is(ran.status, 2, args.join(' '));
    t.false(ran.err.includes('not a\nkey'));
  }
  const [html] = await scripted(t, (_, response) => response.end('<h1>Hello</h1>'));
  t.regex((await decide(html, [], { input: records(1) })).err, /what answers there is not Umpire/);
});

test('a service that goes away for longer than the patience ends the run; one text alone has its error', async (t) => {
  let seen = 0;
  const [url] = await scripted(t, async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (body.includes('poison')) {
      seen++;
      request.socket.destroy();
    } else response.writeHead(200).end(decision);
  });
  const input = `${records(2)}{"input":"poison"}\n${records(400)}`;
  const { status, out } = await decide(url, [], { input });
  t.is(status, 1);
  const lines = jsonLines(out);
  t.is(lines.length, 403);
  t.like(lines[2]?.error, { code: 'no_answer' });
  t.deepEqual(
    lines.filter(({ error }) => error !== undefined).map(({ input }) => input),
    ['poison'],
  );
  t.true(seen >= 6);
  const [away] = await scripted(t, (_, response) => response.writeHead(503).end('no'));
  const gone = await decide(away, ['--patience', '1s'], { input: records(3) });
  t.is(gone.status, 1);
  t.regex(gone.err, /no text got an answer for 1 seconds: http_503: answered 503; 0 lines were decided/);
});

test('a key comes from the environment or a file as well, and learned digests are written', async (t) => {
  let authorization: string | undefined;
  const [url] = await scripted(t, (request, response) => {
    authorization = request.headers.authorization;
    response.writeHead(200, { 'x-umpire-learned': '0123456789abcdef' }).end(decision);
  });
  const { out } = await decide(url, [], { input: records(1), env: { UMPIRE_KEY: key } });
  t.is(authorization, `Bearer ${key}`);
  t.is(jsonLines(out)[0]?.learned, '0123456789abcdef');
  const other = mintKey();
  await decide(url, ['--key-file', newFile(`${other}\n`)], { input: records(1), env: { UMPIRE_KEY: key } });
  t.is(authorization, `Bearer ${other}`);
  await decide(url, [], { input: records(1) });
  t.is(authorization, undefined);
});

for (const format of ['json', 'csv'] as const) {
  test(`--resume goes on behind whole lines, wherever a ${format} file was cut`, async (t) => {
    const url = await start(t);
    const file = newFile(
      format === 'json'
        ? records(12)
        : `id,input,label\n${Array.from({ length: 12 }, (_, i) => `${i},"the ""${choices[i % 3]}"", one\nof ${i}",${choices[i % 3]}\n`).join('')}`,
    );
    const whole = newFile();
    t.is((await decide(url, [file, '--out', whole])).status, 0);
    const expected = readFileSync(whole, 'utf8');
    // Every other place of the file is a place to cut it.
    for (let size = 0; size <= expected.length; size += 37) {
      const cut = newFile(expected);
      truncateSync(cut, size);
      const { status, err } = await decide(url, [file, '--out', cut, '--resume']);
      t.is(status, 0, `${size}: ${err}`);
      t.is(readFileSync(cut, 'utf8'), expected, String(size));
    }
    const again = await decide(url, [file, '--out', whole, '--resume']);
    t.is(again.err, '0 lines decided behind 12 that were there\n');
    // Neither a file that is there nor that of other records is touched.
    t.regex((await decide(url, [file, '--out', whole])).err, /exists; --resume goes on/);
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
  t.is(err, 'umpire decide: 1 lines decided behind 5 that were there, 1 of them with an error\n');
  t.is(readFileSync(out, 'utf8'), expected);
});

test('Ctrl-C leaves whole lines and ends with 130; --resume makes the same file', async (t) => {
  const url = await start(t, { faults: [fault('delay=20', 1)] });
  const file = newFile(records(600));
  const out = newFile();
  const args = ['decide', '--url', url, '--model', 'mock', '--choices', choicesFile, '--instruction', 'which', file];
  const child = spawn(launcher, [...args, '--at-once', '8', '--out', out], { env: newUserEnv(), stdio: 'pipe' });
  let err = '';
  child.stderr.on('data', (text) => {
    err += text;
  });
  while (!existsSync(out) || readFileSync(out, 'utf8').split('\n').length < 20) await sleep(10);
  child.kill('SIGINT');
  const [code] = await once(child, 'close');
  t.is(code, 130);
  const lines = jsonLines(readFileSync(out, 'utf8')).length;
  t.true(lines >= 19 && lines < 600);
  t.is(err, `umpire decide: interrupted; ${lines} lines were decided, --resume goes on behind them\n`);
  const resumed = await runUmpire([...args, '--out', out, '--resume']);
  t.is(resumed.err, `${600 - lines} lines decided behind ${lines} that were there\n`);
  t.deepEqual(
    jsonLines(readFileSync(out, 'utf8')).map(({ id }) => id),
    Array.from({ length: 600 }, (_, i) => i),
  );
});

test('Ctrl-C ends a command that waits for standard input, or for the service', async (t) => {
  const url = await start(t);
  const asked = Promise.withResolvers<void>();
  const [silent] = await scripted(t, () => asked.resolve());
  for (const at of [url, silent]) {
    const args = ['decide', '--url', at, '--model', 'mock', '--choices', choicesFile, '--instruction', 'which'];
    const child = spawn(launcher, args, { env: newUserEnv(), stdio: 'pipe' });
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
  const args = ['decide', '--url', url, '--model', 'mock', '--choices', choicesFile, '--instruction', 'which'];
  const child = spawn(launcher, args, { env: newUserEnv(), stdio: 'pipe' });
  let err = '';
  child.stderr.on('data', (text) => {
    err += text;
  });
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
  t.deepEqual([code, err], [0, '']);
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

test('10,000 lines run in flat memory', async (t) => {
  const [url] = await scripted(t, async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const choice = choices.find((each) => JSON.parse(Buffer.concat(pieces).toString()).input.includes(each));
    const output = { choice, confidence: 0.5, probabilities: {} };
    response.writeHead(200).end(JSON.stringify({ model: 'mock@r1', output }));
  });
  // 160 MiB of records through a process that may hold 128 MiB.
  const file = newFile();
  const filler = 'x'.repeat(16_000);
  const line = (i: number): string => `${JSON.stringify({ ...record(i), filler })}\n`;
  writeFileSync(file, '');
  for (let from = 0; from < 10_000; from += 1000)
    writeFileSync(file, Array.from({ length: 1000 }, (_, i) => line(from + i)).join(''), { flag: 'a' });
  const out = newFile();
  const args = ['decide', '--url', url, '--model', 'mock', '--choices', choicesFile, '--instruction', 'which', file];
  const env = newUserEnv({ NODE_OPTIONS: '--max-old-space-size=128' });
  const child = spawn(launcher, [...args, '--out', out], { env, stdio: 'pipe' });
  let err = '';
  child.stderr.on('data', (text) => {
    err += text;
  });
  const [code] = await once(child, 'exit');
  t.is(code, 0, err);
  t.is(err, '10000 lines decided\n');
  let place = 0;
  for (const text of readFileSync(out, 'utf8').split('\n').slice(0, -1)) {
    const { id, choice } = JSON.parse(text);
    if (id !== place || choice !== choices[place % 3]) t.fail(`line ${place}: ${id}, ${choice}`);
    place++;
  }
  t.is(place, 10_000);
});
