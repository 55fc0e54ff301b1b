/** `umpire calibrate`, beside a running service on the same store, with a small model in a real engine. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { runCommand } from '../../src/cli/run.ts';
import { modelsFolder, writePackage } from '../engine/support/packages.ts';
import { startService } from '../support/service.ts';

interface Decided {
  readonly choice: string;
  readonly confidence: number;
}

test('examples calibrate a catalog, its answers stay, and all of it can be undone', async (t) => {
  const modelsDir = await modelsFolder(t);
  await writePackage(modelsDir);
  const data = mkdtempSync(join(tmpdir(), 'umpire-calibrate-'));
  const service = await startService({ UMPIRE_MODELS_DIR: modelsDir, UMPIRE_DATA_DIR: data });
  t.teardown(async () => {
    await service.stop();
    rmSync(data, { recursive: true, force: true });
  });
  const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
  const umpire = async (...args: string[]) => {
    const [out, err] = [[] as string[], [] as string[]];
    const terminal = { env, out: (line: string) => out.push(line), err: (line: string) => err.push(line) };
    const status = await runCommand(args, { ...terminal, input: async () => '', interrupted: async () => {} });
    return { status, out: out.join('\n'), err: err.join('\n') };
  };
  const { status: made, out: issued } = await umpire('keys', 'create', '--owner', 'acme');
  t.is(made, 0);
  const key = issued.split('\n').at(-1) ?? '';
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(service.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return response.status === 204 ? undefined : await response.json();
  };
  const choices = ['xyz', 'abc', 'mno'];
  const create = () => call('POST', '/v1/catalogs', { id: 'letters', model: 'tiny', choices });
  const decide = async (input: string): Promise<Decided> => {
    const answer = (await call('POST', '/v1/decisions', {
      model: 'tiny',
      input,
      instruction: 'which',
      catalog: 'letters',
    })) as { output: Decided };
    return answer.output;
  };
  await create();

  const texts = Array.from({ length: 60 }, (_, i) => `abc mno xyz ${'abcmnoxyz'.slice(i % 7)} ${i}`);
  const before = await Promise.all(texts.map(decide));
  const file = join(data, 'labels.jsonl');
  const write = (labelOf: (place: number) => string | undefined) =>
    writeFileSync(
      file,
      texts.map((input, i) => `${JSON.stringify({ input, instruction: 'which', label: labelOf(i) })}\n`).join(''),
    );
  const calibrate = () => umpire('calibrate', '--catalog', 'letters', '--owner', 'acme', file);

  // Right every time, with little confidence: it should be surer.
  write((place) => before[place]?.choice);
  const fitted = await calibrate();
  t.is(fitted.status, 0, fitted.err);
  t.regex(fitted.out, /letters: calibrated for tiny@r1/);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const after = await Promise.all(texts.map(decide));
  t.deepEqual(
    after.map(({ choice }) => choice),
    before.map(({ choice }) => choice),
  );
  t.true(after.every(({ confidence }, i) => confidence > (before[i]?.confidence ?? 1)));

  // The same examples again do not help beyond the temperature that they gave: the fit is of the model, not of what was stored.
  const exported = await umpire('catalogs', 'export', '--owner', 'acme');
  t.regex(exported.out, /"calibrations":\{"tiny@r1":0\.\d+\}/);

  const removed = await umpire('calibrate', '--catalog', 'letters', '--owner', 'acme', '--remove');
  t.is(removed.status, 0, removed.err);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  t.deepEqual(await Promise.all(texts.map(decide)), before);
  t.is((await umpire('calibrate', '--catalog', 'letters', '--owner', 'acme', '--remove')).status, 1);

  // It comes back with an import, and goes with the catalog.
  writeFileSync(file, exported.out);
  await call('DELETE', '/v1/catalogs/letters');
  t.is((await umpire('catalogs', 'import', '--owner', 'acme', file)).status, 0);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  t.deepEqual(await decide(texts[0] ?? ''), after[0]);
  await call('DELETE', '/v1/catalogs/letters');
  await create();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  t.deepEqual(await decide(texts[0] ?? ''), before[0]);
});

test('what cannot be fitted is said, and changes nothing', async (t) => {
  const modelsDir = await modelsFolder(t);
  await writePackage(modelsDir);
  const data = mkdtempSync(join(tmpdir(), 'umpire-calibrate-'));
  t.teardown(() => rmSync(data, { recursive: true, force: true }));
  const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
  const umpire = async (args: readonly string[], input = '') => {
    const [out, err] = [[] as string[], [] as string[]];
    const status = await runCommand(args, {
      env,
      out: (line) => out.push(line),
      err: (line) => err.push(line),
      input: async () => input,
      interrupted: async () => {},
    });
    return { status, out: out.join('\n'), err: err.join('\n') };
  };
  const catalog = { id: 'two', model: 'tiny', choices: ['abc', 'xyz'] };
  await umpire(['catalogs', 'import', '--owner', 'acme'], JSON.stringify(catalog));
  const before = (await umpire(['catalogs', 'export', '--owner', 'acme'])).out;
  const file = join(data, 'labels.jsonl');
  const calibrate = async (content: string, id = 'two') => {
    writeFileSync(file, content);
    return umpire(['calibrate', '--catalog', id, '--owner', 'acme', file]);
  };
  const line = (label: string, input = 'abc') => JSON.stringify({ input, instruction: 'which', label });
  const many = (labelOf: (place: number) => string) =>
    Array.from({ length: 60 }, (_, i) => line(labelOf(i))).join('\n');

  t.regex(
    (
      await calibrate(
        many(() => 'abc'),
        'none',
      )
    ).err,
    /acme has no catalog 'none'/,
  );
  t.regex((await calibrate(line('abc'))).err, /1 examples are too few: 30 are the least/);
  t.regex((await calibrate(`${line('abc')}\nnonsense`)).err, /line 2: is not a JSON object/);
  t.regex((await calibrate(`\n${line('mno')}`)).err, /line 2: the label "mno" is not one of the catalog's choices/);
  t.regex(
    (await calibrate('{"input":"a","instruction":""}')).err,
    /line 1: input, instruction and label must be texts/,
  );
  t.regex(
    (await calibrate(many(() => 'abc').replace('"input":"abc"', `"input":"${'abc '.repeat(50)}"`))).err,
    /line 1: the model refuses it/,
  );
  t.is((await umpire(['calibrate', '--catalog', 'two', '--owner', 'acme'])).status, 2);
  t.is((await umpire(['calibrate', '--catalog', 'two', '--owner', 'acme', '--remove', file])).status, 2);
  t.is((await umpire(['calibrate', '--owner', 'acme', file])).status, 2);

  // As sure as it is right: the examples say about what the model says.
  const first = await calibrate(many(() => 'abc'));
  t.is(first.status, 0, first.err);
  await umpire(['calibrate', '--catalog', 'two', '--owner', 'acme', '--remove']);
  const sure = Number(/mean confidence: ([\d.]+) %/.exec(first.out)?.[1]) / 100;
  const wrongAt = Array.from({ length: 60 }, (_, i) => Math.floor((i + 1) * (1 - sure)) > Math.floor(i * (1 - sure)));
  const refused = await calibrate(many((place) => (wrongAt[place] ? 'xyz' : 'abc')));
  t.is(refused.status, 1);
  t.regex(refused.err, /does not help on held-out examples; nothing was changed/);
  t.is((await umpire(['catalogs', 'export', '--owner', 'acme'])).out, before);
});
