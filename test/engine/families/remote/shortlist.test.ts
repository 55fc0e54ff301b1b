/** More choices than a server takes: a local model of the package picks those that the server decides among. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { choicesProblem, readShortlist } from '../../../../src/engine/families/remote/shortlist.ts';
import { jobCost } from '../../../../src/engine/job-cost.ts';
import { Checker } from '../../../../src/engine/packages/manifest.ts';
import { ENGINE_CACHE } from '../../../support/models-dir.ts';
import { eventually, job, shippedModels, startEngine, type TestEngine, terms } from '../../support/engine.ts';
import { type InferenceServer, startInferenceServer } from '../../support/inference-server.ts';
import { encoderGraph, modelsFolder, slowEncoderGraph, tokenId, writePackage } from '../../support/packages.ts';
import { problemsIn, writeInferencePackage } from '../../support/remote-packages.ts';

const CAP = 26;

/** A local model of the files that every small package has. */
const TINY_STAGE = {
  family: 'bi-encoder',
  limits: { input_tokens: 20, candidate_tokens: 8, choices: 300 },
  options: {
    graph: 'model.onnx',
    tokenizer: 'tokenizer.json',
    joint_weight: 0.25,
    temperature: 0.5,
    special_tokens: { cls: tokenId('[CLS]'), sep: tokenId('[SEP]'), unk: tokenId('[UNK]') },
  },
};

const words = (count: number): readonly string[] => Array.from({ length: count }, (_, i) => `w${i * i}`);

interface Scene {
  readonly engine: TestEngine;
  readonly server: InferenceServer;
}

/** The model `remote` with a shortlist, beside its parts: `local` alone and `decider`, which takes the cap at most. */
async function startScene(t: ExecutionContext<unknown>, graph = encoderGraph()): Promise<Scene> {
  const server = await startInferenceServer(t, { graph: encoderGraph(2), output: 'embedding' });
  const modelsDir = await modelsFolder(t);
  const { limits, options } = TINY_STAGE;
  await writePackage(modelsDir, { id: 'local', graph, manifest: { limits, options } });
  await writeInferencePackage(modelsDir, server.address, {
    id: 'decider',
    manifest: { limits: { input_tokens: 40, candidate_tokens: 12, choices: CAP } },
  });
  await writeInferencePackage(modelsDir, server.address, {
    graph,
    options: { batch: { choices: CAP, independent: true }, shortlist: TINY_STAGE },
  });
  return { engine: await startEngine(t, { modelsDir, largestRequestMs: 600_000 }), server };
}

async function decide({ engine }: Scene, model: string, choices: readonly string[], input = 'abc abd') {
  const outcome = await engine.score(job({ model, choices, input, vector: true }), terms());
  if (outcome.kind !== 'scored') throw new Error(`not a decision: ${outcome.kind}`);
  return outcome;
}

/** The places of the cap's greatest, rising. */
const bestOf = (probabilities: Float64Array): readonly number[] =>
  [...probabilities.keys()]
    .sort((a, b) => (probabilities[b] as number) - (probabilities[a] as number))
    .slice(0, CAP)
    .sort((a, b) => a - b);

test.serial(
  'the server decides among the local best, who keep their mass together; the others keep theirs',
  async (t) => {
    const scene = await startScene(t);
    for (const count of [27, 60, 150]) {
      const choices = [...words(count)].sort();
      const local = await decide(scene, 'local', choices);
      const places = bestOf(local.probabilities);
      const decided = await decide(
        scene,
        'decider',
        places.map((place) => choices[place] as string),
      );
      const mass = places.reduce((sum, place) => sum + (local.probabilities[place] as number), 0);
      const expected = Float64Array.from(local.probabilities);
      for (const [i, place] of places.entries()) expected[place] = mass * (decided.probabilities[i] as number);

      const found = await decide(scene, 'remote', choices);
      t.deepEqual([...found.probabilities], [...expected], `${count}`);
      t.deepEqual(found.vector, decided.vector);
      const sum = found.probabilities.reduce((total, each) => total + each, 0);
      t.true(Math.abs(sum - 1) < 1e-12, `${sum}`);
      t.true(places.includes(found.probabilities.indexOf(Math.max(...found.probabilities))));
    }
    // As many as the server takes: the server alone, as if there were no shortlist.
    const few = words(CAP);
    const found = await decide(scene, 'remote', few);
    t.deepEqual([...found.probabilities], [...(await decide(scene, 'decider', few)).probabilities]);
  },
);

