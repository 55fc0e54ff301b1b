import test from 'ava';
import { matchPath, parsePathTemplate } from '../../../src/wire/rest/path-template.ts';

const match = (template: string, path: string): object | null => {
  const variables = matchPath(parsePathTemplate(template), path);
  return variables === null ? null : Object.fromEntries(variables);
};

const CASES: readonly (readonly [template: string, path: string, variables: object | null])[] = [
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

for (const [template, path, variables] of CASES)
  test(`${template} on ${path}`, (t) => t.deepEqual(match(template, path), variables));

for (const template of [
  'v1/models',
  '',
  '/v1/*',
  '/v1/**',
  '/v1/{a=*}',
  '/v1/{a.b}',
  '/v1/{A}',
  '/v1/{}',
  '/v1//x',
  '/v1/x:verb',
  '/v1/x{a}',
  '/v1/ü',
  '/',
])
  test(`the template '${template}' is not supported`, (t) => {
    t.throws(() => parsePathTemplate(template), { message: /^path template '.*'(: segment| must begin)/ });
  });
