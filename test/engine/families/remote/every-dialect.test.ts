/**
 * What holds for every dialect, on real sockets, with the real engine: bounds, faults, absences, nonsense.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { ScoreOutcome } from '../../../../src/engine/engine.ts';
import { JobCanceled, JobDeadlinePassed, ModelUnavailable } from '../../../../src/engine/errors.ts';
import { eventually, job, probabilitiesOf, startEngine, terms } from '../../support/engine.ts';
import { modelsFolder, writePackage } from '../../support/packages.ts';
import { DIALECT_CASES, type DialectCase, type DialectServer, reply } from '../../support/remote-dialects.ts';
import { problemsIn, type RemoteScene, writeRemotePackage } from '../../support/remote-packages.ts';

const request = job({ model: 'remote', input: 'abz', choices: ['a', 'bz', 'zz'] });
const TOKEN = 'token-of-a-test';

/** An engine with a server that wants a token, and a package that has it. */
async function startScene(
  t: ExecutionContext,
  { start, options, manifest }: DialectCase,
  change: Readonly<Record<string, unknown>> = {},
): Promise<RemoteScene<DialectServer>> {
  const server = await start(t);
  server.behaviour.token = TOKEN;
  const modelsDir = await modelsFolder(t);
  const source = { manifest, options: { ...options, ...change, server: { token_file: 'token' } } };
  const folder = await writeRemotePackage(modelsDir, server.address, source);
  await writeFile(join(folder, 'token'), TOKEN);
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 });
  return { engine, server, modelsDir, folder, status: () => engine.models()[0]?.status };
}

const decide = async ({ engine }: Pick<RemoteScene, 'engine'>): Promise<Readonly<Record<string, number>>> =>
  probabilitiesOf(request, await engine.score(request, terms()));
const behave = ({ behaviour }: DialectServer, change: object): unknown => Object.assign(behaviour, change);

// What is tried with one engine after the other is a test: each start of the two processes costs more than the trial.
// Tests that mostly wait run side by side, after the others.
for (const [name, dialect] of Object.entries(DIALECT_CASES)) {
  test.serial(
    `${name}: the same decision makes the same requests within the bound, and nonsense is none`,
    async (t) => {
      const scene = await startScene(t, dialect);
      const { engine, server } = scene;
      const sound = await decide(scene);
      const many = job({ model: 'remote', input: 'abz', choices: Array.from({ length: 60 }, (_, i) => `z${i}`) });
      const ask = async (): Promise<readonly [Readonly<Record<string, number>>, readonly string[]]> => {
        const from = server.requests.length;
        const found = probabilitiesOf(many, await engine.score(many, terms()));
        const made = server.requests.slice(from);
        t.true(made.every(({ rows }) => rows <= dialect.rows));
        return [found, made.map(({ digest }) => digest).sort()];
      };
      const alone = await ask();
      t.deepEqual(await decide(scene), sound);
      t.deepEqual(await ask(), alone);
      const together = await Promise.all(
        Array.from({ length: 6 }, (_, i) => engine.score(i % 2 === 0 ? many : request, terms())),
      );
      for (const outcome of together.filter((_, i) => i % 2 === 0))
        t.deepEqual(probabilitiesOf(many, outcome), alone[0]);

      for (const [title, falsify] of Object.entries(dialect.nonsense)) {
        behave(server, { falsify });
        const before = engine.log.length;
        await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable }, title);
        behave(server, { falsify: (body: unknown) => body });
        t.true(
          engine.log.slice(before).some(({ message }) => message === 'an inference server failed at a decision'),
          title,
        );
        t.deepEqual(await decide(scene), sound, `after: ${title}`);
      }
      t.notRegex(JSON.stringify(engine.log), new RegExp(TOKEN));
    },
  );

  test(`${name}: a server that dawdles, is killed, frozen or unwell holds up nobody, and is found again`, async (t) => {
    const scene = await startScene(t, dialect);
    const { engine, server, status } = scene;
    const sound = await decide(scene);
    const ways = {
      'before an answer': { delay: 20_000 },
      'within an answer': { delay: 0, fault: { kind: 'trickle' } },
    };
    for (const [title, behaviour] of Object.entries(ways).slice(0, dialect.over === 'HTTP' ? 2 : 1)) {
      behave(server, behaviour);
      const from = server.requests.length;
      const began = performance.now();
      const late = engine.score(request, terms({ within: 1200 }));
      const leaving = new AbortController();
      let released = 0;
      const left = engine.score(request, terms({ signal: leaving.signal, released: () => released++ }));
      await eventually(() => server.requests.length - from >= 2);
      leaving.abort();
      await t.throwsAsync(left, { instanceOf: JobCanceled }, title);
      await t.throwsAsync(late, { instanceOf: JobDeadlinePassed }, title);
      t.true(performance.now() - began < 15_000, title);
      await eventually(() => server.requests.slice(from).every(({ canceled }) => canceled) && released === 1);
      await eventually(() => engine.stats().inference[0]?.inFlight === 0);
    }
    behave(server, { delay: 0, fault: undefined });
    await eventually(() => status() === 'ready');
    t.deepEqual(await decide(scene), sound);

    const troubles: Readonly<Record<string, readonly [() => unknown, () => unknown]>> = {
      killed: [() => server.kill(), () => server.revive()],
      frozen: [() => behave(server, { frozen: true }), () => behave(server, { frozen: false })],
      unwell: [() => behave(server, { healthy: false }), () => behave(server, { healthy: true })],
      ...(dialect.over === 'gRPC' && {
        unready: [() => behave(server, { ready: false }), () => behave(server, { ready: true })],
        'without its model': [() => behave(server, { modelReady: false }), () => behave(server, { modelReady: true })],
      }),
      'strange to its token': [() => behave(server, { token: 'another' }), () => behave(server, { token: TOKEN })],
    };
    for (const [title, [begin, end]] of Object.entries(troubles)) {
      await begin();
      // One that only says that it is unwell may decide until it is asked; a refused token shows in a decision.
      const first = await engine.score(request, terms({ within: 15_000 })).catch((error: unknown) => error);
      const isSaid = ['unwell', 'unready', 'without its model'].includes(title);
      if (!isSaid) t.true(first instanceof Error, `${title}: ${(first as ScoreOutcome).kind}`);
      await eventually(() => status() === 'unavailable');
      const asked = server.requests.length;
      const refused = await t.throwsAsync<ModelUnavailable>(engine.score(request, terms()), {
        instanceOf: ModelUnavailable,
      });
      t.true((refused?.retryAfter ?? 0) >= 1, title);
      if (isSaid) t.is(server.requests.length, asked, title);
      await end();
      await eventually(() => status() === 'ready');
      t.deepEqual(await decide(scene), sound, title);
    }
    t.regex(problemsIn(engine, 'a model cannot be served'), /token was refused/);
    t.notRegex(JSON.stringify(engine.log), new RegExp(TOKEN));
  });
}

