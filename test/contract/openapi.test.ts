/** The OpenAPI document is sound, says what the service checks, and its examples are what the service answers. */
import { readFile } from 'node:fs/promises';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import test from 'ava';
import { procedures } from '../../scripts/openapi/document.ts';
import { EXAMPLES, type Example } from '../../scripts/openapi/examples.ts';
import { DomainError, ERROR_TABLE } from '../../src/domain/errors.ts';
import { fieldRules } from '../../src/domain/field-rules.ts';
import { digestOf } from '../../src/stores/catalog-additions.ts';
import { createRoutes, type Route } from '../../src/wire/rest/routes.ts';
import type { Answer } from '../support/answers.ts';
import { send } from '../support/http.ts';
import { startKeyedService } from '../support/keys.ts';
import { modelsDir } from '../support/models-dir.ts';

type Json = Record<string, unknown>;
interface Response {
  readonly headers: Record<string, { $ref: string }>;
  readonly content?: {
    'application/json': {
      schema: Json;
      examples?: Record<string, { value: { error: { code: string; type: string; message: string } } }>;
    };
  };
  readonly 'x-error-codes'?: readonly string[];
}
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly requestBody?: { content: { 'application/json': { schema: Json; examples: Record<string, Json> } } };
  readonly responses: Record<string, Response>;
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { schemas: Record<string, Json>; headers: Record<string, { required?: true; schema: Json }> };
}

const text = await readFile(new URL('../../gen/openapi.json', import.meta.url), 'utf8');
const document = JSON.parse(text) as Document;
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

/**
 * Compiles a schema of the document; `closed` refuses properties of objects that it does not name, which responses may
 * not have today.
 */
function compile(schema: Json, closed = false): ValidateFunction {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allErrors: true });
  ajv.addVocabulary(['components', 'x-extensible-enum']);
  for (const format of ['int32', 'double']) ajv.addFormat(format, true);
  const { components } = structuredClone(document);
  if (closed) {
    for (const named of Object.values(components.schemas)) {
      if (named.properties !== undefined) named.additionalProperties ??= false;
    }
  }
  return ajv.compile({ ...schema, components });
}

function operationNamed(name: string) {
  const found = operations.find(({ operation }) => operation.operationId.toLowerCase() === name.toLowerCase());
  if (found === undefined) throw new Error(`no operation ${name}`);
  return found;
}

test('an independent validator accepts the document, and not a broken one', async (t) => {
  const accepted = await new Validator().validate(JSON.parse(text));
  t.true(accepted.valid, JSON.stringify(accepted.errors));
  const broken = JSON.parse(text);
  broken.paths['/v1/models'].get.responses['200'] = { content: {} };
  t.false((await new Validator().validate(broken)).valid);
});

test('every schema compiles, and every reference leads somewhere', (t) => {
  for (const name of Object.keys(document.components.schemas)) {
    t.notThrows(() => compile({ $ref: `#/components/schemas/${name}` }), name);
  }
  for (const [, pointer = ''] of text.matchAll(/"\$ref": "#\/([^"]+)"/g)) {
    const target = pointer.split('/').reduce<unknown>((value, key) => (value as Json | undefined)?.[key], document);
    t.not(target, undefined, pointer);
  }
});

test('every code that REST can send stands at an operation, under its status', (t) => {
  // Those of the other protocols, of a caller who is gone, and of what is no operation.
  const elsewhere = ['INVALID_MESSAGE', 'UNIMPLEMENTED', 'SERVICE_NOT_FOUND', 'CANCELED'];
  const unrouted = ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED'];
  const documented = new Set<string>();
  for (const { operation } of operations) {
    for (const [status, response] of Object.entries(operation.responses)) {
      for (const code of response['x-error-codes'] ?? []) {
        const reason = code.toUpperCase() as keyof typeof ERROR_TABLE;
        t.is(String(ERROR_TABLE[reason].http), status, `${operation.operationId} ${code}`);
        documented.add(reason);
      }
    }
  }
  const expected = Object.keys(ERROR_TABLE).filter((reason) => ![...elsewhere, ...unrouted].includes(reason));
  t.deepEqual([...documented].sort(), expected.sort());
});

