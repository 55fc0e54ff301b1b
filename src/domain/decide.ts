/** Making a decision: which model, which choices, what the engine says, and the distribution that the caller reads. */
import type { Engine, JobTerms, JobTimings, ScoreOutcome, Unread } from '../engine/engine.ts';
import { applyTemperature } from '../engine/tempered.ts';
import type { StoreBudget } from '../stores/budget.ts';
import { type Caller, jobTerms } from './callers.ts';
import { engineFault } from './engine-faults.ts';
import { DomainError } from './errors.ts';
import { newId } from './ids.ts';
import type { Learned } from './learned.ts';
import { qualifiedName, usableModel } from './models.ts';
import { roundDistribution } from './probabilities.ts';
import type { ReadChoices } from './read-choices.ts';

/** A question whose fields have the right shape. Exactly one of `choices` and `catalog` is defined. */
export interface DecisionRequest {
  readonly model: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[] | undefined;
  readonly catalog: string | undefined;
}

/** On whose behalf a decision is made, and until when. */
export interface DecisionTerms {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  /** Milliseconds on the clock of `performance.now()`. */
  readonly deadline: number;
  /**
   * Called when the engine begins; the function that it returns is called when the engine is done, which may be after
   * the caller has left.
   */
  retain(): () => void;
  /** How long the request may still wait for stores. */
  readonly storeBudget: StoreBudget;
}

/** One decision. `choices` are in code-unit order, and `probabilities` in the order of `choices`. */
export interface DecisionResult {
  readonly id: string;
  /** `<model_id>@<revision>`. */
  readonly model: string;
  readonly languages: readonly string[] | undefined;
  readonly choice: string;
  readonly confidence: number;
  readonly choices: readonly string[];
  readonly probabilities: Float64Array;
  readonly inputTokens: number;
  /** How much of the input the model has no words for, if it can tell. */
  readonly unread: Unread | undefined;
  readonly timings: JobTimings;
  /** The digest of the learned state that decided, if one did. */
  readonly learned: string | undefined;
}

/** The part of a stored catalog that decides. */
export interface DecidingCatalog {
  readonly model: string;
  /** In code-unit order. */
  readonly sortedChoices: readonly string[];
  /** What the model reads in their place, if choices are described. */
  readonly read?: ReadChoices;
  readonly learned?: Learned;
  /** Temperatures by `<model_id>@<revision>`; they apply where nothing was learned. */
  readonly calibrations?: Readonly<Record<string, number>>;
}

/** Finds catalogs for decisions. */
export interface CatalogResolver {
  /** The owner's catalog, or undefined; never older than a second. Throws STORE_UNAVAILABLE and STORAGE_CORRUPT. */
  resolve(owner: string, id: string, budget: StoreBudget): Promise<DecidingCatalog | undefined>;
}

/** Resolves model and choices of a request and has the engine decide it. */
export interface Decider {
  /**
   * Makes one decision.
   *
   * @throws DomainError AUTHENTICATION_REQUIRED, UNKNOWN_MODEL, MODEL_DISABLED, MODEL_UNAVAILABLE, UNKNOWN_CATALOG,
   * CATALOG_MODEL_MISMATCH, TOO_MANY_CHOICES, INPUT_TOKENS_EXCEEDED, CANDIDATE_TOKENS_EXCEEDED, OVERLOADED,
   * DEADLINE_EXCEEDED, CANCELED, DRAINING, STORE_UNAVAILABLE, STORAGE_CORRUPT.
   */
  decide(request: DecisionRequest, terms: DecisionTerms): Promise<DecisionResult>;
}

/** A decider over an engine and the catalogs of a deployment. */
export function createDecider(options: {
  readonly engine: Engine;
  readonly catalogs: CatalogResolver;
  /** Called for a decision of a catalog that learned for another revision of its model than the one that decides. */
  readonly unlearned?: (owner: string, catalog: string, learnedFor: string, model: string) => void;
}): Decider {
  const { engine, catalogs, unlearned = () => {} } = options;
  return {
    async decide(request, terms) {
      const { caller } = terms;
      if (request.catalog !== undefined && caller.kind === 'anonymous') {
        throw new DomainError(
          'AUTHENTICATION_REQUIRED',
          'a catalog belongs to a key: send it as Authorization: Bearer <API_KEY>',
        );
      }
      const model = usableModel(engine.models(), request.model);
      const catalog =
        request.catalog === undefined ? undefined : await decidingCatalog(catalogs, terms, request.catalog, model.id);
      const choices = catalog?.sortedChoices ?? request.choices?.toSorted() ?? [];
      if (choices.length > model.limits.choices) throw tooManyChoices(choices.length, model.limits.choices, request);

      const { id, revision } = model;
      const name = qualifiedName(model);
      const learned = catalog?.learned?.model === name ? catalog.learned : undefined;
      if (catalog?.learned !== undefined && learned === undefined && caller.kind === 'key') {
        unlearned(caller.owner, request.catalog ?? '', catalog.learned.model, name);
      }
      const job = {
        model: id,
        revision,
        input: request.input,
        instruction: request.instruction,
        choices: catalog?.read?.texts ?? choices,
        vector: learned?.readsVector === true,
      };
      const outcome = await score(engine, job, jobTerms(terms), terms.retain());
      if (outcome.kind !== 'scored') throw tokensExceeded(outcome, request);
      const said = catalog?.read?.inOrder(outcome.probabilities) ?? outcome.probabilities;
      const { winner, probabilities } = roundDistribution(
        learned?.decide(said, outcome.vector) ?? applyTemperature(said, catalog?.calibrations?.[name] ?? 1),
      );
      return {
        id: newId('dec_'),
        model: name,
        languages: model.languages,
        choice: choices[winner] as string,
        confidence: probabilities[winner] as number,
        choices,
        probabilities,
        inputTokens: outcome.inputTokens,
        unread: outcome.unread,
        timings: outcome.timings,
        learned: learned?.digest,
      };
    },
  };
}

async function score(
  engine: Engine,
  job: Parameters<Engine['score']>[0],
  terms: JobTerms,
  released: () => void,
): Promise<ScoreOutcome> {
  try {
    return await engine.score(job, { ...terms, released });
  } catch (error) {
    throw engineFault(error);
  }
}

async function decidingCatalog(
  catalogs: CatalogResolver,
  { caller, storeBudget }: DecisionTerms,
  id: string,
  model: string,
): Promise<DecidingCatalog> {
  const catalog = caller.kind === 'key' ? await catalogs.resolve(caller.owner, id, storeBudget) : undefined;
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
  const place = request.choices?.indexOf(outcome.choice) ?? -1;
  const which = place < 0 ? 'a choice of the catalog' : `choices[${place}]`;
  return new DomainError(
    'CANDIDATE_TOKENS_EXCEEDED',
    `${which} has ${outcome.tokens} tokens; the model takes at most ${outcome.limit} in one choice`,
    { param: request.catalog === undefined ? 'choices' : 'catalog' },
  );
}
