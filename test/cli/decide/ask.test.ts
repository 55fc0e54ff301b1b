/** `umpire ask` against a mock of the service on a real socket: one answer, for people and for programs. */
import test from 'ava';
import { choicesFile, fault, key, newFile, records, start } from '../../support/decide-command.ts';
import { freePort } from '../../support/redis.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

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
  const shares = lines.slice(2, 5).map((line) => Number.parseFloat(line));
  t.deepEqual(
    shares,
    shares.toSorted((a, b) => b - a),
  );
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
