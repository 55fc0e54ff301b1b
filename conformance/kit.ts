/** What checks work with: requests, what is known of the deployment, and catalogs that are deleted at the end. */
import { randomBytes } from 'node:crypto';
import { type Answer, jsonOf, objectAt, show } from './answer.ts';
import type { Call } from './call.ts';
import type { Caller } from './caller.ts';
import { hasStatus } from './expect.ts';
import { BrokenPromise, Skipped } from './outcome.ts';

/** A model as the list shows it. */
export interface ListedModel {
  readonly id: string;
  readonly status: string;
  readonly limits: { readonly input_tokens: number; readonly candidate_tokens: number; readonly choices: number };
}

/** The body of a request for a decision. */
export interface Question {
  readonly model: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
}

/** What of a decision is compared with other decisions: everything but its id. */
export interface Decided {
  readonly choice: string;
  readonly confidence: number;
  readonly probabilities: Readonly<Record<string, number>>;
  readonly inputTokens: number;
  readonly model: string;
}

/** The keys, the requests over both versions of HTTP, and the facts of the deployment that checks use. */
export interface Kit {
  readonly key: string | undefined;
  /** A key of another owner; without it the checks with two owners are skipped. */
  readonly otherKey: string | undefined;
  http1(call: Call): Promise<Answer>;
  http2(call: Call): Promise<Answer>;
  /** The listed models. They are asked for once. */
  models(): Promise<readonly ListedModel[]>;
  /** The model to decide with, which is ready. Throws Skipped if there is none. */
  model(): Promise<ListedModel>;
  /** A valid question for that model. */
  question(): Promise<Question>;
  /** Asks for a decision. */
  decide(body: unknown, key?: string): Promise<Answer>;
  /** The decision in an answer. Throws BrokenPromise if the answer is anything else. */
  decided(answer: Answer): Decided;
  /** Asks for a decision, which must be made. Throws BrokenPromise. */
  decision(body: unknown, key?: string): Promise<Decided>;
  /** An id that nobody uses. `clear()` deletes what either key has stored under it. */
  newCatalogId(): string;
  /** Creates, reads or deletes a catalog. */
  catalog(method: 'POST' | 'GET' | 'DELETE', idOrBody: string | object, key?: string): Promise<Answer>;
  /** Deletes the catalogs that checks may have left. */
  clear(): Promise<void>;
}

/** The Authorization header for a key; no header without one. */
export function bearer(key: string | undefined): { readonly authorization?: string } {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}

/** A question that any model should answer with clearly unequal probabilities, so that answers can be told apart. */
const QUESTION = {
  input: 'I was charged twice for my order',
  instruction: 'Which team should handle this?',
  choices: ['billing', 'shipping', 'technical support'],
} as const;

/** A kit over a caller. `model`: the id of the model to decide with; by default the first that is ready. */
export function createKit(options: {
  readonly caller: Caller;
  readonly key?: string | undefined;
  readonly otherKey?: string | undefined;
  readonly model?: string | undefined;
  /** A text that no other catalog id has; by default a random one. */
  readonly unique?: () => string;
}): Kit {
  const { caller, key, otherKey, unique = () => randomBytes(9).toString('hex') } = options;
  const catalogs = new Set<string>();
  let listed: Promise<readonly ListedModel[]> | undefined;

  const kit: Kit = {
    key,
    otherKey,
    http1: (call) => caller.http1(call),
    http2: (call) => caller.http2(call),
    models() {
      listed ??= caller.http1({ path: '/v1/models' }).then((answer) => {
        hasStatus(answer, 200);
        const { data } = jsonOf(answer);
        if (!Array.isArray(data)) throw new BrokenPromise(`data is not a list of models: ${show(data)}`);
        return data as readonly ListedModel[];
      });
      return listed;
    },
    async model() {
      const models = await kit.models().catch((error: unknown) => {
        throw new Skipped(`the models cannot be listed: ${error instanceof Error ? error.message : error}`);
      });
      const ready = models.filter(({ status }) => status === 'ready');
      const found = options.model === undefined ? ready[0] : ready.find(({ id }) => id === options.model);
      if (found === undefined) throw new Skipped(`${options.model ?? 'no model'} is not ready`);
      return found;
    },
    question: async () => ({ model: (await kit.model()).id, ...QUESTION }),
    decide: (body, withKey) =>
      caller.http1({ path: '/v1/decisions', body: JSON.stringify(body), headers: bearer(withKey) }),
    decided(answer) {
      hasStatus(answer, 200);
      const body = jsonOf(answer);
      const output = objectAt(body, 'output');
      const probabilities = objectAt(output, 'probabilities');
      return {
        choice: output.choice as string,
        confidence: output.confidence as number,
        probabilities: probabilities as Record<string, number>,
        inputTokens: objectAt(body, 'usage').input_tokens as number,
        model: body.model as string,
      };
    },
    decision: async (body, withKey) => kit.decided(await kit.decide(body, withKey)),
    newCatalogId() {
      const id = `conformance-${unique()}`;
      catalogs.add(id);
      return id;
    },
    catalog: (method, idOrBody, withKey = key) =>
      caller.http1(
        typeof idOrBody === 'string'
          ? { method, path: `/v1/catalogs/${encodeURIComponent(idOrBody)}`, headers: bearer(withKey) }
          : { method, path: '/v1/catalogs', headers: bearer(withKey), body: JSON.stringify(idOrBody) },
      ),
    async clear() {
      for (const owner of [key, otherKey]) {
        if (owner === undefined) continue;
        for (const id of catalogs) await kit.catalog('DELETE', id, owner).catch(() => undefined);
      }
      catalogs.clear();
    },
  };
  return kit;
}