/** What is the same for every dialect of one transport is tried with the first of them. */
const first = (over: DialectCase['over']): DialectCase =>
  Object.values(DIALECT_CASES).find((dialect) => dialect.over === over) as DialectCase;

for (const over of ['HTTP', 'gRPC'] as const) {
  const dialect = first(over);

  test.serial(`over ${over} no more is under way at the server than may be`, async (t) => {
    const { engine, server } = await startScene(t, dialect, { in_flight: { requests: 2 } });
    server.behaviour.delay = 30;
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => engine.score(request, terms())));
    t.true(outcomes.every(({ kind }) => kind === 'scored'));
    t.true(server.busiest <= 2, String(server.busiest));
  });

  test.serial(
    `over ${over} a fault that passes is not seen, one that stays is a 503, and all is well after it`,
    async (t) => {
      const scene = await startScene(t, dialect);
      const { engine, server } = scene;
      const sound = await decide(scene);
      const { passing, final } = dialect;
      for (const [title, fault] of Object.entries(passing)) {
        // What fails more than now and then is not made again: decisions between make up for it.
        for (let i = 0; i < 12; i++) await decide(scene);
        behave(server, { fault, faultFor: 1 });
        t.deepEqual(await decide(scene), sound, title);
      }
      for (const [title, fault] of Object.entries({ ...passing, ...final })) {
        behave(server, { fault });
        const began = performance.now();
        const error = await t.throwsAsync(engine.score(request, terms()), { instanceOf: ModelUnavailable }, title);
        t.notRegex(String(error?.message), /secret/);
        t.true(performance.now() - began < 10_000, title);
        behave(server, { fault: undefined });
        await eventually(() => scene.status() === 'ready');
        t.deepEqual(await decide(scene), sound, `after ${title}`);
      }
      // What the server said of its failures is for nobody but its own operator.
      t.regex(problemsIn(engine, 'an inference server failed at a decision'), /500|INTERNAL/);
      t.notRegex(problemsIn(engine, 'an inference server failed at a decision'), /secret/);
      // What may be read of an answer, and what lay in buffers on the way.
      const endless = server.requests.map(({ sent = 0 }) => sent);
      t.true(Math.max(...endless) < 40 * 2 ** 20, String(Math.max(...endless)));
    },
  );

  test.serial(`over ${over} a server that hangs takes nothing from a local model`, async (t) => {
    const { engine, server, folder } = await startScene(t, dialect);
    await writePackage(join(folder, '..', '..'), { id: 'local' });
    await eventually(() => engine.models().length === 2 && engine.models().every(({ status }) => status === 'ready'));
    const local = job({ model: 'local' });
    server.behaviour.delay = 60_000;
    const leaving = new AbortController();
    const hanging = Array.from({ length: 30 }, () =>
      engine.score(request, terms({ signal: leaving.signal })).catch(() => 'given up'),
    );
    await eventually(() => server.busiest >= 8);
    const began = performance.now();
    for (let i = 0; i < 30; i++) t.is((await engine.score(local, terms())).kind, 'scored');
    t.true(performance.now() - began < 30_000);
    leaving.abort();
    t.true((await Promise.all(hanging)).every((each) => each === 'given up'));
  });
}

test('over HTTP a wait that the server asks for is kept if there is time, and told at once if not', async (t) => {
  const scene = await startScene(t, first('HTTP'));
  const { engine, server } = scene;
  const sound = await decide(scene);
  behave(server, { fault: reply(503, { 'retry-after': '1' }), faultFor: 1 });
  let began = performance.now();
  t.deepEqual(await decide(scene), sound);
  t.true(performance.now() - began >= 990);
  behave(server, { fault: reply(429, { 'retry-after': '600' }), faultFor: Number.POSITIVE_INFINITY });
  const from = server.requests.length;
  began = performance.now();
  await t.throwsAsync(engine.score(request, terms({ within: 60_000 })), { instanceOf: ModelUnavailable });
  t.true(performance.now() - began < 20_000);
  // At most the requests of one decision: nothing was made again.
  t.true(server.requests.length - from <= 2, String(server.requests.length - from));
  behave(server, { fault: undefined });
  await eventually(() => scene.status() === 'ready');
  t.deepEqual(await decide(scene), sound);
});
