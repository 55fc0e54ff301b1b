/** Traces of a whole service, as a receiver gets them: protobufs over HTTP, decoded by other code than wrote them. */
import { createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { DecisionService } from '../../../gen/umpire/v1/decision_service_pb.ts';
import { EngineOverloaded } from '../../../src/engine/errors.ts';
import { callGrpc, openGrpc } from '../../support/grpc.ts';
import { decide, openSession, send, sendH2 } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import {
  BODY,
  nesting,
  PARENT,
  type ReceivedSpan,
  serverOf,
  spansOf,
  startTraced,
  TRACE,
  type Traced,
  traceparent,
} from '../../support/traced-service.ts';

const RPC = 'umpire.v1.DecisionService/CreateDecision';

const afterwards: (() => unknown)[] = [];
const teardown = (work: () => unknown): number => afterwards.push(work);
test.after.always(async () => {
  for (const work of afterwards) await work();
});

/** One with the real engine, for the tests in which its stages count. */
let real: Promise<Traced>;
test.before(() => {
  real = startTraced(
    { teardown },
    {
      OTEL_SERVICE_NAME: 'umpire-test',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging,team=a%20b,service.name=other',
    },
  );
});

test.serial('a decision over REST is a span of its caller, with its stages inside in their order', async (t) => {
  const service = await real;
  const before = BigInt(Date.now()) * 1_000_000n;
  const answer = await decide(service.port, BODY, { traceparent, tracestate: 'vendor=1,other=2' });
  t.is(answer.status, 200);
  const spans = await spansOf(t, service, 1);
  const server = serverOf(spans);
  t.like(server, {
    name: 'POST /v1/decisions',
    traceId: TRACE,
    parentSpanId: PARENT,
    traceState: 'vendor=1,other=2',
    status: 'STATUS_CODE_UNSET',
    // Sampled, and that its parent is remote is known and so.
    flags: 0x301,
  });
  t.deepEqual(server.attributes, {
    'http.request.method': 'POST',
    'http.route': '/v1/decisions',
    'http.response.status_code': 200,
    'url.scheme': 'http',
    'network.protocol.version': '1.1',
    'umpire.request_id': answer.headers['x-request-id'] as string,
    'umpire.caller': 'anonymous',
    'umpire.model': 'minilm-l6@r1',
    'umpire.choices': 3,
    'umpire.input_tokens': 15,
    'umpire.unread_share': 0,
  });
  t.like(server.resource, {
    'service.name': 'umpire-test',
    'deployment.environment.name': 'staging',
    team: 'a b',
    'telemetry.sdk.language': 'nodejs',
  });
  t.deepEqual(nesting(t, spans), [
    'POST /v1/decisions > admission',
    'POST /v1/decisions > decode',
    'POST /v1/decisions > engine',
    'engine > queue',
    'engine > tokenize',
    'engine > infer',
  ]);
  const slack = 1_000_000n * 20n;
  t.true(server.start >= before - slack && server.end <= BigInt(Date.now()) * 1_000_000n + slack, 'the time of day');
  const line = service.log.find(({ requestId }) => requestId === answer.headers['x-request-id']);
  const timings = line?.timings as Readonly<Record<string, number>>;
  for (const stage of ['queue', 'tokenize', 'infer']) {
    const span = spans.find(({ name }) => name === stage) as ReceivedSpan;
    const milliseconds = Number(span.end - span.start) / 1e6;
    t.true(
      Math.abs(milliseconds - (timings[stage] as number)) < 0.02,
      `${stage}: ${milliseconds} of ${timings[stage]}`,
    );
  }
  const [request] = service.receiver.requests;
  t.is(request?.url, '/v1/traces');
  t.is(request?.headers['content-type'], 'application/x-protobuf');
  const found = service.log.find(({ msg }) => msg === 'request');
  t.like(found, { trace_id: TRACE, span_id: server.spanId });
});

test.serial('gRPC and Connect: the same stages, named by the procedure', async (t) => {
  const service = await real;
  const clients = openGrpc(service.port);
  t.teardown(clients.close);
  const [grpcTrace, connectTrace] = ['a1'.repeat(16), 'b2'.repeat(16)];
  const called = await callGrpc(clients.decisions, 'CreateDecision', BODY, {
    metadata: { traceparent: `00-${grpcTrace}-${PARENT}-01` },
  });
  t.is(called.error, undefined);
  const transport: Transport = createConnectTransport({ baseUrl: service.url, httpVersion: '1.1' });
  await createClient(DecisionService, transport).createDecision(BODY, {
    headers: { traceparent: `00-${connectTrace}-${PARENT}-01` },
  });
  const spans = await spansOf(t, service, 3);
  const grpc = serverOf(spans.filter(({ traceId }) => traceId === grpcTrace));
  t.like(grpc, { name: RPC, parentSpanId: PARENT, status: 'STATUS_CODE_UNSET' });
  t.deepEqual(grpc.attributes, {
    'rpc.system.name': 'grpc',
    'rpc.system': 'grpc',
    'rpc.method': RPC,
    'rpc.service': 'umpire.v1.DecisionService',
    'rpc.status_code': 'OK',
    'rpc.grpc.status_code': 0,
    'network.protocol.version': '2',
    'umpire.request_id': called.headers.get('x-request-id')[0] as string,
    'umpire.caller': 'anonymous',
    'umpire.model': 'minilm-l6@r1',
    'umpire.choices': 3,
    'umpire.input_tokens': 15,
    'umpire.unread_share': 0,
  });
  const server = serverOf(spans.filter(({ traceId }) => traceId === connectTrace));
  t.like(server, { name: RPC, parentSpanId: PARENT });
  t.like(server.attributes, {
    'rpc.system.name': 'connectrpc',
    'rpc.method': RPC,
    'rpc.status_code': 'ok',
    'network.protocol.version': '1.1',
  });
  for (const { traceId } of [grpc, server]) {
    const own = spans.filter((span) => span.traceId === traceId);
    t.deepEqual(
      nesting(t, own).map((each) => each.replace(`${RPC} > `, '')),
      ['admission', 'decode', 'engine', 'engine > queue', 'engine > tokenize', 'engine > infer'],
    );
  }
});

test.serial('failures: their code, and the status Error where the server is at fault', async (t) => {
  let fail = false;
  const engine = createScriptedEngine(() => {
    if (fail) throw new Error('secret fault');
    throw new EngineOverloaded(1);
  });
  const service = await startTraced(t, {}, { engine });
  const { port } = service;
  const clients = openGrpc(port);
  t.teardown(clients.close);
  let count = 0;
  const last = async (): Promise<ReceivedSpan> => {
    count += 1;
    const servers = (await spansOf(t, service, count)).filter(({ kind }) => kind === 'SPAN_KIND_SERVER');
    return servers.at(-1) as ReceivedSpan;
  };

  const [unset, error] = ['STATUS_CODE_UNSET', 'STATUS_CODE_ERROR'];
  /** What the span of a call is; the names of attributes that it has not. */
  const spanIs = async (call: Promise<unknown>, expected: object, ...absent: readonly string[]) => {
    await call;
    const span = await last();
    t.like(span, expected);
    for (const name of absent) t.false(name in span.attributes, name);
  };
  const unknown = { 'http.response.status_code': 400, 'umpire.error_code': 'unknown_model' };
  await spanIs(decide(port, { ...BODY, model: 'nobody' }), { status: unset, attributes: unknown }, 'error.type');
  const code = 'overloaded';
  const overloaded = { 'http.response.status_code': 503, 'umpire.error_code': code, 'error.type': code };
  await spanIs(decide(port, BODY), { status: error, attributes: overloaded });
  fail = true;
  const broken = { 'http.response.status_code': 500, 'error.type': 'internal' };
  await spanIs(decide(port, BODY), { status: error, attributes: broken });
  fail = false;

  const refused = { 'rpc.status_code': 'UNAVAILABLE', 'rpc.grpc.status_code': 14, 'error.type': code };
  await spanIs(callGrpc(clients.decisions, 'CreateDecision', BODY), { status: error, attributes: refused });
  const invalid = { 'rpc.status_code': 'INVALID_ARGUMENT', 'rpc.grpc.status_code': 3 };
  const withoutChoices = callGrpc(clients.decisions, 'CreateDecision', { ...BODY, choices: [] });
  await spanIs(withoutChoices, { status: unset, attributes: invalid });
  const connect = { 'rpc.status_code': 'invalid_argument', 'rpc.connect_rpc.error_code': 'invalid_argument' };
  await spanIs(send(port, { path: `/${RPC}`, body: '{"no_such_field":1}' }), {
    attributes: { 'rpc.system': 'connect_rpc', ...connect },
  });
  const other = { 'rpc.method': '_OTHER', 'error.type': 'unimplemented' };
  await spanIs(send(port, { path: '/secret.Service/Secret', body: '{}' }), { name: 'connectrpc', attributes: other });

  await spanIs(send(port, { path: '/secret/path' }), { name: 'GET' }, 'http.route');
  const session = openSession(port);
  t.teardown(() => session.destroy());
  const odd = { name: 'HTTP', attributes: { 'http.request.method': '_OTHER' } };
  await spanIs(sendH2(session, { method: 'SECRETMETHOD', path: '/v1/decisions' }), odd);
  await spanIs(send(port, { path: '/v1/models/secret-model' }), { name: 'GET /v1/models/{model}' });

  for (const { attributes, name, resource } of service.receiver.spans) {
    t.notRegex(JSON.stringify({ attributes, name, resource }), /secret/i);
  }
});
