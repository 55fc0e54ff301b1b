/** Contract 7: bodies that are not JSON as the contract wants it, and faults of the transport. */
import { gzipSync } from 'node:zlib';
import type { Call } from '../call.ts';
import type { Check } from '../check.ts';
import { hasStatus, type Refusal, refuses } from '../expect.ts';

/** A kind of wrong request that JSON.stringify cannot make. `valid` is the text of a good one. */
interface WrongBody {
  readonly id: string;
  readonly promise: string;
  readonly tried: string;
  readonly calls: (valid: string) => readonly Omit<Call, 'path'>[];
  readonly refusal: Refusal;
}

/** What a body gets that is not a JSON object in UTF-8. */
const INVALID: Refusal = { status: 400, code: 'invalid_json' };

/** The wrong bodies, in the order in which they are tried. */
const ROWS: readonly WrongBody[] = [
  {
    id: 'bodies.json',
    promise: 'a body that is not a JSON object is refused',
    tried:
      'no body, half an object and two, a list, other values, texts that only look like JSON, a form, a gzip stream',
    calls: (valid) =>
      [
        ...[
          '',
          ' \r\n\t ',
          valid.slice(0, -1),
          valid + valid,
          `${valid}\n${valid}`,
          `[${valid}]`,
          'null',
          '1',
          '"text"',
        ],
        ...['{"model":"a",}', "{'model':'x'}", `/* */${valid}`, '{"model":NaN}', '{"model":"a\nb"}', '{"model":"\0"}'],
        ...['{"model":"\\x41"}', '{"model":"\\u12"}', 'model=a&input=b', gzipSync(valid)],
      ].map((body) => ({ body })),
    refusal: INVALID,
  },
  {
    id: 'bodies.utf8',
    promise: 'a body that is not UTF-8 is refused, not repaired',
    tried: 'a byte that UTF-8 does not have, an overlong form, a surrogate, a sequence cut off, UTF-16 and UTF-32',
    calls: (valid) => [
      { body: Buffer.from(valid.replace('twice', 'tw\u00efce'), 'latin1') },
      ...['fffe', 'c0af', 'eda0bd', 'e282'].map((bytes) => ({
        body: Buffer.from(`7b226d6f64656c223a22${bytes}227d`, 'hex'),
      })),
      ...[valid, `\ufeff${valid}`].map((text) => ({ body: Buffer.from(text, 'utf16le') })),
      { body: Buffer.from('0000007b0000007d', 'hex') },
    ],
    refusal: INVALID,
  },
  {
    id: 'bodies.byte-order-mark',
    promise: 'a body with a byte order mark is refused',
    tried: 'a valid body after U+FEFF, and U+FEFF alone',
    calls: (valid) => [valid, ''].map((text) => ({ body: `\ufeff${text}` })),
    refusal: INVALID,
  },
  {
    id: 'bodies.repeated-property',
    promise: 'a property that is given twice is refused, so that two readers never see different requests',
    tried: 'a second model before and after the first, with escapes, and with the same value',
    calls: (valid) => [
      ...['"model":"a"', '"\\u006dodel":"a"'].map((extra) => ({ body: `{${extra},${valid.slice(1)}` })),
      ...[valid, '{"\\u006dodel":"a"}'].map((text) => ({ body: text.replace(/}$/, `,"mode\\u006c":"a"}`) })),
      { body: valid.replace(/}$/, `,${/"model":"[^"]*"/.exec(valid)?.[0]}}`) },
    ],
    refusal: { status: 400, code: 'duplicate_field', param: 'model' },
  },
  {
    id: 'bodies.content-type',
    promise: 'a body whose Content-Type is not application/json in UTF-8 is 415',
    tried: 'no Content-Type, other types, lists of types, and other charsets',
    calls: (body) =>
      [
        ...[undefined, '', ';', 'text/plain', 'text/json', 'application/xml', 'application/problem+json'],
        ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json, text/plain'],
        ...['utf-16', 'iso-8859-1', ''].map((charset) => `application/json; charset=${charset}`),
      ].map((type) => ({ body, headers: { 'content-type': type } })),
    refusal: { status: 415, code: 'unsupported_media_type' },
  },
  {
    id: 'bodies.compressed',
    promise: 'a body with another coding than gzip is 415',
    tried: 'Content-Encoding: br, deflate, zstd, an unknown one, and two of them',
    calls: (valid) => {
      const body = gzipSync(valid);
      return ['br', 'deflate', 'zstd', 'x-unknown', 'gzip, br'].map((encoding) => ({
        body,
        headers: { 'content-encoding': encoding },
      }));
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

/**
 * A body that is wrong as a text, with its error over REST, and that error's reason and field in the other protocols.
 */
interface WrongText {
  readonly body: string | Uint8Array;
  readonly refusal: Refusal;
  readonly reason: string;
  readonly param: { readonly param?: string };
}

/** The bodies that are wrong as a text. `valid` is the text of a good one. */
export function wrongTexts(valid: string): readonly WrongText[] {
  return ROWS.filter(({ refusal }) => refusal.status === 400).flatMap(({ calls, refusal }) =>
    calls(valid).map(({ body = '' }) => ({
      body,
      refusal,
      reason: refusal.code.toUpperCase(),
      param: typeof refusal.param === 'string' ? { param: refusal.param } : {},
    })),
  );
}

const parameter = (text: string): string => `application/json;${text}`;

/** The checks of JSON bodies. */
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
    tried: 'Application/JSON; Charset=UTF-8, the charset in quotes and without a space, another parameter',
    async run(kit) {
      const body = JSON.stringify(await kit.question());
      for (const type of ['Application/JSON; Charset=UTF-8', ...['charset="utf-8"', 'profile=x'].map(parameter)]) {
        hasStatus(await kit.http1({ path: '/v1/decisions', body, headers: { 'content-type': type } }), 200);
      }
    },
  },
  {
    id: 'bodies.http2',
    section: '7',
    promise: 'bodies over HTTP/2 get the same errors',
    tried: 'the wrong bodies of HTTP/1.1',
    async run(kit) {
      for (const { body, refusal } of wrongTexts(JSON.stringify(await kit.question()))) {
        refuses(await kit.http2({ path: '/v1/decisions', body }), refusal);
      }
    },
  },
];