test.serial('decisions beside it and before it change no bit, nor does what is cached', async (t) => {
  const scene = await startScene(t);
  const [one, other] = [words(80), words(40)];
  const first = await decide(scene, 'remote', one);
  t.deepEqual([...(await decide(scene, 'remote', one)).probabilities], [...first.probabilities]);
  const beside = await Promise.all(
    [one, other, one, words(12), one].map((choices) => decide(scene, 'remote', [...choices].reverse())),
  );
  for (const place of [0, 2, 4]) t.deepEqual([...(beside[place]?.probabilities ?? [])], [...first.probabilities]);
});

test.serial('of equal choices the first in code-unit order are picked', async (t) => {
  const scene = await startScene(t);
  // All the same to both models: signs that no vocabulary has.
  const choices = Array.from({ length: 40 }, (_, i) => String.fromCodePoint(0x2600 + i));
  const { probabilities } = await decide(scene, 'remote', choices);
  t.true(probabilities.every((each) => Math.abs(each - 1 / 40) < 1e-12));
  const spoilt = ['abc', ...choices];
  const found = await decide(scene, 'remote', spoilt);
  const local = await decide(scene, 'local', spoilt);
  const kept = [...spoilt].sort().filter((_, i) => found.probabilities[i] === local.probabilities[i]);
  t.deepEqual(kept, choices.slice(CAP - 1));
});

test.serial('both models limit texts and choices, whichever choices are picked', async (t) => {
  const scene = await startScene(t);
  const { engine } = scene;
  const [some, many] = [words(CAP - 1), words(40)];
  const outcome = (choices: readonly string[], input = 'abc') =>
    engine.score(job({ model: 'remote', choices, input }), terms());
  const long = 'b'.repeat(9);
  t.is((await outcome([...some, long])).kind, 'scored');
  t.like(await outcome([...many, long]), { kind: 'choice_too_long', choice: long, tokens: 9, limit: 8 });
  const longer = 'b'.repeat(13);
  t.like(await outcome([...some, longer]), { kind: 'choice_too_long', choice: longer, tokens: 13, limit: 12 });
  t.like(await outcome([...many, longer]), { kind: 'choice_too_long', choice: longer, tokens: 13, limit: 12 });
  t.like(await engine.prepare(job({ model: 'remote', choices: [...many, long] }), terms()), { choice: long, limit: 8 });
  // A long list is prepared in pieces, of which each is short.
  t.like(await engine.prepare(job({ model: 'remote', choices: [...words(290), long] }), terms()), { choice: long });
  t.like(await engine.prepare(job({ model: 'remote', choices: [...some, long] }), terms()), { kind: 'prepared' });
  t.like(await engine.prepare(job({ model: 'remote', choices: many }), terms()), { kind: 'prepared' });
  const text = 'a '.repeat(20);
  t.is((await outcome(some, text)).kind, 'scored');
  const reading = { kind: 'input_too_long', tokens: 25, limit: 20, atLeast: false } as const;
  t.deepEqual(await outcome(many, text), reading);
});

