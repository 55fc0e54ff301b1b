/**
 * `umpire decide` and `umpire ask` against the whole service on a real socket, with an engine of words and faults by
 * chance: records in, answers out.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import type { Fields } from '../../../src/cli/decide/lines.ts';
import { entriesOf } from '../../../src/cli/decide/records.ts';
import { mintKey } from '../../../src/domain/keys.ts';
import {
  asking,
  CHOICES,
  choicesFile,
  decide,
  fault,
  jsonLines,
  key,
  newFile,
  record,
  records,
  start,
} from '../../support/decide-command.ts';
import { startScripted } from '../../support/listening.ts';
import { freePort } from '../../support/redis.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

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
  t.deepEqual(Object.keys(lines[0]?.probabilities as object).toSorted(), CHOICES.toSorted());
  t.like(lines[0]?.probabilities, { red: lines[0]?.confidence });
  t.like(lines[3], { instruction: 'own words', choice: 'blue' });
  t.like(lines[8], { ...record(1), choice: 'green' });
  const errors = lines.map(({ error }) => error as { code: string; message: string; param: string } | undefined);
  const codes = errors.map((error) => error?.code ?? '-').join(' ');
  t.is(codes, '- unreadable_line missing_field - input_tokens_exceeded unreadable_line invalid_value missing_field -');
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
  const rows = entriesOf(out).flatMap(({ read }): readonly Fields[] => ('value' in read ? [read.value] : []));
  t.like(rows[0], { id: '1', input: 'a "red", one', note: 'two\nlines', choice: 'red', model: 'mock@r1', error: '' });
  t.like(rows[1], { id: '2', choice: '', error: 'missing_field: input must be a text that is not empty' });
  t.like(rows[2], { id: '', error: 'unreadable_line: line 5: has a quote that is not closed' });
  t.like(rows[3], { id: '4', note: ' padded ', choice: 'blue' });

  const asJson = await decide(url, ['--format', 'json'], { input: 'input\nred\n' });
  t.like(jsonLines(asJson.out)[0], { input: 'red', choice: 'red' });
  t.is(asJson.err, '1 line decided\n');
  const asCsv = await decide(url, ['--format', 'csv'], {
    input: `{"input":"red","n":[1,2]}\n{"input":"blue","more":true}\n`,
  });
  t.is(asCsv.out.split('\n')[0], 'input,n,choice,confidence,model,learned,error');
  t.regex(asCsv.out, /^red,"\[1,2\]",red,0\.\d+,mock@r1,,$/m);
  t.regex(asCsv.err, /^1 record with fields that the first one does not have: the CSV is without them\n/);

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
  const none = await runUmpire(asking(url).slice(0, -2), { input: 'input\nred\n' });
  t.regex(none.err, /no column 'instruction'; it has 'input': .*--instruction TEXT is for records that have none/);
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
    Array.from({ length: count }, (_, i) => [i, CHOICES[i % 3], CHOICES[i % 3], undefined]),
  );
  t.false((out + err).includes(key.slice(9)));
});

const decision = JSON.stringify({
  model: 'mock@r1',
  output: { choice: 'red', confidence: 0.5, probabilities: { red: 0.5, blue: 0.5 } },
});

test.serial('requests are few at first, more while they are answered; Retry-After is waited for', async (t) => {
  let underWay = 0;
  let answered = 0;
  let refusedAt: number | undefined;
  const peaks: number[] = [];
  const arrivals: number[] = [];
  const connections = new Set<unknown>();
  const url = await startScripted(t, async (request, response) => {
    connections.add(request.socket);
    arrivals.push(performance.now());
    peaks.push(++underWay);
    request.resume();
    // Longer than a busy machine takes to send the next.
    await sleep(60);
    underWay--;
    if (answered === 150 && refusedAt === undefined) {
      refusedAt = performance.now();
      response.writeHead(429, { 'retry-after': '1' }).end();
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
    [['--url', url, '--model', 'none', '--choices', choicesFile], /unknown_model: .*; 0 lines decided/],
    [['--url', url, '--model', 'mock', '--catalog', 'none'], /authentication_required: /],
    [['--url', url, '--model', 'mock', '--catalog', 'none', '--key', key], /unknown_catalog: /],
    [['--url', url, '--model', 'mock', '--catalog', 'none', '--key', mintKey()], /authentication_required: /],
    [['--url', `${url}/below`, '--model', 'mock', '--choices', choicesFile], /route_not_found: /],
    [
      ['--url', 'http://127.0.0.1:9', '--model', 'mock', '--choices', choicesFile],
      /: nobody answers: no_answer: bad port/,
    ],
  ];
  for (const [args, message] of cases) {
    const ran = await runUmpire(['decide', ...args, '--instruction', 'x', '--patience', '1s'], { input: records(5) });
    t.is(ran.status, 1, String(message));
    t.regex(ran.err, message);
    t.is(ran.out, '');
  }
  const html = await startScripted(t, (_, response) => response.end('<h1>Hello</h1>'));
  t.regex((await decide(html, [], { input: records(1) })).err, /what answers there is not Umpire/);
});

test('a service that goes away for longer than the patience ends the run; one text alone has its error', async (t) => {
  let seen = 0;
  const url = await startScripted(t, async (request, response) => {
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
  const inputs = lines.filter(({ error }) => error !== undefined).map(({ input }) => input);
  t.deepEqual(inputs, ['poison']);
  t.true(seen >= 6);
  const away = await startScripted(t, (_, response) => response.writeHead(503).end('no'));
  const gone = await decide(away, ['--patience', '1s'], { input: records(3) });
  t.is(gone.status, 1);
  t.regex(gone.err, /no text got an answer for 1 seconds: http_503: answered 503; 0 lines decided/);
});

test('a key comes from the environment or a file as well, and learned digests are written', async (t) => {
  let authorization: string | undefined;
  const url = await startScripted(t, (request, response) => {
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

const ask = (args: readonly string[], env: Record<string, string> = {}) =>
  runUmpire(['ask', '--model', 'mock', '--question', 'which colour', 'the blue one', ...args], { env });

test('prints the choice and a bar for each, the likeliest first; JSON for programs', async (t) => {
  const url = await start(t);
  const { status, out, err } = await ask(['--url', url, 'red', 'blue: as the sky', 'green\u001b[2J']);
  t.deepEqual([status, err], [0, '']);
  const lines = linesOf(out);
  t.is(lines[0], 'blue: as the sky');
  t.regex(lines[2] ?? '', /^ +\d+\.\d % {2}█+ +blue: as the sky$/);
  t.regex(out, /green\\u001b\[2J\n/);
  t.is(lines.at(-1), 'mock@r1');
  const [first, ...others] = lines.slice(2, 5).map((line) => Number.parseFloat(line)) as [number, number, number];
  const shares = [first, ...others];
  const found = others.toSorted((a, b) => b - a);
  t.deepEqual(found, others);
  t.true(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 100) < 0.3);

  const json = JSON.parse((await ask(['--url', url, '--json', 'red', 'blue'])).out);
  t.like(json, { choice: 'blue', model: 'mock@r1', confidence: json.probabilities.blue });

  const piped = await runUmpire(['ask', '--model', 'mock', '--question', 'q', '--url', url, '-', 'red', 'blue'], {
    input: 'the blue one\n',
  });
  t.regex(piped.out, /^blue\n/, piped.err);

  const many = Array.from({ length: 20 }, (_, i) => `red ${i}`);
  t.regex((await ask(['--url', url, ...many])).out, / \d+\.\d % .* \(8 other choices\)\n\nmock@r1\n$/);
});

test('without --url, the service that runs on the port of this environment', async (t) => {
  const { port } = new URL(await start(t));
  const decided = [
    'decide',
    '--model',
    'mock',
    '--choices',
    choicesFile,
    newFile(records(1)),
    '--instruction',
    'which',
  ];
  t.is((await runUmpire(decided, { env: { PORT: port, UMPIRE_KEY: key } })).status, 0);
  t.is((await ask(['red', 'blue'], { PORT: port, UMPIRE_KEY: key })).status, 0);
  const free = String(await freePort());
  const { status, err } = await ask(['red', 'blue'], { PORT: free });
  t.is(status, 1);
  t.regex(
    err,
    new RegExp(`nobody answers at http://localhost:${free}/ .*: 'npm run quickstart' starts a service; --url`),
  );
});

test('what the service refuses is said in its words, once', async (t) => {
  const url = await start(t);
  const fails = async (expected: RegExp, ...args: string[]) => {
    const { status, out, err } = await ask(['--url', url, ...args]);
    t.deepEqual([status, out], [1, '']);
    t.regex(err, expected);
  };
  await fails(/unknown_model: /, '--model', 'other', 'red', 'blue');
  await fails(/invalid_choices: /, 'red', 'red');
  await fails(/authentication_required: a catalog belongs to a key/, '--catalog', 'colours');
  const busy = await start(t, { faults: [fault('503; retry-after=9', 1)] });
  const { err } = await ask(['--url', busy, 'red', 'blue']);
  t.regex(err, /^umpire ask: [a-z_]+: .+\n$/);
});
