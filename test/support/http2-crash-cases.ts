/**
 * What may stand in one segment: a request of every kind, and behind it every frame that ends, breaks or disturbs it.
 */
import {
  block,
  FLAG,
  frame,
  goaway,
  headers,
  request,
  rst,
  settings,
  TYPE,
  windowUpdate,
  word,
} from './http2-frames.ts';

const DECIDE = '/umpire.v1.DecisionService/CreateDecision';
const JSON_TYPE = [['content-type', 'application/json']] as const;
const GRPC = [
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
] as const;
const GO = [['expect', '100-continue']] as const;

/** The frame that opens stream 1. */
export const OPENINGS: Readonly<Record<string, Buffer>> = {
  GET: headers(1, request('GET', '/v1/models')),
  'GET, unfinished': headers(1, request('GET', '/v1/models'), 0),
  'GET of nothing': headers(1, request('GET', '/none')),
  'GET of health': headers(1, request('GET', '/health/live')),
  HEAD: headers(1, request('HEAD', '/v1/models')),
  'HEAD, unfinished': headers(1, request('HEAD', '/v1/models'), 0),
  OPTIONS: headers(1, request('OPTIONS', '*')),
  'a decision': headers(1, request('POST', '/v1/decisions', JSON_TYPE), 0),
  'a decision without a body': headers(1, request('POST', '/v1/decisions', JSON_TYPE)),
  'a decision that promises its length': headers(
    1,
    request('POST', '/v1/decisions', [...JSON_TYPE, ['content-length', '1000']]),
    0,
  ),
  'a decision that promises too much': headers(
    1,
    request('POST', '/v1/decisions', [...JSON_TYPE, ['content-length', '99999999']]),
    0,
  ),
  'a catalog': headers(1, request('POST', '/v1/catalogs', JSON_TYPE), 0),
  DELETE: headers(1, request('DELETE', '/v1/catalogs/x')),
  'a gRPC call': headers(1, request('POST', DECIDE, GRPC), 0),
  'a gRPC call without a message': headers(1, request('POST', DECIDE, GRPC)),
  'a gRPC call of nothing': headers(1, request('POST', '/a.B/C', GRPC), 0),
  'a Connect call': headers(1, request('POST', DECIDE, JSON_TYPE), 0),
  'a watch': headers(1, request('POST', '/grpc.health.v1.Health/Watch', GRPC), 0),
  'a check': headers(1, request('POST', '/grpc.health.v1.Health/Check', GRPC), 0),
  CONNECT: headers(1, [
    [':method', 'CONNECT'],
    [':authority', 'a:443'],
  ]),
  'CONNECT, unfinished': headers(
    1,
    [
      [':method', 'CONNECT'],
      [':authority', 'a:443'],
    ],
    0,
  ),
  'Expect, GET': headers(1, request('GET', '/', GO)),
  'Expect, a decision': headers(1, request('POST', '/v1/decisions', [...JSON_TYPE, ...GO]), 0),
  'Expect, a gRPC call': headers(1, request('POST', DECIDE, [...GRPC, ...GO]), 0),
  'Expect, HEAD': headers(1, request('HEAD', '/', GO), 0),
  'Expect of what is unknown': headers(1, request('POST', '/v1/decisions', [...JSON_TYPE, ['expect', '200-ok']]), 0),
  'two keys': headers(
    1,
    request('GET', '/v1/models', [
      ['authorization', 'Bearer a'],
      ['authorization', 'Bearer b'],
    ]),
  ),
  'headers that are too large': headers(1, request('GET', '/v1/models', [['x', 'x'.repeat(16_000)]])),
  'no path': headers(1, [
    [':method', 'GET'],
    [':scheme', 'http'],
  ]),
  'a capital': headers(1, request('GET', '/v1/models', [['X', 'x']])),
  'with priority': frame(
    TYPE.headers,
    1,
    Buffer.concat([word(0), Buffer.from([16]), block(request('GET', '/v1/models'))]),
    FLAG.endHeaders | FLAG.endStream | FLAG.priority,
  ),
  'in two pieces': Buffer.concat([
    frame(TYPE.headers, 1, block(request('GET', '/v1/models')), FLAG.endStream),
    frame(TYPE.continuation, 1, block(GO), FLAG.endHeaders),
  ]),
};