test.serial('local runs take turns; who leaves while waiting or running is let go at once', async (t) => {
  const scene = await startScene(t, slowEncoderGraph(4));
  const { engine, server } = scene;
  const released: string[] = [];
  const leaving = new AbortController();
  const score = (name: string, choices: readonly string[], signal = new AbortController().signal) =>
    engine.score(job({ model: 'remote', choices }), terms({ signal, released: () => released.push(name) }));
  const first = score('first', words(60));
  const second = t.throwsAsync(score('second', [...words(50), 'x'], leaving.signal));
  setTimeout(() => leaving.abort(), 20);
  await second;
  await eventually(() => released.length > 0);
  t.deepEqual(released, ['second']);
  await first;

  const before = server.requests.length;
  const gone = new AbortController();
  // None of them is known, so the local model has more to do than the caller waits for.
  const unknown = words(45).map((word) => `${word}y`);
  const third = t.throwsAsync(score('third', unknown, gone.signal));
  setTimeout(() => gone.abort(), 50);
  await third;
  await eventually(() => released.includes('third'));
  t.is(server.requests.length, before, 'nothing was asked of the server');
  t.is((await decide(scene, 'remote', words(60))).kind, 'scored');
});

test.serial('a server that fails leaves the local model whole', async (t) => {
  const scene = await startScene(t);
  const choices = words(70);
  const { probabilities } = await decide(scene, 'remote', choices);
  scene.server.behaviour.faultFor = 1;
  scene.server.behaviour.fault = { code: 13, details: 'no' };
  await t.throwsAsync(decide(scene, 'remote', choices), { name: 'ModelUnavailable' });
  t.deepEqual([...(await decide(scene, 'remote', choices)).probabilities], [...probabilities]);
});

test.serial('a model that is shipped picks for the server', async (t) => {
  const folder = join(shippedModels, 'minilm-l6', 'r2');
  const { options, ...manifest } = JSON.parse(await readFile(join(folder, 'model.json'), 'utf8'));
  const [graph, tokenizer] = [
    await readFile(join(folder, 'model.onnx')),
    await readFile(join(folder, 'tokenizer.json')),
  ];
  const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding' });
  const modelsDir = await modelsFolder(t);
  await writePackage(modelsDir, {
    id: 'minilm-l6',
    graph,
    files: { 'tokenizer.json': tokenizer },
    manifest: { ...manifest, options, revision: 'r1' },
  });
  await writeInferencePackage(modelsDir, server.address, {
    files: { 'local.onnx': graph, 'local.json': tokenizer },
    options: {
      batch: { choices: CAP },
      shortlist: {
        family: manifest.family,
        limits: manifest.limits,
        options: { ...options, graph: 'local.onnx', tokenizer: 'local.json' },
      },
    },
    manifest: { limits: { input_tokens: 60, candidate_tokens: 40, choices: 300 } },
  });
  const scene = {
    engine: await startEngine(t, { modelsDir, cacheDir: ENGINE_CACHE, largestRequestMs: 600_000 }),
    server,
  };
  const things = ['card', 'loan', 'transfer', 'refund', 'password', 'address', 'cheque', 'fee', 'limit', 'currency'];
  const choices = things.flatMap((thing) =>
    ['lost', 'late', 'new', 'blocked', 'wrong', 'foreign'].map((how) => `${how} ${thing}`),
  );
  const input = 'someone stole my card';
  const local = await decide(scene, 'minilm-l6', choices, input);
  const before = server.requests.length;
  const found = await decide(scene, 'remote', choices, input);
  const rows = server.requests.slice(before).reduce((sum, request) => sum + request.rows, 0);
  t.is(rows, CAP + 2, 'the choices that were picked, and the premise in two forms');
  const picked = new Set(bestOf(local.probabilities));
  for (const [place, probability] of local.probabilities.entries()) {
    if (!picked.has(place)) t.is(found.probabilities[place], probability);
  }
  t.is(found.vector?.length, 8, 'the server gives one of its own');
  const resident = (scene.engine.stats().inference[0]?.resident ?? 0) / 2 ** 20;
  t.true(resident > 0 && resident < 450, `${resident} MiB`);
  t.log(`the process with minilm-l6 takes ${Math.round(resident)} MiB`);
});

