/**
 * Calls a service through the generated types: `node call.ts BASE_URL`, with API_KEY in the environment. Compiling it
 * is half of the check.
 */
import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { components, paths } from './generated/schema.ts';

const [baseUrl = ''] = process.argv.slice(2);
const anonymous = createClient<paths>({ baseUrl });
const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${process.env.API_KEY}` } });

const question = {
  model: 'minilm-l6',
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
};
// The type must be an array and not a set, since the order of a catalog's choices is promised.
const choices: components['schemas']['CatalogRequest']['choices'] = ['shipping', 'billing', 'technical support'];

const decided = await anonymous.POST('/v1/decisions', { body: { ...question, choices } });
assert.equal(decided.data?.output.choice, 'billing');
assert.equal(decided.data.output.probabilities.billing, decided.data.output.confidence);

const neither = await anonymous.POST('/v1/decisions', { body: question });
assert.equal(neither.response.status, 400);
assert.equal(neither.error?.error.code, 'choices_or_catalog');
assert.equal(neither.error.error.type satisfies string, 'invalid_request_error');
// @ts-expect-error: a request must have an instruction.
const wrong: components['schemas']['DecisionRequest'] = { model: 'a', input: 'b', choices };
assert.ok(wrong);

const models = await anonymous.GET('/v1/models');
const [model] = models.data?.data ?? [];
assert.ok(model?.status === 'ready' && model.limits.choices >= 2);
assert.equal(
  (await anonymous.GET('/v1/models/{model}', { params: { path: { model: 'nobody' } } })).response.status,
  404,
);

const catalog = { id: 'sdk', model: 'minilm-l6', choices };
assert.equal((await anonymous.POST('/v1/catalogs', { body: catalog })).response.status, 401);
const made = await client.POST('/v1/catalogs', { body: catalog });
assert.deepEqual(made.data?.choices, choices);
const byCatalog = await client.POST('/v1/decisions', { body: { ...question, catalog: 'sdk' } });
assert.deepEqual(byCatalog.data?.output, decided.data.output);
const path = { params: { path: { id: 'sdk' } } };
assert.deepEqual((await client.GET('/v1/catalogs/{id}', path)).data?.choices, choices);
assert.equal((await client.DELETE('/v1/catalogs/{id}', path)).response.status, 204);
assert.equal((await client.GET('/v1/catalogs/{id}', path)).error?.error.code, 'catalog_not_found');
assert.equal((await anonymous.GET('/health/ready')).data?.status, 'ready');
process.stdout.write('openapi-typescript: generated, compiled, and called\n');
