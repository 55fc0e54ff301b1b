/** What the document's operations share: the error envelope, headers, the key, and the bodies of the health paths. */
import type { Schema } from './constraints.ts';
import { ERROR_TYPES } from './faults.ts';

/** Schemas that no message of the protos describes. */
export const PLAIN_SCHEMAS: Readonly<Record<string, Schema>> = {
  ErrorResponse: {
    type: 'object',
    description: 'Every failure. Programs decide by the HTTP status and `error.type`.',
    properties: {
      error: {
        type: 'object',
        properties: {
          message: { type: 'string', description: 'For logs and operators; its wording may change.' },
          type: { type: 'string', enum: ERROR_TYPES },
          code: {
            type: 'string',
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
