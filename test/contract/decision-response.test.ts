/** Contract 2.2 to 2.4 and 9: what a decision looks like, the same over every protocol, from the real model. */
import type { ClientHttp2Session } from 'node:http2';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import anyTest, { type ExecutionContext, type TestFn } from 'ava';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { json, validBody } from '../support/answers.ts';
import { callGrpc, type GrpcClients, openGrpc } from '../support/grpc.ts';
import { decide, openSession, send, sendH2 } from '../support/http.ts';
import { startService, type TestService } from '../support/service.ts';

interface Decision {
  readonly id: string;
  readonly object: string;
  readonly model: string;
  readonly output: {
    readonly choice: string;
    readonly confidence: number;
    readonly probabilities: Readonly<Record<string, number>>;
  };
  readonly usage: { readonly input_tokens: number };
}

const test = anyTest as TestFn<{ service: TestService; session: ClientHttp2Session; grpc: GrpcClients }>;

test.before(async (t) => {
  const service = await startService();
  t.context = { service, session: openSession(service.port), grpc: openGrpc(service.port) };
});
test.after.always(async ({ context: { service, session, grpc } }) => {
  session.close();
  grpc.close();
  await service.stop();
});

const hundred = Array.from({ length: 100 }, (_, index) => `department number ${index}`);
const bodies: readonly object[] = [
  validBody,
  { ...validBody, choices: [...hundred, ...validBody.choices] },
  { ...validBody, choices: ['😀', '😃'] },
  { ...validBody, input: 'x', instruction: 'y', choices: ['a', 'b'] },
  { ...validBody, model: 'minilm-l6@r1', input: 'Mein Paket ist nicht angekommen.\r\n\tWo ist es? 包裹在哪里' },
];

/** Asserts all that the contract says of a decision. */
function isDecision(t: ExecutionContext, decision: Decision, choices: readonly string[]): void {
  t.deepEqual(Object.keys(decision), ['id', 'object', 'model', 'output', 'usage']);
  t.deepEqual(Object.keys(decision.output).toSorted(), ['choice', 'confidence', 'probabilities']);
  t.deepEqual(Object.keys(decision.usage), ['input_tokens']);
  t.regex(decision.id, /^dec_[A-Za-z0-9_-]{16,}$/);
  t.is(decision.object, 'decision');
  t.is(decision.model, 'minilm-l6@r1');
  t.true(Number.isInteger(decision.usage.input_tokens) && decision.usage.input_tokens > 0);
  const { choice, confidence, probabilities } = decision.output;
  t.deepEqual(Object.keys(probabilities).toSorted(), choices.toSorted());
  t.is(probabilities[choice], confidence);
  const millionths = Object.values(probabilities).map((probability) => probability * 1e6);
  for (const units of millionths) {
    t.true(Math.abs(units - Math.round(units)) < 1e-6, `${units} millionths`);
    t.true(Math.round(units) >= 1 && Math.round(units) <= 1e6);
  }
  t.is(
    millionths.reduce((sum, units) => sum + Math.round(units), 0),
    1_000_000,
  );
  t.is(Math.max(...Object.values(probabilities)), confidence);
}

/** What must not differ between two decisions of the same question. */
const substance = ({ object, model, output, usage }: Decision): object => ({ object, model, output, usage });

