/** Contract 7: bodies that are no JSON as it is meant, and transport faults. */
import { gzipSync } from 'node:zlib';
import type { Call } from '../call.ts';
import type { Check } from '../check.ts';
import { hasStatus, type Refusal, refuses } from '../expect.ts';

/** A wrong request that JSON.stringify cannot make. `valid` is the text of a good one. */
interface WrongBody {
  readonly id: string;
  readonly promise: string;
  readonly tried: string;
  readonly calls: (valid: string) => readonly Omit<Call, 'path'>[];
  readonly refusal: Refusal;
}

const INVALID: Refusal = { status: 400, code: 'invalid_json' };

const ROWS: readonly WrongBody[] = [
  {
    id: 'bodies.json',
    promise: 'a body that is no JSON object is refused',
    tried: 'an empty body, half an object, a trailing comma, a list and a string',
    calls: (valid) => ['', valid.slice(0, -1), '{"model":"a",}', `[${valid}]`, '"text"'].map((body) => ({ body })),
    refusal: INVALID,
  },
  {
    id: 'bodies.utf8',
    promise: 'a body that is not UTF-8 is refused, not mended',
    tried: 'a byte that UTF-8 does not have inside a string',
    calls: (valid) => [{ body: Buffer.from(valid.replace('twice', 'tw\u00efce'), 'latin1') }],
    refusal: INVALID,
  },
  {
    id: 'bodies.byte-order-mark',
    promise: 'a body with a byte order mark is refused',
    tried: 'a valid body behind U+FEFF',
    calls: (valid) => [{ body: `\ufeff${valid}` }],
    refusal: INVALID,
  },
  {
    id: 'bodies.repeated-property',
    promise: 'a property that is given twice is refused, so that two readers never see different requests',
    tried: 'model twice, once behind an escape',
    calls: (valid) => ['"model":"a"', '"\\u006dodel":"a"'].map((extra) => ({ body: `{${extra},${valid.slice(1)}` })),
    refusal: { status: 400, code: 'duplicate_field', param: 'model' },
  },
  {
    id: 'bodies.content-type',
    promise: 'a body that is not announced as application/json in UTF-8 is 415',
    tried: 'no Content-Type, text/plain, and another charset',
    calls: (body) =>
      [undefined, 'text/plain', 'application/json; charset=iso-8859-1'].map((type) => ({
        body,
        headers: { 'content-type': type },
      })),
    refusal: { status: 415, code: 'unsupported_media_type' },
  },
  {
    id: 'bodies.compressed',
    promise: 'a compressed body is 415',
    tried: 'Content-Encoding: gzip',
    calls: (valid) => {
      const body = gzipSync(valid);
      return [{ body, headers: { 'content-encoding': 'gzip' } }];
    },
    refusal: { status: 415, code: 'unsupported_encoding' },
  },
  {
    id: 'bodies.large',
    promise: 'a body of more than 1 MiB is 413 in the envelope',
    tried: 'a body of 1 MiB and 64 KiB',
    calls: (valid) => [{ body: valid.padEnd(1024 * 1024 + 65_536, ' ') }],
    refusal: { status: 413, code: 'body_too_large' },
  },
  {
    id: 'bodies.large-headers',
    promise: 'headers of more than 16 KiB are 431 in the envelope',
    tried: 'a header of 17 KiB',
    calls: (body) => [{ body, headers: { 'x-long': 'x'.repeat(17 * 1024) } }],
    refusal: { status: 431, code: 'headers_too_large' },
  },
];

/** What a JSON body must be. */
export const BODY_CHECKS: readonly Check[] = [
  ...ROWS.map(
    ({ id, promise, tried, calls, refusal }): Check => ({
      id,
      section: '7',
      promise,
      tried,
      async run(kit) {
        const valid = JSON.stringify(await kit.question());
        for (const call of calls(valid)) refuses(await kit.http1({ ...call, path: '/v1/decisions' }), refusal);
      },
    }),
  ),
  {
    id: 'bodies.charset',
    section: '10',
    promise: 'UTF-8 may be named, in any case, and the type may be spelt in capitals',
    tried: 'Content-Type: Application/JSON; Charset=UTF-8',
    async run(kit) {
      const headers = { 'content-type': 'Application/JSON; Charset=UTF-8' };
      const body = JSON.stringify(await kit.question());
      hasStatus(await kit.http1({ path: '/v1/decisions', body, headers }), 200);
    },
  },
];