test('every status of an error shows each of its codes, with the type and the field that it has', (t) => {
  const validate = compile({ $ref: '#/components/schemas/ErrorResponse' });
  for (const { operation } of operations) {
    for (const [status, response] of Object.entries(operation.responses)) {
      const codes = response['x-error-codes'];
      if (codes === undefined) continue;
      const shown = Object.values(response.content?.['application/json'].examples ?? {}).map(({ value }) => value);
      const place = `${operation.operationId} ${status}`;
      t.deepEqual(shown.map(({ error }) => error.code).toSorted(), [...codes].sort(), place);
      for (const value of shown) {
        t.true(validate(value), place);
        t.is(value.error.type, ERROR_TABLE[value.error.code.toUpperCase() as keyof typeof ERROR_TABLE].type, place);
        t.true(value.error.message.length > 3, place);
      }
    }
  }
});

test('no list becomes a set in generated code, and no request a union', (t) => {
  for (const [name, { properties = {}, oneOf, anyOf, allOf }] of Object.entries(document.components.schemas)) {
    t.deepEqual([oneOf, anyOf, allOf], [undefined, undefined, undefined], name);
    for (const [field, schema] of Object.entries(properties as Record<string, Json>)) {
      t.false('uniqueItems' in schema || 'default' in schema, `${name}.${field}`);
    }
  }
});

test('the protos state a rule for every field of a request', (t) => {
  const unruled = procedures().flatMap(({ method }) =>
    Object.entries(fieldRules(method.input))
      .filter(([, { value, presence }]) => value === undefined && presence === undefined)
      .map(([name]) => `${method.input.name}.${name}`),
  );
  t.deepEqual(unruled, []);
});

test('a decision’s response has the digest of what was learned', (t) => {
  const name = 'X-Umpire-Learned';
  t.truthy(operationNamed('createDecision').operation.responses[200]?.headers[name]);
  const header = document.components.headers[name];
  const learned = { model: 'm@r1', scale: 1, bias: [0, 0], weights: undefined };
  t.true(compile(header?.schema ?? {})(digestOf(learned as never)));
  t.is(header?.required, undefined);
});

test('an operation does not say the same twice, and each says more than its name', (t) => {
  for (const { operation } of operations) {
    t.true(operation.summary.length > 10);
    t.false((operation.description ?? '').startsWith(operation.summary));
  }
});

/** Values that lie at the edges of the rules; each is tried in each field. */
const VALUES: readonly unknown[] = [
  ...['', 'a', '.', '..', '...', 'a/b', 'a b', 'é', '1', 'private', 'public', '__proto__', 'A.b_c-9'],
  ...['x'.repeat(128), 'x'.repeat(129), '😀'.repeat(128), '😀'.repeat(129)],
  ...[null, 0, 1.5, true, {}, [], ['a'], ['a', 'b'], ['a', 'a'], ['a', ''], ['a', 1], ['a', null], ['a', ['b']]],
  ...[300, 301].map((count) => Array.from({ length: count }, (_, index) => String(index))),
];

function refused(route: Route, body: Json): string | undefined {
  try {
    route.read(Buffer.from(JSON.stringify(body)), new Map());
    return undefined;
  } catch (error) {
    if (error instanceof DomainError) return error.message;
    throw error;
  }
}

test('the schemas of requests accept what the service reads, and nothing else', (t) => {
  let compared = 0;
  for (const route of createRoutes(procedures()).filter(({ hasBody }) => hasBody)) {
    const { requestBody } = operationNamed(route.procedure.method.name).operation;
    const content = requestBody?.content['application/json'];
    const validate = compile(content?.schema ?? {});
    const compare = (body: Json, what: string): void => {
      compared += 1;
      const fault = refused(route, body);
      t.is(validate(body), fault === undefined, `${route.template.text} ${what}: ${fault}`);
    };
    for (const [name, { value }] of Object.entries(content?.examples ?? {})) {
      const sound = value as Json;
      t.true(validate(sound), name);
      const fields = route.procedure.method.input.fields.map((field) => field.name);
      for (const field of fields) {
        for (const value of VALUES) compare({ ...sound, [field]: value }, `${name}, ${field} ${JSON.stringify(value)}`);
        compare(Object.fromEntries(Object.entries(sound).filter(([key]) => key !== field)), `${name} without ${field}`);
      }
      for (const extra of ['extra', 'inputTokens', '', '$schema'])
        compare({ ...sound, [extra]: 'x' }, `${extra} added`);
    }
  }
  t.true(compared > 300);
});

