/** A receiver that is away, slow or failing: requests do not notice, and the log says it once. */
import test from 'ava';
import { decide } from '../../support/http.ts';
import { createScriptedEngine } from '../../support/scripted-engine.ts';
import { startService } from '../../support/service.ts';
import { startTraceReceiver } from '../../support/traced-service.ts';

const BODY = { model: 'minilm-l6', input: 'a', instruction: 'b', choices: ['c', 'd'] };
const SETTINGS = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '300', UMPIRE_DRAIN_GRACE: '3' };
const REQUESTS = 60;

type Receiver = Awaited<ReturnType<typeof startTraceReceiver>>;

const TROUBLES: readonly (readonly [name: string, trouble: (receiver: Receiver) => Promise<void> | void])[] = [
  ['is away', (receiver) => receiver.close()],
  [
    'never answers',
    (receiver) => {
      receiver.answer = () => {};
    },
  ],
  [
    'answers 500',
    (receiver) => {
      receiver.answer = (response) => response.writeHead(500).end('secret words of the receiver');
    },
  ],
  [
    'answers junk',
    (receiver) => {
      receiver.answer = (response) => response.writeHead(200).end('\xff\xff not a protobuf');
    },
  ],
];

for (const [name, trouble] of TROUBLES) {
  test(`a receiver that ${name}: every request is answered, and stopping waits no longer than the grace`, async (t) => {
    const receiver = await startTraceReceiver();
    const service = await startService(
      { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...SETTINGS },
      { engine: createScriptedEngine() },
    );
    await trouble(receiver);
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(Array.from({ length: REQUESTS / 3 }, () => decide(service.port, BODY)));
      for (const { status } of answers) t.is(status, 200);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    const asked = performance.now();
    await service.stop();
    // The grace, and what a busy machine adds.
    t.true(performance.now() - asked < 20_000);
    const lines = service.log.filter(({ msg }) => msg === 'traces cannot be exported');
    // Junk with a 200 is no failure; on a busy machine the time may run out all the same.
    if (name === 'answers junk') t.true(lines.length <= 1);
    else t.is(lines.length, 1);
    t.notRegex(JSON.stringify(lines), /secret/);
    t.is(service.log.filter(({ msg, status }) => msg === 'request' && status === 200).length, REQUESTS);
    await receiver.close();
  });
}

test('the queue is bounded: what does not fit is dropped', async (t) => {
  const receiver = await startTraceReceiver();
  t.teardown(receiver.close);
  const service = await startService(
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '5000',
      OTEL_BSP_SCHEDULE_DELAY: '60000',
      OTEL_BSP_MAX_QUEUE_SIZE: '8',
    },
    { engine: createScriptedEngine() },
  );
  // The first eight spans fill a batch, which is held; the next eight the queue.
  const held: (() => void)[] = [];
  const { answer } = receiver;
  receiver.answer = (response) => {
    held.push(() => answer(response));
  };
  for (let count = 0; count < 20; count += 1) t.is((await decide(service.port, BODY)).status, 200);
  t.is(receiver.requests.length, 1);
  receiver.answer = answer;
  for (const release of held) release();
  await service.stop();
  t.true(receiver.spans.length <= 16, `${receiver.spans.length} spans`);
});
