/** What the document's operations share: the error envelope, headers, the key, and the bodies of the health paths. */
import type { Schema } from './constraints.ts';
import { ERROR_CODES, ERROR_TYPES } from './faults.ts';

/** Schemas that no message of the protos describes. */
export const PLAIN_SCHEMAS: Readonly<Record<string, Schema>> = {
  ErrorResponse: {
    type: 'object',

    description:
      'Every failure. Programs decide by the HTTP status and `error.type`, and by `error.code` where one status has several causes: `quota_exceeded` is not worth a retry, `rate_limit_exceeded` is.',
    properties: {
      error: {
        type: 'object',
        properties: {
          message: { type: 'string', description: 'For logs and operators; its wording may change.' },
          type: { type: 'string', enum: ERROR_TYPES },
          code: {
            type: 'string',
            // Open: SDKs get names for what is there, and take what is added later.
            'x-extensible-enum': ERROR_CODES,
            pattern: '^[a-z][a-z_]*$',
            description: 'The machine-readable reason. Each response lists those that it can carry; more may be added.',
          },
          param: {
            type: ['string', 'null'],
            description: 'The top-level request parameter that is at fault, or null.',
          },
        },
        required: ['message', 'type', 'code', 'param'],
      },
    },
    required: ['error'],
  },
  Liveness: healthBody('live'),
  Readiness: healthBody('ready'),
};

function healthBody(status: string): Schema {
  return { type: 'object', properties: { status: { const: status } }, required: ['status'] };
}

/** The response headers. */
export const HEADERS: Readonly<Record<string, Schema>> = {
  'X-Request-ID': {
    description: 'A correlation identifier, new for every response. Keep it for support and tracing.',
    required: true,
    schema: { type: 'string', pattern: '^req_[A-Za-z0-9_-]+$' },
  },
  'Retry-After': {
    description: 'Whole seconds to wait at least. Absent where waiting does not help.',
    schema: { type: 'integer', minimum: 1 },
  },
  'Accept-Encoding': {
    description: 'The codings that a body may have; only where its coding is what was refused.',
    schema: { type: 'string', const: 'gzip' },
  },
  'WWW-Authenticate': {
    description: 'The scheme of the key.',
    required: true,
    schema: { type: 'string', const: 'Bearer' },
  },
  Location: {
    description: 'The path of what was created.',
    required: true,
    schema: { type: 'string', pattern: '^/v1/' },
  },
  'X-Umpire-Learned': {
    description:
      'The digest of what the catalog has learned from examples; absent where nothing learned was applied. With `model` it names what decided: the same two give the same answer.',
    schema: { type: 'string', pattern: '^[0-9a-f]+$' },
  },
  'X-Umpire-Step': {
    description:
      'Of a model that asks others in order: the one that answered, and each that would have been asked and could not decide.',
    schema: { type: 'string', pattern: '^[a-z0-9._-]+@[a-z0-9._-]+(; away=[a-z0-9._-]+@[a-z0-9._-]+)*$' },
  },
  'X-Umpire-Languages': {
    description:
      'The languages that the model was measured in, as BCP 47 tags; absent where its package does not say. A text in another language gets an answer, too, and it is chance.',
    schema: { type: 'string', pattern: '^[A-Za-z0-9-]+(, [A-Za-z0-9-]+)*$' },
  },
  'X-Umpire-Unread': {
    description:
      'The share of the input that the model has no words for, 0 to 1, where that is so large that the answer was made less sure: most often the text is in a language that it does not read.',
    schema: { type: 'string', pattern: '^[01]\\.\\d\\d$' },
  },
  'Server-Timing': {
    description:
      "Where the request's time went, milliseconds for each stage: `queue`, `tokenize`, `infer`. Only for callers with a key.",
    schema: { type: 'string', pattern: '^[a-z]+;dur=\\d+\\.\\d+(, [a-z]+;dur=\\d+\\.\\d+)*$' },
  },
};

/** How callers authenticate: by a key. */
export const SECURITY_SCHEMES: Readonly<Record<string, Schema>> = {
  key: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A key from the operator of the service. A key that is present must be valid, also where none is needed. For use on servers only.',
  },
};