/** What is wrong with an answer by the document; empty if nothing is. */
function faultsOf(operation: Operation, answer: Answer): readonly string[] {
  const response = operation.responses[answer.status];
  if (response === undefined) return [`status ${answer.status} is not documented`];
  const faults: string[] = [];
  for (const [name, { $ref }] of Object.entries(response.headers)) {
    const header = document.components.headers[$ref.split('/').at(-1) as string];
    const value = answer.headers[name.toLowerCase()];
    if (value === undefined) {
      if (header?.required) faults.push(`no ${name}`);
      continue;
    }
    const validate = compile(header?.schema ?? {});
    if (!validate(header?.schema.type === 'integer' ? Number(value) : value)) faults.push(`${name}: ${value}`);
  }
  const schema = response.content?.['application/json'].schema;
  if (schema === undefined) return answer.text === '' ? faults : [...faults, 'there is content'];
  if (answer.headers['content-type'] !== 'application/json') faults.push(`type ${answer.headers['content-type']}`);
  const validate = compile(schema, true);
  const body = JSON.parse(answer.text) as Json;
  if (!validate(body)) faults.push(JSON.stringify(validate.errors));
  const codes = response['x-error-codes'];
  const error = body.error as { code: string; type: string } | undefined;
  if (codes === undefined) return faults;
  if (!codes.includes(error?.code ?? '')) faults.push(`code ${error?.code} is not documented`);
  const row = ERROR_TABLE[error?.code.toUpperCase() as keyof typeof ERROR_TABLE];
  return row?.type === error?.type ? faults : [...faults, `type ${error?.type}`];
}

/**
 * An answer without what may differ from the one that is shown: a decision's identifier, and models that are not shown.
 */
function alike(body: Json, shown: Json): Json {
  if (body.object === 'decision') return { ...body, id: shown.id };
  if (body.object !== 'list') return body;
  const ids = (shown.data as readonly Json[]).map(({ id }) => id);
  return { ...body, data: (body.data as readonly Json[]).filter(({ id }) => ids.includes(id)) };
}

test('every example is sent, in order, and its answer is the one that is shown', async (t) => {
  const service = await startKeyedService({ UMPIRE_MODELS_DIR: modelsDir('umpire-mini') }, {});
  t.teardown(service.stop);
  const call = ({ operation, path = {}, body, keyed }: Example) => {
    const found = operationNamed(operation);
    return send(service.port, {
      method: found.method,
      path: found.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? '')),
      headers: keyed === true ? { authorization: `Bearer ${service.key}` } : {},
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  };
  for (const example of EXAMPLES) {
    const answer = await call(example);
    const what = `${example.operation} ${example.name}`;
    t.is(answer.status, example.status, what);
    t.deepEqual(faultsOf(operationNamed(example.operation).operation, answer), [], what);
    if (example.answer === undefined) continue;
    t.deepEqual(alike(JSON.parse(answer.text) as Json, example.answer as Json), example.answer, what);
  }
  // Each operation has one that succeeds.
  for (const { operation } of operations) {
    t.true(
      EXAMPLES.some(
        (example) => example.operation.toLowerCase() === operation.operationId.toLowerCase() && example.status < 300,
      ),
    );
  }
  // An answer that differs would show.
  const sound = await send(service.port, { path: '/v1/models' });
  const { operation } = operationNamed('listModels');
  t.not(faultsOf(operation, { ...sound, text: sound.text.replace('"ready"', '"READY"') }).length, 0);
  t.not(faultsOf(operation, { ...sound, text: sound.text.replace('"owned_by"', '"ownedBy"') }).length, 0);
  t.not(faultsOf(operation, { ...sound, headers: { ...sound.headers, 'x-request-id': 'abc' } }).length, 0);
});
