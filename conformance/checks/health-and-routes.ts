/** Contract 2.9, 4 and 7: health, the routes with their methods, and what every answer carries. */
import { type Answer, jsonOf, objectAt, REQUEST_ID } from '../answer.ts';
import type { Check } from '../check.ts';
import { hasStatus, holds, matches, refuses, same } from '../expect.ts';
import { bearer, type Kit } from '../kit.ts';

/** The types of errors that the contract has. */
const TYPES = ['invalid_request_error', 'authentication_error', 'rate_limit_error', 'model_error', 'server_error'];
/** A text without the form of a key: the deployment can refuse it without looking it up. */
const WRONG_KEY = 'not-a-key';

/** Answers of seven kinds, each under a name of its kind. */
async function variousAnswers(kit: Kit): Promise<Readonly<Record<string, Answer>>> {
  return {
    live: await kit.http1({ path: '/health/live' }),
    models: await kit.http1({ path: '/v1/models' }),
    decision: await kit.decide(await kit.question()),
    'a bad request': await kit.decide({}),
    'an unknown path': await kit.http1({ path: '/v1/nowhere' }),
    'a wrong method': await kit.http1({ path: '/v1/decisions' }),
    'a missing key': await kit.http1({ path: '/v1/catalogs/none' }),
  };
}

/** The methods of every resource, as Allow lists them. */
const ALLOWED: Readonly<Record<string, string>> = {
  '/v1/decisions': 'POST',
  '/v1/models': 'GET, HEAD',
  '/v1/models/any': 'GET, HEAD',
  '/v1/catalogs': 'POST',
  '/v1/catalogs/any': 'DELETE, GET, HEAD',
  '/health/live': 'GET, HEAD',
  '/health/ready': 'GET, HEAD',
};

/** The check that `/health/<state>` answers with that state. */
function saysOf(state: 'live' | 'ready', section: string, promise: string): Check {
  return {
    id: `health.${state}`,
    section,
    promise,
    tried: `GET /health/${state} is 200 {"status":"${state}"}`,
    async run(kit) {
      const answer = await kit.http1({ path: `/health/${state}` });
      hasStatus(answer, 200);
      same('body', jsonOf(answer), { status: state });
    },
  };
}

