/** Annotations are judged at the start: what cannot be served is refused with the RPC's name, all of it together. */
import { create, createFileRegistry, type DescService, setExtension } from '@bufbuild/protobuf';
import {
  DescriptorProtoSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  FieldDescriptorProto_Label as Label,
  MethodOptionsSchema,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';
import test from 'ava';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import { type HttpRule, HttpRuleSchema } from '../../../gen/google/api/http_pb.ts';
import { createCatalogService } from '../../../src/service/catalog-service.ts';
import { createModelService } from '../../../src/service/model-service.ts';
import type { Procedure } from '../../../src/service/procedure.ts';
import { matchPath, parsePathTemplate } from '../../../src/wire/rest/path-template.ts';
import { createRoutes, Router } from '../../../src/wire/rest/routes.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';

/**
 * A service whose methods have these rules; undefined for none. Requests have the fields `id` and `name`, responses
 * `thing` and `text`.
 */
function serviceOf(rules: readonly (Partial<HttpRule> | undefined)[]): DescService {
  const field = (name: string, number: number, typeName?: string) => ({
    name,
    number,
    label: Label.OPTIONAL,
    jsonName: name,
    ...(typeName === undefined ? { type: Type.STRING } : { type: Type.MESSAGE, typeName }),
  });
  const message = (name: string, fields: ReturnType<typeof field>[]) =>
    create(DescriptorProtoSchema, { name, field: fields });
  const file = create(FileDescriptorProtoSchema, {
    name: 'test.proto',
    package: 'test',
    syntax: 'proto3',
    messageType: [
      message('Request', [field('id', 1), field('name', 2)]),
      message('Thing', [field('id', 1)]),
      message('Response', [field('thing', 1, '.test.Thing'), field('text', 2)]),
    ],
    service: [
      {
        name: 'Things',
        method: rules.map((rule, index) => {
          const options = create(MethodOptionsSchema);
          if (rule !== undefined) setExtension(options, http, create(HttpRuleSchema, rule as never));
          return { name: `Call${index}`, inputType: '.test.Request', outputType: '.test.Response', options };
        }),
      },
    ],
  });
  const service = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService('test.Things');
  if (service === undefined) throw new Error('no service');
  return service;
}

const proceduresOf = (rules: readonly (Partial<HttpRule> | undefined)[]): readonly Procedure[] =>
  serviceOf(rules).methods.map((method) => ({
    method: method as never,
    access: 'anyone',
    limits: 'none',
    handle: () => ({}),
  }));

const get = (value: string) => ({ case: 'get' as const, value });
const post = (value: string) => ({ case: 'post' as const, value });
const WHOLE = { pattern: post('/v1/things'), body: '*' };

const REFUSED: Readonly<Record<string, readonly [Partial<HttpRule> | undefined, RegExp]>> = {
  'no annotation': [undefined, /no google\.api\.http annotation/],
  'no pattern': [{ body: '*' }, /one of get, put/],
  'a custom verb': [{ pattern: { case: 'custom', value: { kind: 'LIST', path: '/v1' } as never } }, /one of get, put/],
  'an additional binding': [
    { ...WHOLE, additionalBindings: [create(HttpRuleSchema, { pattern: get('/v2') })] },
    /additional_bindings/,
  ],
  'a body that is one field': [{ ...WHOLE, body: 'name' }, /body 'name'/],
  'fields that nothing carries': [
    { pattern: get('/v1/things/{id}') },
    /fields name are neither in the path nor in a body/,
  ],
  'a path field that is none': [{ ...WHOLE, pattern: post('/v1/{none}') }, /path field 'none'/],
  'a wildcard': [{ ...WHOLE, pattern: post('/v1/**') }, /segment '\*\*' is not supported/],
  'a response body that is none': [{ ...WHOLE, responseBody: 'none' }, /response_body 'none'/],
  'a response body that is a text': [{ ...WHOLE, responseBody: 'text' }, /response_body 'text'/],
};

for (const [what, [rule, message]] of Object.entries(REFUSED)) {
  test(`${what} stops the start and names the RPC`, (t) => {
    const error = t.throws(() => createRoutes(proceduresOf([rule])));
    t.regex(error.message, message);
    t.regex(error.message, /test\.Things\.Call0: /);
  });
}

test('all problems are told together', (t) => {
  const error = t.throws(() => createRoutes(proceduresOf([undefined, { ...WHOLE, body: 'name' }])));
  t.regex(error.message, /Call0: .*\n.*Call1: /);
});

test('two RPCs on one route stop the start, whatever their variables are called', (t) => {
  t.throws(() => createRoutes(proceduresOf([WHOLE, WHOLE])), { message: /POST \/v1\/things is bound twice/ });
  const one = { pattern: post('/v1/{id}'), body: '*' };
  const other = { pattern: post('/v1/{name}'), body: '*' };
  t.throws(() => createRoutes(proceduresOf([one, other])), { message: /bound twice/ });
});

const routes = createRoutes([
  ...createModelService({ engine: createScriptedEngine() }),
  ...createCatalogService({ catalogs: {} as never }),
]);

test('the router: literals, variables, HEAD, other methods', (t) => {
  const router = new Router(routes);
  const found = (method: string, path: string): unknown => {
    const match = router.find(method, path);
    if (match.kind === 'route') return [match.route.template.text, Object.fromEntries(match.variables)];
    return match.kind === 'method_not_allowed' ? match.allow : undefined;
  };
  t.deepEqual(found('GET', '/v1/models'), ['/v1/models', {}]);
  t.deepEqual(found('HEAD', '/v1/models'), ['/v1/models', {}]);
  t.deepEqual(found('GET', '/v1/models/m'), ['/v1/models/{model}', { model: 'm' }]);
  t.deepEqual(found('HEAD', '/v1/models/m'), ['/v1/models/{model}', { model: 'm' }]);
  t.deepEqual(found('DELETE', '/v1/catalogs/c'), ['/v1/catalogs/{id}', { id: 'c' }]);
  t.is(found('POST', '/v1/models'), 'GET, HEAD');
  t.is(found('PUT', '/v1/catalogs/c'), 'DELETE, GET, HEAD');
  t.is(found('get', '/v1/models'), 'GET, HEAD');
  t.is(found('GET', '/v1/none'), undefined);
});

test('a created resource has a path of its own', (t) => {
  const created = routes.find(({ method }) => method === 'POST');
  t.is(created?.successStatus, 201);
  t.is(created?.location({ catalog: { id: 'a b/ü' } }), '/v1/catalogs/a%20b%2F%C3%BC');
});

const match = (template: string, path: string): object | null => {
  const variables = matchPath(parsePathTemplate(template), path);
  return variables === null ? null : Object.fromEntries(variables);
};

const PATHS: readonly (readonly [template: string, path: string, variables: object | null])[] = [
  ['/v1/models', '/v1/models', {}],
  ['/v1/models', '/v1/models/', null],
  ['/v1/models', '/v1/model', null],
  ['/v1/models', 'v1/models', null],
  ['/v1/models', '//v1/models', null],
  ['/v1/models', '/v1/%6dodels', null],
  ['/v1/models', '', null],
  ['/v1/models/{model}', '/v1/models/minilm-l6@r1', { model: 'minilm-l6@r1' }],
  ['/v1/models/{model}', '/v1/models/a%2Fb', { model: 'a/b' }],
  ['/v1/models/{model}', '/v1/models/a%20b', { model: 'a b' }],
  ['/v1/models/{model}', '/v1/models/a+b', { model: 'a+b' }],
  ['/v1/models/{model}', '/v1/models/%E2%82%AC', { model: '€' }],
  ['/v1/models/{model}', '/v1/models/%FF', null],
  ['/v1/models/{model}', '/v1/models/%', null],
  ['/v1/models/{model}', '/v1/models/%zz', null],
  ['/v1/models/{model}', '/v1/models/', null],
  ['/v1/models/{model}', '/v1/models/a/b', null],
  ['/v1/{a}/x/{b}', '/v1/1/x/2', { a: '1', b: '2' }],
  ['/v1/{a}/x/{b}', '/v1/1/y/2', null],
];

for (const [template, path, variables] of PATHS)
  test(`${template} on ${path}`, (t) => t.deepEqual(match(template, path), variables));

for (const template of 'v1/models||/v1/*|/v1/**|/v1/{a=*}|/v1/{a.b}|/v1/{A}|/v1/{}|/v1//x|/v1/x:verb|/v1/x{a}|/v1/ü|/'.split(
  '|',
))
  test(`the template '${template}' is not supported`, (t) => {
    t.throws(() => parsePathTemplate(template), { message: /^path template '.*'(: segment| must begin)/ });
  });
