/** The rules of a decision without sockets; the engine here is scripted, since what a model thinks is not at stake. */
import test from 'ava';
import type { Caller } from '../../src/domain/authenticate.ts';
import { Call } from '../../src/domain/call.ts';
import type { DecidingCatalog } from '../../src/domain/catalog-cache.ts';
import { Decider, type DecisionRequest } from '../../src/domain/decide.ts';
import { DomainError } from '../../src/domain/errors.ts';
import { EngineOverloaded } from '../../src/engine/errors.ts';
import { createScriptedEngine, descending, type Script } from '../support/scripted-engine.ts';

const ANONYMOUS: Caller = { kind: 'anonymous', address: '192.0.2.1' };
const KEYED: Caller = { kind: 'key', owner: 'acme', keyId: 'key_1', address: '192.0.2.1', limits: {} };
const REQUEST: DecisionRequest = {
  model: 'minilm-l6',
  input: 'text',
  instruction: 'which?',
  choices: ['b', 'a', 'c'],
  catalog: undefined,
};
const withCatalog = (catalog: string): DecisionRequest => ({ ...REQUEST, choices: [], catalog });

function setUp(catalogs: Record<string, DecidingCatalog> = {}, script: Script = descending) {
  const engine = createScriptedEngine(script);
  const decider = new Decider({
    engine,
    catalogs: { resolve: async (owner, id) => (owner === 'acme' ? catalogs[id] : undefined) },
  });
  const callOf = (caller: Caller): Call => {
    const call = new Call(10_000);
    call.identified(caller);
    return call;
  };
  return {
    engine,
    callOf,
    decider,
    decide: (what: DecisionRequest, caller: Caller = ANONYMOUS) => decider.decide(what, callOf(caller)),
  };
}

async function reasonOf(decision: Promise<unknown>): Promise<string> {
  try {
    await decision;
  } catch (error) {
    return error instanceof DomainError ? `${error.reason} ${error.param}` : String(error);
  }
  return 'decided';
}

test('choices reach the engine in code-unit order, and the answer belongs to them', async (t) => {
  const { decide, engine } = setUp();
  const result = await decide(REQUEST);
  t.deepEqual(engine.jobs[0]?.choices, ['a', 'b', 'c']);
  const { choice, confidence, probabilities } = result.output ?? {};
  t.is(choice, 'a');
  t.is(confidence, probabilities?.a);
  t.deepEqual(Object.keys(probabilities ?? {}), ['a', 'b', 'c']);
  t.like(result, { model: 'minilm-l6@r1', usage: { inputTokens: 24 } });
  t.regex(result.id ?? '', /^dec_/);
});

test('code-unit order is not that of characters: astral ones come before the end of the first plane', async (t) => {
  const { decide, engine } = setUp();
  await decide({ ...REQUEST, choices: ['\uffff', '\u{1f600}', 'é', 'e', 'Z', '10', '9'] });
  t.deepEqual(engine.jobs[0]?.choices, ['10', '9', 'Z', 'e', 'é', '\u{1f600}', '\uffff']);
});

test('the request’s own list is left as it was', async (t) => {
  const choices = ['b', 'a'];
  await setUp().decide({ ...REQUEST, choices });
  t.deepEqual(choices, ['b', 'a']);
});

const CATALOGS: Record<string, DecidingCatalog> = {
  teams: { model: 'minilm-l6', sortedChoices: ['billing', 'shipping'] },
  others: { model: 'other', sortedChoices: ['x', 'y'] },
  many: { model: 'minilm-l6', sortedChoices: Array.from({ length: 11 }, (_, index) => `c${index}`) },
};

test('faults, in their order', async (t) => {
  const { decide, engine } = setUp(CATALOGS);
  const stranger: Caller = { ...KEYED, owner: 'someone' };
  t.is(await reasonOf(decide(withCatalog('teams'))), 'AUTHENTICATION_REQUIRED null');
  t.is(await reasonOf(decide({ ...withCatalog('teams'), model: 'none' }, KEYED)), 'UNKNOWN_MODEL model');
  t.is(await reasonOf(decide(withCatalog('none'), KEYED)), 'UNKNOWN_CATALOG catalog');
  t.is(await reasonOf(decide(withCatalog('teams'), stranger)), 'UNKNOWN_CATALOG catalog');
  t.is(await reasonOf(decide(withCatalog('others'), KEYED)), 'CATALOG_MODEL_MISMATCH model');
  t.is(await reasonOf(decide({ ...withCatalog('many'), model: 'minilm-l6@r2' }, KEYED)), 'TOO_MANY_CHOICES catalog');
  const eleven = { ...REQUEST, model: 'minilm-l6@r2', choices: Array.from({ length: 11 }, (_, index) => `c${index}`) };
  t.is(await reasonOf(decide(eleven)), 'TOO_MANY_CHOICES choices');
  t.is(await reasonOf(decide({ ...REQUEST, model: 'off' })), 'MODEL_DISABLED model');
  t.is(await reasonOf(decide({ ...REQUEST, model: 'gone' })), 'MODEL_UNAVAILABLE model');
  t.is(engine.jobs.length, 0);
});

test('a choice of too many tokens is the catalog’s fault where it came from one', async (t) => {
  const { decide } = setUp(CATALOGS, () => ({ kind: 'choice_too_long', choice: 'x', tokens: 200, limit: 128 }));
  t.is(await reasonOf(decide(REQUEST)), 'CANDIDATE_TOKENS_EXCEEDED choices');
  t.is(await reasonOf(decide(withCatalog('teams'), KEYED)), 'CANDIDATE_TOKENS_EXCEEDED catalog');
});

test('who shares the engine’s time: owners with a key, addresses without', async (t) => {
  const tenants: unknown[] = [];
  const { decide } = setUp({}, (job, terms) => {
    tenants.push([terms.tenant, terms.keyed]);
    return descending(job, terms);
  });
  await decide(REQUEST);
  await decide(REQUEST, KEYED);
  t.deepEqual(tenants, [
    ['192.0.2.1', false],
    ['acme', true],
  ]);
});

test('a lease lasts until handler and engine are done, also where the engine never takes the job in', async (t) => {
  for (const script of [
    descending,
    () => {
      throw new EngineOverloaded(3);
    },
  ]) {
    const { decider, callOf } = setUp({}, script);
    const call = callOf(ANONYMOUS);
    let returned = 0;
    call.hold({ release: () => void returned++ });
    await decider.decide(REQUEST, call).catch(() => {});
    t.true((call.times.engineSince ?? 0) <= (call.times.engineUntil ?? -1));
    t.is(returned, 0);
    call.answered();
    t.is(returned, 1);
  }
});

test('a lease lasts as long as the engine works for a caller that has left', (t) => {
  const call = new Call(10_000);
  let returned = 0;
  call.hold({ release: () => void returned++ });
  call.engaged();
  call.depart();
  call.answered();
  t.true(call.signal.aborted);
  t.is(returned, 0);
  call.released();
  call.released();
  t.is(returned, 1);
});
