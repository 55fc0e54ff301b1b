/** What each procedure promises beside its answers: who may call it and what it counts against. */
import test from 'ava';
import { createCatalogService } from '../../src/service/catalog-service.ts';
import { createDecisionService } from '../../src/service/decision-service.ts';
import { createModelService } from '../../src/service/model-service.ts';

// Handlers are not called here.
const nothing = {} as never;
const PROCEDURES = [
  ...createDecisionService({ decider: nothing }),
  ...createModelService({ engine: nothing }),
  ...createCatalogService({ catalogs: nothing }),
];

test('access and limits', (t) => {
  const table = Object.fromEntries(PROCEDURES.map(({ method, access, limits }) => [method.name, [access, limits]]));
  t.deepEqual(table, {
    CreateDecision: ['anyone', 'decision'],
    ListModels: ['anyone', 'none'],
    GetModel: ['anyone', 'none'],
    CreateCatalog: ['keyed', 'catalog'],
    GetCatalog: ['keyed', 'catalog'],
    DeleteCatalog: ['keyed', 'catalog'],
  });
});

test('the fields of a decision and of a catalog stand in the contract’s order', (t) => {
  const fieldsOf = (name: string): readonly string[] =>
    PROCEDURES.find(({ method }) => method.name === name)?.method.input.fields.map((field) => field.name) ?? [];
  t.deepEqual(fieldsOf('CreateDecision'), ['model', 'input', 'instruction', 'choices', 'catalog']);
  t.deepEqual(fieldsOf('CreateCatalog'), ['id', 'model', 'choices', 'version', 'visibility']);
});
