/**
 * Example calls with their answers, in an order in which they can be made one after another. A test makes them and
 * compares the answers, in which only the id of a decision is new each time.
 */
import { readFileSync } from 'node:fs';

/** One call and its answer. */
export interface Example {
  readonly name: string;
  readonly summary: string;
  readonly operation: string;
  /** The values of the path's variables. */
  readonly path?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Whether the call carries a key. */
  readonly keyed?: boolean;
  readonly status: number;
  /** Absent if the answer has no content. */
  readonly answer?: unknown;
}

/** The request that the README makes, and every page and client with it. */
const REQUEST = JSON.parse(readFileSync(new URL('../../docs/clients/request.json', import.meta.url), 'utf8')) as {
  readonly choices: readonly string[];
};
const { choices: CHOICES, ...QUESTION } = REQUEST;
const DECISION = {
  id: 'dec_kFNyNVecNy8SKJjWJIupbw',
  object: 'decision',
  model: 'umpire-mini@r11',
  output: {
    choice: 'billing: invoices, charges, refunds',
    confidence: 0.95641,
    probabilities: {
      'billing: invoices, charges, refunds': 0.95641,
      'shipping: parcels and delivery': 0.024853,
      'technical support: errors and crashes': 0.018737,
    },
  },
  usage: { input_tokens: 13 },
};
const MODEL = {
  id: 'umpire-mini',
  object: 'model',
  owned_by: 'umpire',
  status: 'ready',
  limits: { input_tokens: 4096, candidate_tokens: 72, choices: 300 },
};
const CATALOG = {
  id: 'support-teams',
  model: 'umpire-mini',
  choices: CHOICES,
  version: '2026-11',
  visibility: 'private',
};
const fault = (type: string, code: string, param: string | null, message: string) => ({
  error: { message, type, code, param },
});

/** The examples, in the order in which they are called. */
export const EXAMPLES: readonly Example[] = [
  {
    name: 'live',
    summary: 'The process runs',
    operation: 'getLiveness',
    status: 200,
    answer: { status: 'live' },
  },
  {
    name: 'ready',
    summary: 'Decisions can be made',
    operation: 'getReadiness',
    status: 200,
    answer: { status: 'ready' },
  },
  {
    name: 'models',
    summary: 'The models',
    operation: 'ListModels',
    status: 200,
    answer: { object: 'list', data: [MODEL] },
  },
  {
    name: 'model',
    summary: 'One model',
    operation: 'GetModel',
    path: { model: 'umpire-mini' },
    status: 200,
    answer: MODEL,
  },
  {
    name: 'no-such-model',
    summary: 'A model that is not served',
    operation: 'GetModel',
    path: { model: 'nothing' },
    status: 404,
    answer: fault(
      'invalid_request_error',
      'model_not_found',
      'model',
      'no such model is served; GET /v1/models lists those that are',
    ),
  },
  {
    name: 'choices',
    summary: 'Choices in the request',
    operation: 'CreateDecision',
    body: { ...QUESTION, choices: CHOICES },
    status: 200,
    answer: DECISION,
  },
  {
    name: 'revision',
    summary: 'A certain revision of a model',
    operation: 'CreateDecision',
    body: { ...QUESTION, model: 'umpire-mini@r11', choices: CHOICES },
    status: 200,
    answer: DECISION,
  },
  {
    name: 'neither',
    summary: 'Neither choices nor a catalog',
    operation: 'CreateDecision',
    body: QUESTION,
    status: 400,
    answer: fault('invalid_request_error', 'choices_or_catalog', 'choices', 'send exactly one of choices and catalog'),
  },
  {
    name: 'no-key',
    summary: 'A catalog needs a key',
    operation: 'CreateCatalog',
    body: CATALOG,
    status: 401,
    answer: fault(
      'authentication_error',
      'authentication_required',
      null,
      'this needs a key: send it as Authorization: Bearer <API_KEY>',
    ),
  },
  {
    name: 'catalog',
    summary: 'A choice set to be used again',
    operation: 'CreateCatalog',
    keyed: true,
    body: CATALOG,
    status: 201,
    answer: CATALOG,
  },
  {
    name: 'again',
    summary: 'An identifier that is taken',
    operation: 'CreateCatalog',
    keyed: true,
    body: CATALOG,
    status: 409,
    answer: fault(
      'invalid_request_error',
      'catalog_already_exists',
      'id',
      "catalog 'support-teams' exists; delete it before creating it anew",
    ),
  },
  {
    name: 'stored-choices',
    summary: 'Choices of a catalog',
    operation: 'CreateDecision',
    keyed: true,
    body: { ...QUESTION, catalog: 'support-teams' },
    status: 200,
    answer: DECISION,
  },
  {
    name: 'catalog',
    summary: 'A catalog of the caller',
    operation: 'GetCatalog',
    keyed: true,
    path: { id: 'support-teams' },
    status: 200,
    answer: CATALOG,
  },
  {
    name: 'deletion',
    summary: 'A catalog is deleted',
    operation: 'DeleteCatalog',
    keyed: true,
    path: { id: 'support-teams' },
    status: 204,
  },
  {
    name: 'gone',
    summary: 'A catalog that the caller does not have',
    operation: 'GetCatalog',
    keyed: true,
    path: { id: 'support-teams' },
    status: 404,
    answer: fault('invalid_request_error', 'catalog_not_found', 'id', "catalog 'support-teams' does not exist"),
  },
];