/** The checks of health, of the routes, and of what every response carries. */
export const HEALTH_AND_ROUTE_CHECKS: readonly Check[] = [
  saysOf('live', '4.7', 'the process says that it is alive'),
  saysOf('ready', '4.8', 'the process says that it can decide'),
  {
    id: 'health.keyless',
    section: '5',
    promise: 'health needs no key and looks at none, so that a wrong one does not matter',
    tried: 'GET /health/live with a wrong key is 200',
    async run(kit) {
      hasStatus(await kit.http1({ path: '/health/live', headers: bearer(WRONG_KEY) }), 200);
    },
  },
  {
    id: 'routes.unknown',
    section: '7',
    promise: 'a path that does not exist is 404 in the envelope',
    tried: 'paths above, beside and below those that exist, and a slash at their ends',
    async run(kit) {
      const above = ['/v1', '/v1/', '/health', '/health/', '/v1/none', '/v2/models', '/v1/decision', '/favicon.ico'];
      for (const path of [...above, '/v1/decisions/', '/v1/models/', '/v1/models/a/b', '/health/live/']) {
        refuses(await kit.http1({ path }), { status: 404, code: 'route_not_found' });
      }
      refuses(await kit.http1({ path: '/v1/none', body: '{}' }), { status: 404, code: 'route_not_found' });
    },
  },
  {
    id: 'routes.methods',
    section: '4',
    promise: 'a method that a resource does not have is 405 in the envelope, and Allow names those that it has',
    tried: 'GET, POST, PUT, PATCH, DELETE and OPTIONS to every resource that does not have them',
    async run(kit) {
      for (const [path, allow] of Object.entries(ALLOWED)) {
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
          if (allow.split(', ').includes(method)) continue;
          const answer = await kit.http1({ path, method });
          refuses(answer, { status: 405, code: 'method_not_allowed' });
          same(`Allow of ${path}`, answer.headers.allow, allow);
        }
      }
    },
  },
  {
    id: 'routes.head',
    section: '4',
    promise: 'HEAD is GET without the body',
    tried: 'HEAD and GET of the models, of an unknown model, of health and of an unknown path',
    async run(kit) {
      for (const path of ['/v1/models', '/v1/models/none', '/health/live', '/v1/none']) {
        const [get, head] = [await kit.http1({ path }), await kit.http1({ path, method: 'HEAD' })];
        same(`status of HEAD ${path}`, head.status, get.status);
        same(`body of HEAD ${path}`, head.body.length, 0);
        for (const name of ['content-type', 'content-length']) {
          same(`${name} of HEAD ${path}`, head.headers[name], get.headers[name]);
        }
      }
    },
  },
  {
    id: 'routes.http2',
    section: '4',
    promise: 'REST is the same over HTTP/2',
    tried: 'a decision, a bad request and an unknown path over HTTP/2',
    async run(kit) {
      const question = await kit.question();
      const wanted = await kit.decision(question);
      const path = '/v1/decisions';
      same('decision', kit.decided(await kit.http2({ path, body: JSON.stringify(question) })), wanted);
      refuses(await kit.http2({ path, body: '{}' }), { status: 400, code: 'missing_field', param: 'model' });
      const unknown = await kit.http2({ path: '/v1/none' });
      refuses(unknown, { status: 404, code: 'route_not_found' });
      matches('X-Request-ID', unknown.headers['x-request-id'], REQUEST_ID);
    },
  },
  {
    id: 'answers.request-id',
    section: '2.9',
    promise: 'every answer carries X-Request-ID, errors and health included',
    tried: 'answers of seven kinds, a HEAD of nothing, and Connect’s',
    async run(kit) {
      const others = {
        'a HEAD of nothing': await kit.http1({ path: '/v1/none', method: 'HEAD' }),
        Connect: await kit.http1({ path: '/umpire.v1.ModelService/ListModels', body: '{}' }),
        'Connect, refused': await kit.http1({ path: '/umpire.v1.DecisionService/CreateDecision', body: '{}' }),
        'Connect, unknown': await kit.http1({ path: '/umpire.v1.DecisionService/None', body: '{}' }),
      };
      for (const [what, answer] of Object.entries({ ...(await variousAnswers(kit)), ...others })) {
        matches(`X-Request-ID of ${what}`, answer.headers['x-request-id'], REQUEST_ID);
      }
    },
  },
  {
    id: 'answers.request-id-unique',
    section: '2.9',
    promise: 'no two answers share an X-Request-ID, and it is never the caller’s own',
    tried: 'three requests that all send the same X-Request-ID',
    async run(kit) {
      const own = 'req_ofthecaller';
      const ids = [];
      for (let turn = 0; turn < 3; turn += 1) {
        ids.push((await kit.http1({ path: '/v1/models', headers: { 'x-request-id': own } })).headers['x-request-id']);
      }
      same('different ids', new Set(ids).size, 3);
      holds(!ids.includes(own), 'the caller’s own X-Request-ID came back: a proxy may be configured to pass it on');
    },
  },
  {
    id: 'answers.json',
    section: '10',
    promise: 'bodies are application/json',
    tried: 'answers of seven kinds',
    async run(kit) {
      for (const [what, answer] of Object.entries(await variousAnswers(kit))) {
        matches(`Content-Type of ${what}`, answer.headers['content-type'], /^application\/json(; ?charset=utf-8)?$/i);
        jsonOf(answer);
      }
    },
  },
  {
    id: 'answers.envelope',
    section: '2.8',
    promise: 'an error is {"error": {message, type, code, param}} and nothing else, its type one of the five',
    tried: 'a bad request, an unknown path, a wrong method and a missing key',
    async run(kit) {
      for (const [what, answer] of Object.entries(await variousAnswers(kit))) {
        if (answer.status < 400) continue;
        const body = jsonOf(answer);
        same(`properties of ${what}`, Object.keys(body), ['error']);
        const error = objectAt(body, 'error');
        same(`properties of error (${what})`, Object.keys(error).toSorted(), ['code', 'message', 'param', 'type']);
        matches(`message of ${what}`, error.message, /./);
        matches(`code of ${what}`, error.code, /^[a-z][a-z_]*$/);
        holds(TYPES.includes(error.type as string), `type of ${what}: ${error.type}`);
        holds(error.param === null || typeof error.param === 'string', `param of ${what}: ${error.param}`);
      }
    },
  },
];