test('the options say what is wrong with them', (t) => {
  const problemsOf = (shortlist: unknown, choices = CAP): readonly string[] => {
    const problems: string[] = [];
    const cap = choices === 0 ? undefined : { field: 'batch.choices', choices };
    readShortlist(new Checker({ shortlist }, 'options', problems), cap);
    return problems;
  };
  const { family, limits, options } = TINY_STAGE;
  t.deepEqual(problemsOf(TINY_STAGE), []);
  t.deepEqual(problemsOf(undefined), []);
  for (const [shortlist, problem] of [
    ['tiny', 'options.shortlist must be an object'],
    [{ limits, options }, 'options.shortlist.family must be one of bi-encoder'],
    [{ family: 'remote', limits, options }, 'options.shortlist.family must be one of bi-encoder'],
    [{ family, options }, 'options.shortlist.limits must be an object'],
    [{ family, limits }, 'options.shortlist.options must be an object'],
    [{ ...TINY_STAGE, cap: 3 }, 'options.shortlist.cap is unknown'],
  ] as const) {
    t.true(problemsOf(shortlist)[0]?.startsWith(problem), JSON.stringify(problemsOf(shortlist)));
  }
  t.deepEqual(problemsOf(TINY_STAGE, 0), [
    'options.shortlist needs batch.choices beside it, the most choices that the server takes',
  ]);
});

test('as many choices as the limits allow must find somebody who takes them', (t) => {
  const cap = { field: 'options', choices: CAP };
  const stage = (choices: number) =>
    ({ cap: CAP, family: 'bi-encoder', options: {}, limits: { inputTokens: 9, candidateTokens: 9, choices } }) as const;
  t.is(choicesProblem({ choices: 300 }, cap, stage(300)), undefined);
  t.is(choicesProblem({ choices: CAP }, cap, undefined), undefined);
  t.is(choicesProblem({ choices: 300 }, undefined, undefined), undefined);
  t.is(
    choicesProblem({ choices: 300 }, cap, undefined),
    'limits.choices is 300, and the server takes 26 (options.options): lower it, or add a shortlist',
  );
  t.is(choicesProblem({ choices: 300 }, cap, stage(100)), 'limits.choices is 300, and that of options.shortlist 100');
});

test.serial('a package whose local model cannot be loaded says why', async (t) => {
  const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding' });
  const modelsDir = await modelsFolder(t);
  const shortlist = (options: object) => ({ ...TINY_STAGE, options: { ...TINY_STAGE.options, ...options } });
  for (const [id, stage] of [
    ['missing', shortlist({ graph: 'other.onnx' })],
    ['misspelt', shortlist({ temprature: 1 })],
  ] as const) {
    await writeInferencePackage(modelsDir, server.address, {
      id,
      options: { batch: { choices: CAP }, shortlist: stage },
    });
  }
  const engine = await startEngine(t, { modelsDir }, 'started');
  await eventually(() => /temprature/.test(problemsIn(engine, 'a model cannot be served')));
  await eventually(() => /other\.onnx, which files does not list/.test(problemsIn(engine, 'a model cannot be served')));
  t.true(engine.models().every(({ status }) => status === 'unavailable'));
});

test('a decision costs what each model has to do for it', (t) => {
  const curve = (milliseconds: number) => [[1, milliseconds]] as const;
  const local = { premise: curve(2), choice: curve(1), choiceReadsPremise: false, choicesCached: true };
  const decider = { premise: curve(100), choice: curve(10), choiceReadsPremise: true, choicesCached: false };
  const profile = { ...local, shortlisted: { cap: CAP, family: 'bi-encoder', local, decider } };
  const cost = (choices: number, uncached: number) =>
    jobCost('remote', profile, { premiseTokens: 10, choices, uncached, choiceTokens: 4 });
  t.is(cost(CAP, 0), 100 + CAP * 10);
  t.is(cost(300, 300), 2 + 300 + 100 + CAP * 10);
  t.is(cost(300, 0), 2 + 100 + CAP * 10);
});