/** What follows in the same segment. */
export const SEQUELS: Readonly<Record<string, Buffer>> = {
  nothing: Buffer.alloc(0),
  ...Object.fromEntries([0, 1, 2, 3, 5, 7, 8, 11, 13, 0xffffffff].map((code) => [`RST ${code}`, rst(1, code)])),
  'RST, twice': Buffer.concat([rst(1, 8), rst(1, 8)]),
  'RST of an idle stream': rst(3, 8),
  'RST of stream 0': rst(0, 8),
  'RST that is short': frame(TYPE.rst, 1, Buffer.alloc(2)),
  'GOAWAY 0': goaway(0, 0),
  'GOAWAY 1': goaway(1, 1),
  'GOAWAY that is short': frame(TYPE.goaway, 0, Buffer.alloc(3)),
  'RST, GOAWAY': Buffer.concat([rst(1, 8), goaway(0, 0)]),
  'DATA, its end': frame(TYPE.data, 1, Buffer.from('{}'), FLAG.endStream),
  'DATA, its end, RST': Buffer.concat([frame(TYPE.data, 1, Buffer.from('{}'), FLAG.endStream), rst(1, 8)]),
  'DATA behind the end': Buffer.concat([
    frame(TYPE.data, 1, Buffer.from('{}'), FLAG.endStream),
    frame(TYPE.data, 1, Buffer.from('{}'), FLAG.endStream),
  ]),
  'DATA with broken padding': frame(TYPE.data, 1, Buffer.from([200, 1]), FLAG.padded),
  'DATA of stream 0': frame(TYPE.data, 0, Buffer.from('x')),
  'DATA of an idle stream': frame(TYPE.data, 5, Buffer.from('x')),
  'DATA that is too long': frame(TYPE.data, 1, Buffer.alloc(20_000)),
  'PING that is short': frame(TYPE.ping, 0, Buffer.alloc(3)),
  'PING of a stream': frame(TYPE.ping, 1, Buffer.alloc(8)),
  PING: frame(TYPE.ping, 0, Buffer.alloc(8)),
  'a window of 0': windowUpdate(1, 0),
  'a window of 0, of all': windowUpdate(0, 0),
  'a window that overflows': windowUpdate(1, 0x7fffffff),
  'a window that overflows, of all': windowUpdate(0, 0x7fffffff),
  'no window at all': settings({ 4: 0 }),
  'SETTINGS that are broken': frame(TYPE.settings, 0, Buffer.alloc(5)),
  'SETTINGS of a stream': frame(TYPE.settings, 1),
  'SETTINGS, a window of 2^32': settings({ 4: 0xffffffff }),
  'frames of no size': settings({ 5: 0 }),
  'PRIORITY on itself': frame(TYPE.priority, 1, Buffer.concat([word(1), Buffer.from([1])])),
  PUSH_PROMISE: frame(TYPE.push, 1, Buffer.concat([word(2), block(request('GET', '/'))]), FLAG.endHeaders),
  'CONTINUATION of nothing': frame(TYPE.continuation, 1, Buffer.from([0x82]), FLAG.endHeaders),
  'HEADERS again': headers(1, request('GET', '/v1/models')),
  trailers: headers(1, [['x', 'y']]),
  'trailers without an end': headers(1, [['x', 'y']], 0),
  'headers that cannot be read': frame(TYPE.headers, 3, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff]), FLAG.endHeaders),
  'an even stream': headers(2, request('GET', '/v1/models')),
  'another request, RST': Buffer.concat([headers(3, request('GET', '/', GO)), rst(3, 8), rst(1, 8)]),
  'a frame of no type': frame(0xbb, 1, Buffer.from('x')),
  'a frame that is too long': frame(TYPE.data, 1, Buffer.alloc(10), 0, 0xffffff),
  'half a frame': frame(TYPE.data, 1, Buffer.alloc(10)).subarray(0, 12),
  'the preface again': Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
};