for (const [index, body] of bodies.entries()) {
  test(`body ${index}: a whole decision, number for number the same over every protocol`, async (t) => {
    const { service, session, grpc } = t.context;
    const answer = await decide(service.port, body);
    t.is(answer.status, 200, answer.text);
    const rest = json(answer) as unknown as Decision;
    isDecision(t, rest, (body as typeof validBody).choices);
    // Six decimals at most in the text itself, and nothing in exponent notation.
    for (const [, number = ''] of answer.text.matchAll(/":(\d[^,}]*)/g))
      t.regex(number, /^\d+(\.\d{1,6})?$|^[1-9]e-6$|^[1-9](\.\d)?e-\d$/);

    const overH2 = json(await sendH2(session, { body: JSON.stringify(body) })) as unknown as Decision;
    t.deepEqual(substance(overH2), substance(rest));

    const { response, error } = await callGrpc<{ decision: Decision }>(grpc.decisions, 'CreateDecision', body);
    t.is(error, undefined);
    t.deepEqual(substance(response?.decision as Decision), substance(rest));
    isDecision(t, response?.decision as Decision, (body as typeof validBody).choices);

    const connect = await send(service.port, {
      path: '/umpire.v1.DecisionService/CreateDecision',
      body: JSON.stringify(body),
    });
    t.is(connect.status, 200, connect.text);
    const { decision } = json(connect) as { decision: Omit<Decision, 'usage'> & { usage: { inputTokens: number } } };
    t.deepEqual(substance({ ...decision, usage: { input_tokens: decision.usage.inputTokens } }), substance(rest));

    const ids = new Set([rest.id, overH2.id, response?.decision.id, decision.id]);
    t.is(ids.size, 4);
  });
}

test('Connect’s own client, over Connect and gRPC, in protobuf and JSON', async (t) => {
  const { service } = t.context;
  const rest = json(await decide(service.port, validBody)) as unknown as Decision;
  for (const transport of [
    createConnectTransport({ baseUrl: service.url, httpVersion: '1.1', useBinaryFormat: true }),
    createConnectTransport({ baseUrl: service.url, httpVersion: '2', useBinaryFormat: true }),
    createConnectTransport({ baseUrl: service.url, httpVersion: '2', useBinaryFormat: false }),
    createGrpcTransport({ baseUrl: service.url }),
  ]) {
    let requestId: string | null = null;
    const { decision } = await createClient(DecisionService, transport).createDecision(
      { ...validBody, choices: [...validBody.choices] },
      { onHeader: (headers) => (requestId = headers.get('x-request-id')) },
    );
    t.like(decision, { object: 'decision', model: 'minilm-l6@r1' });
    t.is(decision?.output?.choice, rest.output.choice);
    t.is(decision?.output?.confidence, rest.output.confidence);
    t.deepEqual({ ...decision?.output?.probabilities }, rest.output.probabilities);
    t.is(decision?.usage?.inputTokens, rest.usage.input_tokens);
    t.regex(String(requestId), /^req_[A-Za-z0-9_-]+$/);
  }
});

test('a customer who was charged twice belongs to billing', async (t) => {
  const answer = await decide(t.context.service.port, validBody);
  t.is((json(answer) as unknown as Decision).output.choice, 'billing');
});

test('the model of a decision, named again, gives the same decision', async (t) => {
  const { port } = t.context.service;
  const first = json(await decide(port, validBody)) as unknown as Decision;
  const again = json(await decide(port, { ...validBody, model: first.model })) as unknown as Decision;
  t.deepEqual(substance(again), substance(first));
});

test('a permuted request gives each choice the same probability, bit for bit', async (t) => {
  const { port } = t.context.service;
  const choices = [...hundred.slice(0, 7), ...validBody.choices, '😀', '😃', 'Ünüsual', '10', '9'];
  const probabilitiesOf = async (order: readonly string[]): Promise<object> => {
    const { output } = json(await decide(port, { ...validBody, choices: order })) as unknown as Decision;
    return { choice: output.choice, ...Object.fromEntries(Object.entries(output.probabilities).toSorted()) };
  };
  const expected = await probabilitiesOf(choices);
  const orders = [choices.toReversed(), choices.toSorted(), [...choices.slice(5), ...choices.slice(0, 5)]];
  for (const order of orders) t.deepEqual(await probabilitiesOf(order), expected);
});

// Before the others: it takes all that the one engine can do.
test.serial('a decision alone is the one among 32 at a time', async (t) => {
  const { port } = t.context.service;
  const alone = substance(json(await decide(port, validBody)) as unknown as Decision);
  const others = Array.from({ length: 31 }, (_, index) =>
    decide(port, {
      ...validBody,
      input: `case ${index}: ${'something else '.repeat(index)}`,
      choices: hundred.slice(0, index + 2),
    }),
  );
  const [among, ...rest] = await Promise.all([decide(port, validBody), ...others]);
  t.deepEqual(substance(json(among as never) as unknown as Decision), alone);
  t.deepEqual([...new Set(rest.map(({ status }) => status))], [200]);
});

test('an exact tie goes to the first in code-unit order', async (t) => {
  // Neither emoji is in the model's vocabulary, so both read the same to it.
  const { output } = json(
    await decide(t.context.service.port, { ...validBody, choices: ['😃', '😀'] }),
  ) as unknown as Decision;
  t.is(output.choice, '😀');
  t.deepEqual(output.probabilities, { '😀': 0.5, '😃': 0.5 });
});

test('usage counts instruction and input, whatever the choices are and however often it is asked', async (t) => {
  const { port } = t.context.service;
  const tokens = async (body: object): Promise<number> =>
    (json(await decide(port, { ...validBody, ...body })) as unknown as Decision).usage.input_tokens;
  const base = await tokens({});
  t.is(await tokens({}), base);
  t.is(await tokens({ choices: hundred }), base);
  t.is(await tokens({ input: `${validBody.input} again` }), base + 1);
  t.is(await tokens({ instruction: `${validBody.instruction} again` }), base + 1);
});
