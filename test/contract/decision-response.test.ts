/**
 * Contract 2.2 to 2.4, 8 and 9: decisions of the real model beyond what the conformance kit tries: an independent
 * client, many at a time, ties, tokens.
 */
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import test from 'ava';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import { isError, json, VALID_BODY } from '../support/answers.ts';
import { decide } from '../support/http.ts';
import { modelsDir } from '../support/models-dir.ts';
import { startService } from '../support/service.ts';

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

const service = await startService({ UMPIRE_MODELS_DIR: modelsDir('minilm-l6') });
test.after.always(() => service.stop());

const hundred = Array.from({ length: 100 }, (_, index) => `department number ${index}`);

test('Connect’s own client, over Connect and gRPC, in protobuf and JSON', async (t) => {
  const rest = json(await decide(service.port, VALID_BODY)) as unknown as Decision;
  for (const transport of [
    createConnectTransport({ baseUrl: service.url, httpVersion: '1.1', useBinaryFormat: true }),
    createConnectTransport({ baseUrl: service.url, httpVersion: '2', useBinaryFormat: true }),
    createConnectTransport({ baseUrl: service.url, httpVersion: '2', useBinaryFormat: false }),
    createGrpcTransport({ baseUrl: service.url }),
  ]) {
    let requestId: string | null = null;
    const { decision } = await createClient(DecisionService, transport).createDecision(
      { ...VALID_BODY, choices: [...VALID_BODY.choices] },
      { onHeader: (headers) => (requestId = headers.get('x-request-id')) },
    );
    t.like(decision, { object: 'decision', model: 'minilm-l6@r2' });
    t.is(decision?.output?.choice, rest.output.choice);
    t.is(decision?.output?.confidence, rest.output.confidence);
    t.deepEqual({ ...decision?.output?.probabilities }, rest.output.probabilities);
    t.is(decision?.usage?.inputTokens, rest.usage.input_tokens);
    t.regex(String(requestId), /^req_[A-Za-z0-9_-]+$/);
  }
});

test('usage counts instruction and input, whatever the choices are and however often it is asked', async (t) => {
  const { port } = service;
  const tokens = async (body: object): Promise<number> =>
    (json(await decide(port, { ...VALID_BODY, ...body })) as unknown as Decision).usage.input_tokens;
  const base = await tokens({});
  t.is(await tokens({}), base);
  t.is(await tokens({ choices: hundred }), base);
  t.is(await tokens({ input: `${VALID_BODY.input} again` }), base + 1);
  t.is(await tokens({ instruction: `${VALID_BODY.instruction} again` }), base + 1);
});

test('an input of exactly the limit is legal, and what was counted is what usage says', async (t) => {
  const { port } = service;
  const words = (count: number) => decide(port, { ...VALID_BODY, input: 'word '.repeat(count) });
  const [, tokens] = /have (\d+) tokens.* at most 500/.exec((await words(600)).text) ?? [];
  const room = 500 - (Number(tokens) - 600);
  const most = await words(room);
  t.is(most.status, 200, most.text);
  t.like(json(most), { usage: { input_tokens: 500 } });
  const refused = { status: 400, code: 'input_tokens_exceeded', param: 'input' };
  isError(t, await words(room + 1), { ...refused, message: /have 501 tokens/ });
  isError(t, await words(180_000), { ...refused, message: /more than \d+.* at most 500/ });
});
