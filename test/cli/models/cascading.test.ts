/** `umpire models add --cascade`, and what the other commands do with a cascade. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { writeCascade } from '../../engine/support/cascades.ts';
import { job, startEngine, terms } from '../../engine/support/engine.ts';
import { startHttpModelServer } from '../../engine/support/http-models/server.ts';
import { encoderGraph, modelsFolder, TINY } from '../../engine/support/packages.ts';
import { servedEncoder, TEXT_EMBEDDING_OPTIONS, writeRemotePackage } from '../../engine/support/remote-packages.ts';
import { runUmpire } from '../../support/terminal.ts';

const OTHER = { id: 'other', graph: encoderGraph(3) };
const CHOICES = ['abc', 'xyz'];
const TEXTS = Array.from({ length: 120 }, (_, i) => `${'abcdefgh'[i % 8]}${'xyzuvw'[i % 6]} a${i} ${'mnopq'[i % 5]}`);

/** A folder of two models; examples that the first decides right where it is sure, and the second everywhere else. */
async function sceneOf(t: ExecutionContext) {
  const modelsDir = await modelsFolder(t, TINY, OTHER);
  const engine = await startEngine(t, { modelsDir });
  const answersOf = async (model: string) =>
    await Promise.all(
      TEXTS.map(async (input) => {
        const outcome = await engine.score(job({ model, input, instruction: 'which', choices: CHOICES }), terms());
        const [abc = 0, xyz = 0] = outcome.kind === 'scored' ? outcome.probabilities : [];
        return { choice: abc >= xyz ? 'abc' : 'xyz', confidence: Math.max(abc, xyz) };
      }),
    );
  const [tiny, other] = [await answersOf('tiny'), await answersOf('other')];
  await engine.close();
  const sure = tiny.map(({ confidence }) => confidence).sort()[TEXTS.length / 2] as number;
  const files = await modelsFolder(t);
  const write = (
    name: string,
    labelOf: (i: number) => string | undefined,
    more: object = { choices: CHOICES },
  ): string => {
    const lines = TEXTS.map((input, i) => JSON.stringify({ input, instruction: 'which', label: labelOf(i), ...more }));
    writeFileSync(join(files, name), lines.join('\n'));
    return join(files, name);
  };
  const layered = write('layered', (i) => ((tiny[i]?.confidence ?? 0) >= sure ? tiny : other)[i]?.choice);
  const second = write('second', (i) => other[i]?.choice, {});
  const run = (...args: string[]) => runUmpire(['models', ...args], { env: { UMPIRE_MODELS_DIR: modelsDir } });
  const add = (...args: string[]) => run('add', 'both@r1', '--cascade', 'tiny,other', ...args);
  const manifest = () => JSON.parse(readFileSync(join(modelsDir, 'both', 'r1', 'model.json'), 'utf8'));
  return { modelsDir, files, sure, layered, second, run, add, manifest, write };
}

test('a cascade that pays is fitted, says what it is worth, and is listed, checked and learned with', async (t) => {
  const { sure, layered, run, add, manifest } = await sceneOf(t);
  const { status, out, err } = await add('--examples', layered, '--if-away', 'answer', '--default');
  t.is(status, 0, err);
  t.regex(out, /\ntiny@r1 alone +\d\d\.\d % \([\d.]+ to [\d.]+ %\)/);
  t.regex(out, /\nnot joined \(taken\) +(9\d|100)\.\d % /);
  t.regex(out, /\nlast step at most 50\.0 % /);
  t.regex(out, /\nit pays\nboth@r1 is in /);
  const { family, options, ...rest } = manifest();
  t.deepEqual(Object.keys(rest).sort(), ['default', 'id', 'owned_by', 'revision', 'schema', 'status']);
  const [first, last] = options.steps;
  t.deepEqual([family, options.if_away, options.join], ['cascade', 'answer', false]);
  t.deepEqual([first.model, last.model, Object.keys(last)], ['tiny@r1', 'other@r1', ['model', 'reached']]);
  t.true(Math.abs(first.sure - sure) < 0.05 && Math.abs(last.reached - 0.5) < 0.15, JSON.stringify(options));

  t.regex((await run('list')).out, /both +r1 +yes +\? +cascade +local +complete +40 input tokens/);
  const check = await run('check', 'both');
  t.is(check.status, 0);
  t.regex(
    check.out,
    /^tiny@r1: sound, loaded[\s\S]*\nother@r1: sound[\s\S]*\nboth@r1: sound, asks tiny@r1, other@r1\n$/,
  );
});

