/**
 * What JSON Schema can say of each field beyond its type. The field rules of the service are functions, so this is written down here; a test
 * holds each request field's schema against its rule, value by value.
 */
import { MAX_CHOICES, MIN_CHOICES } from '../../src/domain/choices.ts';

/** A JSON Schema, or a part of one. */
export type Schema = { readonly [keyword: string]: unknown };

const MODEL_NAME = '[a-z0-9][a-z0-9._-]{0,63}';
const text: Schema = { minLength: 1 };
const catalogId: Schema = { minLength: 1, maxLength: 128, pattern: '^(?!\\.{1,2}$)[A-Za-z0-9._-]+$' };
// Without `uniqueItems`: generators make a set of such a list, and the order of a catalog's choices is promised. `uniqueChoices` says it for requests.
const choices: Schema = {
  minItems: MIN_CHOICES,
  maxItems: MAX_CHOICES,
  items: { type: 'string', minLength: 1 },
};
const probability: Schema = { minimum: 0, maximum: 1 };
const limit: Schema = { minimum: 1 };

const uniqueChoices: Schema = { properties: { choices: { uniqueItems: true } } };

/**
 * What a request must be as a whole, by the message's name. In `if` and `then`, which code generators leave alone: a `oneOf` of `required` makes them
 * forget the fields.
 */
export const wholeConstraints: Readonly<Record<string, Schema>> = {
  CreateDecisionRequest: {
    if: { required: ['catalog'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { not: { required: ['choices'] } },
    else: { required: ['choices'], ...uniqueChoices },
  },
  CreateCatalogRequest: {
    if: { required: ['choices'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: uniqueChoices,
  },
};

/** `Message.field`, in the proto's names, to the constraints. */
export const constraints: Readonly<Record<string, Schema>> = {
  'CreateDecisionRequest.model': text,
  'CreateDecisionRequest.input': text,
  'CreateDecisionRequest.instruction': text,
  'CreateDecisionRequest.choices': choices,
  'CreateDecisionRequest.catalog': text,
  'Decision.id': { pattern: '^dec_[A-Za-z0-9_-]+$' },
  'Decision.object': { const: 'decision' },
  'Decision.model': { pattern: `^${MODEL_NAME}@${MODEL_NAME}$` },
  'DecisionOutput.choice': text,
  'DecisionOutput.confidence': probability,
  'DecisionOutput.probabilities': { additionalProperties: { type: 'number', format: 'double', ...probability } },
  'Usage.input_tokens': { minimum: 0 },
  'ListModelsResponse.object': { const: 'list' },
  'GetModelRequest.model': { minLength: 1 },
  'Model.id': { pattern: `^${MODEL_NAME}$` },
  'Model.object': { const: 'model' },
  'ModelLimits.input_tokens': limit,
  'ModelLimits.candidate_tokens': limit,
  'ModelLimits.choices': limit,
  'CreateCatalogRequest.id': catalogId,
  'CreateCatalogRequest.model': text,
  'CreateCatalogRequest.choices': choices,
  // Without `default`, which generators of types take for "always there"; the descriptions say it.
  'CreateCatalogRequest.version': { maxLength: 128 },
  'CreateCatalogRequest.visibility': { enum: ['private'] },
  'GetCatalogRequest.id': catalogId,
  'DeleteCatalogRequest.id': catalogId,
  'Catalog.id': catalogId,
  'Catalog.model': { pattern: `^${MODEL_NAME}$` },
  'Catalog.choices': choices,
  'Catalog.version': { maxLength: 128 },
  'Catalog.visibility': { const: 'private' },
};
