/**
 * A server that stands for a large language model and is none: it knows the right answers. It speaks `/v1/systemone`
 * and is right as often as its model's name says: `right-80` has confidences from .6 to 1, and is right as often as it
 * is sure. The rest is spread evenly over the other choices. What is said of a text depends on the text alone, so
 * answers repeat. Each takes `LATENCY` milliseconds.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fraction } from '../../src/mock/mock-engine.ts';

const LATENCY = 300;

/**
 * Starts a server. `labelOf`: the right answer to a question; undefined for one that nobody knows. Without a port the
 * system chooses one.
 */
export async function startSimulatedLlm(labelOf: (instruction: string, input: string) => string | undefined, port = 0) {
  const server = createServer(async (request, response) => {
    const send = (body: object): void => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    const body = await text(request);
    if (request.url === '/v1/models') return send({ models: [{ name: 'right-80' }, { name: 'right-90' }] });
    const { model, state, questions } = JSON.parse(body);
    const [[name, { instructions, criteria }]] = Object.entries(questions) as [[string, never]];
    const choices = Object.keys(criteria).sort();
    const label = labelOf(instructions, state) ?? choices[0];
    await sleep(LATENCY);
    const draw = (what: string): number => fraction(JSON.stringify([what, model, instructions, state]));
    const share = Number(/\d+$/.exec(model)?.[0]) / 100;
    const confidence = 1 - 2 * (1 - share) * draw('confidence');
    const others = choices.filter((each) => each !== label);
    const isRight = draw('luck') < confidence;
    const choice = isRight ? label : others[Math.floor(draw('mistake') * others.length)];
    const rest = (1 - confidence) / others.length;
    const probabilities = Object.fromEntries(choices.map((each) => [each, each === choice ? confidence : rest]));
    send({
      model,
      answers: { [name]: { type: 'choice', choice, confidence, probabilities } },
      usage: { input_tokens: 0 },
    });
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port: (server.address() as AddressInfo).port, stop };
}
