/** Contract 5: which requests need a key, and what a wrong one gets. */
import type { Call } from '../call.ts';
import type { Check } from '../check.ts';
import { hasStatus, type Refusal, refuses, same } from '../expect.ts';

/** What a missing or a wrong key gets. */
const REFUSAL: Refusal = { status: 401, code: 'authentication_required' };
/** The same over RPC: UNAUTHENTICATED. */
export const RPC_REFUSAL = { code: 16, reason: 'AUTHENTICATION_REQUIRED' } as const;
/** A text in the form of a key, with a wrong checksum. */
const FALSE_KEY = `ump_live_${'0'.repeat(49)}`;
/** Authorization headers without a valid key. The first has not even the form of a key. */
export const WRONG_KEYS: readonly string[] = [
  ...['Bearer not-a-key', `Bearer ${FALSE_KEY}`, `Bearer ${FALSE_KEY.slice(0, 20)}`, FALSE_KEY, 'Basic dTpw'],
  ...['Bearer', 'Bearer  ', '', `Bearer "${FALSE_KEY}"`, `Bearer ${FALSE_KEY}, Bearer ${FALSE_KEY}`],
  ...[`Bearer ${FALSE_KEY} ${FALSE_KEY}`, `Bearer ${'x'.repeat(4_000)}`],
];

/** A request of each kind for which a key is needed. */
const CATALOG_CALLS: readonly Call[] = [
  { path: '/v1/catalogs', body: '{"id":"a","model":"b","choices":["c","d"]}' },
  { path: '/v1/catalogs/any' },
  { path: '/v1/catalogs/any', method: 'DELETE' },
];

/** The checks of authentication. */
export const KEY_CHECKS: readonly Check[] = [
  {
    id: 'keys.needed',
    section: '5',
    promise: 'catalogs need a key: without one every method is 401',
    tried: 'POST, GET and DELETE without a key',
    async run(kit) {
      for (const call of CATALOG_CALLS) refuses(await kit.http1(call), REFUSAL);
    },
  },
  {
    id: 'keys.challenge',
    section: '5',
    promise: 'a 401 names the scheme to authenticate by',
    tried: 'WWW-Authenticate of a request without a key',
    async run(kit) {
      const answer = await kit.http1({ path: '/v1/catalogs/any' });
      hasStatus(answer, 401);
      same('WWW-Authenticate', answer.headers['www-authenticate'], 'Bearer');
    },
  },
  {
    id: 'keys.wrong-for-catalogs',
    section: '5',
    promise: 'a wrong key is 401 like a missing one',
    tried: 'POST, GET and DELETE of catalogs with a wrong key',
    async run(kit) {
      for (const call of CATALOG_CALLS) {
        refuses(await kit.http1({ ...call, headers: { authorization: WRONG_KEYS[1] } }), REFUSAL);
      }
    },
  },
  {
    id: 'keys.wrong-for-decisions',
    section: '5',
    promise: 'a wrong key is 401 also where none is needed: nobody is served as anonymous by mistake',
    tried: 'decisions with keys of a wrong form, two keys, another scheme, no key after Bearer, and an empty header',
    async run(kit) {
      const body = JSON.stringify(await kit.question());
      for (const authorization of [...WRONG_KEYS, 'Bearer \u00e9\u00ff']) {
        refuses(await kit.http1({ path: '/v1/decisions', body, headers: { authorization } }), REFUSAL);
      }
    },
  },
  {
    id: 'keys.wrong-for-models',
    section: '5',
    promise: 'a wrong key is 401 for models, too',
    tried: 'the list and one model with a wrong key',
    async run(kit) {
      for (const path of ['/v1/models', '/v1/models/any']) {
        refuses(await kit.http1({ path, headers: { authorization: WRONG_KEYS[0] } }), REFUSAL);
      }
    },
  },
  {
    id: 'keys.before-the-body',
    section: '5',
    promise: 'a caller without a key is not told what is wrong with the request',
    tried: 'the creation of a catalog without a key, with a body that is not JSON',
    async run(kit) {
      refuses(await kit.http1({ path: '/v1/catalogs', body: '{' }), REFUSAL);
    },
  },
  {
    id: 'keys.good-for-models',
    section: '5',
    promise: 'a key is accepted for models, however its scheme is written',
    tried: 'the list with the key after Bearer, bearer, BEARER and several spaces',
    needs: ['key'],
    async run(kit) {
      for (const scheme of ['Bearer ', 'bearer ', 'BEARER ', 'Bearer   ']) {
        const headers = { authorization: scheme + kit.key };
        hasStatus(await kit.http1({ path: '/v1/models', headers }), 200);
      }
    },
  },
];
