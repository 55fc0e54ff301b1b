/** Making a decision: which model, which choices, what the engine says, and the distribution that the caller reads. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CreateDecisionRequest, DecisionSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { Engine, ScoreOutcome } from '../engine/engine.ts';
import { applyTemperature } from '../engine/tempered.ts';
import { authenticationRequired } from './authenticate.ts';
import type { Call, CallFacts } from './call.ts';
import type { DecidingCatalog } from './catalog-cache.ts';
import type { Catalogs } from './catalogs.ts';
import { DomainError } from './errors.ts';
import { orFault } from './failures.ts';
import { newId } from './ids.ts';
import type { UnlearnedNotice } from './learned.ts';
import { qualifiedName, usableModel } from './models.ts';
import { roundDistribution } from './probabilities.ts';

/** A question whose fields have the right shape. Its choices are those of `catalog`, if it has one. */
export type DecisionRequest = Omit<CreateDecisionRequest, '$typeName' | '$unknown'>;

/** Resolves model and choices of a request and has the engine decide it. */
export class Decider {
  readonly #engine: Engine;
  readonly #catalogs: Pick<Catalogs, 'resolve'>;
  readonly #unlearned: UnlearnedNotice | undefined;

  /** `unlearned` hears of catalogs that learned for another revision than the one that decides. */
  constructor(options: {
    readonly engine: Engine;
    readonly catalogs: Pick<Catalogs, 'resolve'>;
    readonly unlearned?: UnlearnedNotice;
  }) {
    this.#engine = options.engine;
    this.#catalogs = options.catalogs;
    this.#unlearned = options.unlearned;
  }

  /**
   * Makes one decision, and leaves the facts of it in the call.
   *
   * @throws DomainError AUTHENTICATION_REQUIRED, UNKNOWN_MODEL, MODEL_DISABLED, MODEL_UNAVAILABLE, UNKNOWN_CATALOG,
   * CATALOG_MODEL_MISMATCH, TOO_MANY_CHOICES, INPUT_TOKENS_EXCEEDED, CANDIDATE_TOKENS_EXCEEDED, OVERLOADED,
   * DEADLINE_EXCEEDED, CANCELED, DRAINING, STORE_UNAVAILABLE, STORAGE_CORRUPT.
   */
  async decide(request: DecisionRequest, call: Call): Promise<MessageInitShape<typeof DecisionSchema>> {
    const { caller } = call;
    if (request.catalog !== undefined && caller.kind === 'anonymous') {
      throw authenticationRequired('a catalog belongs to a key: send it as Authorization: Bearer <API_KEY>');
    }
    const model = usableModel(this.#engine.models(), request.model);
    const catalog = request.catalog === undefined ? undefined : await this.#catalog(call, request.catalog, model.id);
    const choices = catalog?.sortedChoices ?? request.choices.toSorted();
    if (choices.length > model.limits.choices) throw tooManyChoices(choices.length, model.limits.choices, request);

    const { id, revision } = model;
    const name = qualifiedName(model);
    const learned = catalog?.learned?.model === name ? catalog.learned : undefined;
    if (catalog?.learned !== undefined && learned === undefined && caller.kind === 'key') {
      this.#unlearned?.give(caller.owner, request.catalog ?? '', catalog.learned.model, name);
    }
    const job = {
      model: id,
      revision,
      input: request.input,
      instruction: request.instruction,
      choices: catalog?.read?.texts ?? choices,
      vector: learned?.readsVector === true,
    };
    call.engaged();
    const outcome = await orFault(() => this.#engine.score(job, call));
    if (outcome.kind !== 'scored') throw tokensExceeded(outcome, request);
    const said = catalog?.read?.inOrder(outcome.probabilities) ?? outcome.probabilities;
    const { winner, probabilities } = roundDistribution(
      learned?.decide(said, outcome.vector) ?? applyTemperature(said, catalog?.calibrations?.[name] ?? 1),
    );
    const confidence = probabilities[winner] as number;
    const { inputTokens, unread, timings, step } = outcome;
    const facts: CallFacts = { model: name, languages: model.languages, inputTokens, unread, confidence, step };
    Object.assign(call.facts, facts, { choices: choices.length, learned: learned?.digest, timings });
    return {
      id: newId('dec_'),
      object: 'decision',
      model: name,
      output: {
        choice: choices[winner] as string,
        confidence,
        // Choices may be called `__proto__`: fromEntries makes it a property of its own, assignment would not.
        probabilities: Object.fromEntries(choices.map((choice, index) => [choice, probabilities[index] as number])),
      },
      usage: { inputTokens },
    };
  }

  async #catalog({ caller, storeBudget }: Call, id: string, model: string): Promise<DecidingCatalog> {
    const catalog = caller.kind === 'key' ? await this.#catalogs.resolve(caller.owner, id, storeBudget) : undefined;
    if (catalog === undefined) {
      throw new DomainError('UNKNOWN_CATALOG', 'this key has no catalog with that id', { param: 'catalog' });
    }
    if (catalog.model !== model) {
      throw new DomainError('CATALOG_MODEL_MISMATCH', `the catalog belongs to the model '${catalog.model}'`, {
        param: 'model',
      });
    }
    return catalog;
  }
}

function tooManyChoices(count: number, limit: number, request: DecisionRequest): DomainError {
  return new DomainError('TOO_MANY_CHOICES', `${count} choices; the model takes at most ${limit}`, {
    param: request.catalog === undefined ? 'choices' : 'catalog',
  });
}

function tokensExceeded(outcome: Exclude<ScoreOutcome, { kind: 'scored' }>, request: DecisionRequest): DomainError {
  if (outcome.kind === 'input_too_long') {
    const counted = outcome.atLeast ? `more than ${outcome.tokens}` : String(outcome.tokens);
    return new DomainError(
      'INPUT_TOKENS_EXCEEDED',
      `instruction and input have ${counted} tokens; the model takes at most ${outcome.limit}`,
      { param: 'input' },
    );
  }
  // Its place in the request: the engine got the choices sorted.
  const place = request.choices.indexOf(outcome.choice);
  const which = place < 0 ? 'a choice of the catalog' : `choices[${place}]`;
  return new DomainError(
    'CANDIDATE_TOKENS_EXCEEDED',
    `${which} has ${outcome.tokens} tokens; the model takes at most ${outcome.limit} in one choice`,
    { param: request.catalog === undefined ? 'choices' : 'catalog' },
  );
}