test('one that does not pay is not added, unless a target asks for it; a share of the last step is kept to', async (t) => {
  const { modelsDir, second, add, manifest } = await sceneOf(t);
  const honest = await add('--examples', second);
  t.is(honest.status, 1);
  t.regex(
    honest.err,
    /it does not pay: it is right no more often than lots would be, but by chance; nothing was added/,
  );
  const beyond = await add('--examples', second, '--accuracy', '1', '--instruction', 'which');
  t.is(beyond.status, 0, beyond.err);
  t.deepEqual(manifest().options.steps[0], { model: 'tiny@r1', sure: 1 });
  t.deepEqual(readdirSync(modelsDir).sort(), ['both', 'other', 'tiny']);
});

test('every fault of a command is told', async (t) => {
  const { modelsDir, files, layered, run, add, write } = await sceneOf(t);
  await writeCascade(modelsDir, { steps: [{ model: 'tiny', sure: 0.5 }, { model: 'gone' }] });
  const few = join(files, 'few');
  writeFileSync(few, readFileSync(layered, 'utf8').split('\n').slice(0, 9).join('\n'));
  const odd = write('odd', () => 'abc', { choices: ['abc', 'abc'] });
  const cases: readonly (readonly [args: readonly string[], status: number, err: RegExp])[] = [
    [['--examples', layered, '--accuracy', '1.5'], 2, /--accuracy: must be from 0 to 1/],
    [['--examples', layered, '--accuracy', '.9', '--share-of-last', '.1'], 2, /not both/],
    [['--examples', layered, '--if-away', 'wait'], 2, /--if-away must be answer or refuse/],
    [['--examples', layered, '--url', 'http://a'], 2, /--url is not for a cascade/],
    [[], 2, /--examples FILE is needed/],
    [['--examples', few], 1, /9 examples are too few: 50 are the least/],
    [['--examples', odd], 1, /line 120: choices must be a list of 2 to 300 texts/],
  ];
  for (const [args, status, err] of cases) {
    const ran = await add(...args);
    t.is(ran.status, status, ran.err);
    t.regex(ran.err, err);
  }
  const unknown = await run('add', 'both@r1', '--cascade', 'nobody,cascade', '--examples', layered);
  t.regex(
    unknown.err,
    /step\[0\]\.model: 'nobody' is not served[\s\S]*step\[1\]\.model: 'cascade' is (a cascade|broken)/,
  );
  t.regex(
    (await run('add', 'both@r1', '--cascade', 'tiny', '--examples', layered)).err,
    /1 models; 2 to 4 make a cascade/,
  );
  t.regex((await run('add', 'both@r1', '--url', 'http://a', '--accuracy', '1')).err, /--accuracy is for --cascade/);
  const check = await run('check', 'cascade');
  t.is(check.status, 1);
  t.regex(check.out, /cascade@r1: broken\n {2}model.json: options.steps\[1\].model: 'gone' is not served/);
});

test('a command that decides with a cascade waits until every step is loaded', async (t) => {
  const server = await startHttpModelServer(t, await servedEncoder());
  server.behaviour.delay = 200;
  const modelsDir = await modelsFolder(t, TINY);
  await writeRemotePackage(modelsDir, server.address, { options: TEXT_EMBEDDING_OPTIONS });
  const steps = [{ model: 'tiny', sure: 1 }, { model: 'remote' }];
  const files = await modelsFolder(t);
  const [examples, choices] = [join(files, 'examples'), join(files, 'choices')];
  writeFileSync(examples, JSON.stringify({ input: 'abcdefgh', instruction: 'which', label: 'abc' }));
  writeFileSync(choices, CHOICES.join('\n'));
  for (const [i, if_away] of ['refuse', 'answer'].entries()) {
    await writeCascade(modelsDir, { steps, if_away });
    const args = ['evaluate', '--model', 'cascade', '--choices', choices, examples];
    const { status, err } = await runUmpire(args, { env: { UMPIRE_MODELS_DIR: modelsDir } });
    t.is(status, 0, err);
    t.is(server.requests.filter(({ text }) => text.includes('abcdefgh')).length, i + 1);
  }
});
