/** Contract 2.5, 2.6, 4.2 and 4.3: model discovery. */
import { jsonOf, show } from '../answer.ts';
import type { Check } from '../check.ts';
import { hasStatus, holds, matches, refuses, same } from '../expect.ts';

/** The form of a model's id. */
const ID = /^[a-z0-9][a-z0-9._-]{0,63}$/;
/** The statuses that the contract has. */
const STATUSES = ['ready', 'unavailable', 'disabled'];

/** The checks of model discovery. */
export const MODEL_CHECKS: readonly Check[] = [
  {
    id: 'models.list',
    section: '2.6',
    promise: 'the list is {"object": "list", "data": […]} and has each model once, without a key',
    tried: 'GET /v1/models',
    async run(kit) {
      const answer = await kit.http1({ path: '/v1/models' });
      hasStatus(answer, 200);
      const { object, data, ...others } = jsonOf(answer);
      same('object', object, 'list');
      same('other properties', others, {});
      holds(Array.isArray(data), `data: ${show(data)}`);
      const ids = (await kit.models()).map(({ id }) => id);
      same('ids', ids, [...new Set(ids)]);
    },
  },
  {
    id: 'models.descriptor',
    section: '2.5',
    promise: 'a model has id, object, owned_by, status and limits, of the right kinds',
    tried: 'every model of the list',
    async run(kit) {
      for (const model of (await kit.models()) as unknown as Record<string, unknown>[]) {
        same('properties', Object.keys(model).toSorted(), ['id', 'limits', 'object', 'owned_by', 'status']);
        matches('id', model.id, ID);
        same('object', model.object, 'model');
        matches('owned_by', model.owned_by, /./);
        holds(STATUSES.includes(model.status as string), `status of ${model.id}: ${show(model.status)}`);
        const limits = model.limits as Record<string, unknown>;
        same(`limits of ${model.id}`, Object.keys(limits).toSorted(), ['candidate_tokens', 'choices', 'input_tokens']);
        for (const [name, value] of Object.entries(limits)) {
          holds(Number.isInteger(value) && (value as number) > 0, `limits.${name} of ${model.id}: ${show(value)}`);
        }
      }
    },
  },
  {
    id: 'models.ready',
    section: '3.1',
    promise: 'a deployment that decides has a model that is ready',
    tried: 'the statuses of the list',
    async run(kit) {
      const statuses = (await kit.models()).map(({ id, status }) => `${id} is ${status}`);
      holds(
        statuses.some((text) => text.endsWith(' ready')),
        `no model is ready: ${statuses.join(', ') || 'there is none'}`,
      );
    },
  },
  {
    id: 'models.get',
    section: '4.3',
    promise: 'each model can be read by its id, and is as the list shows it',
    tried: 'GET /v1/models/{id} for every id of the list',
    async run(kit) {
      for (const model of await kit.models()) {
        const answer = await kit.http1({ path: `/v1/models/${model.id}` });
        hasStatus(answer, 200);
        const { status: _, ...found } = jsonOf(answer);
        const { status: __, ...listed } = model;
        same(`model ${model.id}`, found, listed);
      }
    },
  },
  {
    id: 'models.revision',
    section: '4.3',
    promise: 'a revision can be read by its qualified name, and shows the plain id',
    tried: 'GET /v1/models/{model of a decision}',
    async run(kit) {
      const { model } = await kit.decision(await kit.question());
      const answer = await kit.http1({ path: `/v1/models/${model}` });
      hasStatus(answer, 200);
      same('id', jsonOf(answer).id, (await kit.model()).id);
    },
  },
  {
    id: 'models.unknown',
    section: '4.3',
    promise: 'a model that does not exist is 404 in the envelope',
    tried: 'GET /v1/models/ of names and revisions that are not served, and of texts that cannot be a name',
    async run(kit) {
      const { id } = await kit.model();
      const odd = ['__proto__', 'constructor', ' ', '-', '*', '\u{1f600}', 'm'.repeat(5000)];
      for (const name of ['no-such-model', `${id}@no-such-revision`, `${id}@`, '@r1', 'NO-MODEL', ...odd]) {
        const answer = await kit.http1({ path: `/v1/models/${encodeURIComponent(name)}` });
        refuses(answer, { status: 404, code: 'model_not_found', param: 'model' });
      }
    },
  },
];
