/** The reasons for which each operation can fail, and how the document shows them. */
import { ERROR_TABLE, type ErrorReason } from '../../src/domain/errors.ts';
import type { Procedure } from '../../src/service/procedure.ts';
import type { Comments } from './comments.ts';
import type { Schema } from './constraints.ts';
import { schemaRef } from './schemas.ts';

/** Reasons for which any HTTP request can fail, whatever its path. */
const TRANSPORT: readonly ErrorReason[] = [
  'MALFORMED_REQUEST',
  'REQUEST_TIMEOUT',
  'EXPECTATION_FAILED',
  'HEADERS_TOO_LARGE',
  'INTERNAL',
];
/** Reasons of the gate, which every request but those for health passes, with a key or without. */
const KEYS: readonly ErrorReason[] = [
  'AUTHENTICATION_REQUIRED',
  'RATE_LIMIT_EXCEEDED',
  'STORE_UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'STORAGE_CORRUPT',
];
/** Reasons of requests with a body. */
const BODY: readonly ErrorReason[] = [
  'INVALID_JSON',
  'UNKNOWN_FIELD',
  'DUPLICATE_FIELD',
  'MISSING_FIELD',
  'INVALID_TYPE',
  'INVALID_VALUE',
  'INVALID_CHOICES',
  'TOO_MANY_CHOICES',
  'CANDIDATE_TOKENS_EXCEEDED',
  'UNKNOWN_MODEL',
  'MODEL_DISABLED',
  'MODEL_UNAVAILABLE',
  'OVERLOADED',
  'DRAINING',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_MEDIA_TYPE',
  'UNSUPPORTED_ENCODING',
];
/** Further reasons, by procedure. */
const OWN: Readonly<Record<string, readonly ErrorReason[]>> = {
  CreateDecision: [
    'CHOICES_OR_CATALOG',
    'INPUT_TOKENS_EXCEEDED',
    'UNKNOWN_CATALOG',
    'CATALOG_MODEL_MISMATCH',
    'CONCURRENCY_LIMIT_EXCEEDED',
    'QUOTA_EXCEEDED',
  ],
  GetModel: ['MODEL_NOT_FOUND'],
  CreateCatalog: ['INVALID_CATALOG_ID', 'CATALOG_ALREADY_EXISTS', 'QUOTA_EXCEEDED', 'STORE_WRITE_UNCONFIRMED'],
  GetCatalog: ['CATALOG_NOT_FOUND', 'OVERLOADED'],
  DeleteCatalog: ['CATALOG_NOT_FOUND', 'OVERLOADED', 'STORE_WRITE_UNCONFIRMED'],
};

/** The reasons for which a procedure can fail over REST. */
export function reasonsOf({ method }: Procedure, hasBody: boolean): readonly ErrorReason[] {
  return [...TRANSPORT, ...KEYS, ...(hasBody ? BODY : []), ...(OWN[method.name] ?? [])];
}

/** The reasons for which a health path can fail. */
export const HEALTH_REASONS = {
  live: TRANSPORT,
  ready: [...TRANSPORT, 'NOT_READY', 'DRAINING'],
} as const satisfies Readonly<Record<string, readonly ErrorReason[]>>;

/**
 * Error responses by status. Each lists the codes that it can carry, for readers in its description and for programs in
 * `x-error-codes`; they are not part of the schema, since codes may be added.
 */
export function errorResponses(reasons: readonly ErrorReason[], comments: Comments): Readonly<Record<string, Schema>> {
  const statuses = [...new Set(reasons.map((reason) => ERROR_TABLE[reason].http))].sort();
  return Object.fromEntries(
    statuses.map((status) => {
      // Each reason once, in the order of the table.
      const rows = Object.entries(ERROR_TABLE).filter(
        ([reason, { http }]) => http === status && reasons.includes(reason as ErrorReason),
      );
      const described = rows.map(([reason, { type }]) => {
        const meaning = comments.get(`umpire.v1.ErrorReason.ERROR_REASON_${reason}`) ?? '';
        return `- \`${reason.toLowerCase()}\` (\`${type}\`): ${meaning}`;
      });
      const response = {
        description: described.join('\n'),
        headers: headersOf(status),
        content: {
          'application/json': {
            schema: schemaRef('ErrorResponse'),
            examples: Object.fromEntries(
              rows.map(([reason, row]) => exampleOf(reason as ErrorReason, row.type, comments)),
            ),
          },
        },
        'x-error-codes': rows.map(([reason]) => reason.toLowerCase()),
      };
      return [String(status), response];
    }),
  );
}

/** The field that an example names, for errors that name one. */
const PARAMS: Readonly<Partial<Record<ErrorReason, string>>> = {
  UNKNOWN_FIELD: 'colour',
  DUPLICATE_FIELD: 'model',
  MISSING_FIELD: 'model',
  INVALID_TYPE: 'model',
  INVALID_VALUE: 'model',
  CHOICES_OR_CATALOG: 'choices',
  INVALID_CHOICES: 'choices',
  TOO_MANY_CHOICES: 'choices',
  INPUT_TOKENS_EXCEEDED: 'input',
  CANDIDATE_TOKENS_EXCEEDED: 'choices',
  UNKNOWN_MODEL: 'model',
  MODEL_DISABLED: 'model',
  MODEL_UNAVAILABLE: 'model',
  UNKNOWN_CATALOG: 'catalog',
  CATALOG_MODEL_MISMATCH: 'model',
  INVALID_CATALOG_ID: 'id',
  MODEL_NOT_FOUND: 'model',
  CATALOG_NOT_FOUND: 'id',
  CATALOG_ALREADY_EXISTS: 'id',
};

/**
 * An example of an error as it looks on the wire. Its message is from the protos' comments, since the service's own
 * wording may change.
 */
function exampleOf(reason: ErrorReason, type: string, comments: Comments): [string, Schema] {
  const meaning = comments.get(`umpire.v1.ErrorReason.ERROR_REASON_${reason}`) ?? '';
  const [first = ''] = meaning.split(/\.(?:\s|$)/);
  const code = reason.toLowerCase();
  return [code, { value: { error: { message: first, type, code, param: PARAMS[reason] ?? null } } }];
}

function headersOf(status: number): Schema {
  return {
    'X-Request-ID': { $ref: '#/components/headers/X-Request-ID' },
    ...(status === 401 ? { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } } : {}),
    ...(status === 415 ? { 'Accept-Encoding': { $ref: '#/components/headers/Accept-Encoding' } } : {}),
    ...(status === 429 || status === 503 ? { 'Retry-After': { $ref: '#/components/headers/Retry-After' } } : {}),
  };
}

/** Every value of `error.code` that there is today. */
export const ERROR_CODES: readonly string[] = [
  ...new Set([
    ...TRANSPORT,
    ...KEYS,
    ...BODY,
    ...Object.values(OWN).flat(),
    ...HEALTH_REASONS.ready,
    'ROUTE_NOT_FOUND',
    'METHOD_NOT_ALLOWED',
  ]),
].map((reason) => reason.toLowerCase());

/** Every value of `error.type`. */
export const ERROR_TYPES: readonly string[] = [...new Set(Object.values(ERROR_TABLE).map((row) => row.type))];
