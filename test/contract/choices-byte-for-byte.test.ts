/** Contract 2.3: the keys of `probabilities` are the original strings, whatever they are, in every protocol. */
import anyTest, { type TestFn } from 'ava';
import { json, validBody } from '../support/answers.ts';
import { callGrpc, type GrpcClients, openGrpc } from '../support/grpc.ts';
import { decide, send } from '../support/http.ts';
import { startService, type TestService } from '../support/service.ts';

const test = anyTest as TestFn<{ service: TestService; grpc: GrpcClients }>;

test.before(async (t) => {
  const service = await startService();
  t.context = { service, grpc: openGrpc(service.port) };
});
test.after.always(async ({ context: { service, grpc } }) => {
  grpc.close();
  await service.stop();
});

const sets: Readonly<Record<string, readonly string[]>> = {
  'names that objects are born with': ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'billing'],
  'whole numbers': ['10', '9', '1', '0', '-1', '01', '1.0', '4294967295'],
  'only spaces': [' ', '  ', '\t', '\n', '\u00a0', '\u3000', '\r\n'],
  'spaces around': ['billing', ' billing', 'billing ', ' billing '],
  'one word, composed and decomposed': ['caf\u00e9', 'cafe\u0301'],
  'cases of one word': ['billing', 'Billing', 'BILLING'],
  emoji: ['😀', '👩‍👩‍👧‍👦', '🇩🇪', '☺', '☺\ufe0f'],
  'the model’s special tokens': ['[SEP]', '[CLS]', '[UNK]', '[PAD]', '[MASK]', '</s>', '<s>', '<|endoftext|>', '##ing'],
  'control characters': ['\0', '\u0001', '\u001f', '\u007f', '\u2028', '\u2029', '\ufeff', '\ufffd', '\uffff'],
  'quotes and escapes': ['"', "'", '\\', '\\n', '\\u0061', '/', '</script>', '{}', '[]', '%00', 'a=b&c'],
  'right to left': ['שלום', 'مرحبا', '\u202eabc', '\u200b', '\u200f'],
  'the top of Unicode': ['\u{10ffff}', '\u{1f600}', '\ue000', '\ud7ff'],
  'names of this API': ['model', 'choices', 'null', 'true', 'undefined', 'NaN'],
};

for (const [what, choices] of Object.entries(sets)) {
  test(what, async (t) => {
    const { service, grpc } = t.context;
    const body = { ...validBody, choices };
    const answer = await decide(service.port, body);
    t.is(answer.status, 200, answer.text);
    const { output } = json(answer) as { output: { choice: string; probabilities: Record<string, number> } };
    t.deepEqual(Object.keys(output.probabilities).toSorted(), choices.toSorted());
    t.true(choices.includes(output.choice));

    const connect = await send(service.port, {
      path: '/umpire.v1.DecisionService/CreateDecision',
      body: JSON.stringify(body),
    });
    t.is(connect.status, 200, connect.text);
    const { decision } = json(connect) as { decision: { output: typeof output } };
    t.deepEqual(
      Object.entries(decision.output.probabilities).toSorted(),
      Object.entries(output.probabilities).toSorted(),
    );

    const { response, error } = await callGrpc<{ decision: { output: typeof output } }>(
      grpc.decisions,
      'CreateDecision',
      body,
    );
    t.is(error, undefined);
    t.deepEqual(
      Object.entries(response?.decision.output.probabilities ?? {}).toSorted(),
      Object.entries(output.probabilities).toSorted(),
    );
    t.is(response?.decision.output.choice, output.choice);
  });
}
