/**
 * Makes a load with some of everything that callers and operators do, so that each panel of a dashboard shows
 * something.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { DecisionService } from '../../gen/umpire/v1/decision_service_pb.ts';
import type { TestRedis } from '../../test/support/redis.ts';
import type { ServerProcess } from '../../test/support/server-process.ts';

const INPUTS = [
  'I was charged twice for my order',
  'The parcel never came, and nobody answers the telephone',
  'How do I reset my password on the new site?',
  'Everything works now, thank you very much for the quick help',
];
const INSTRUCTION = 'Which team should handle this?';
const CHOICES = ['billing', 'shipping', 'technical support', 'feedback'];

/** The servers under load, and the keys of their callers. */
export interface LoadTargets {
  readonly servers: readonly ServerProcess[];
  readonly redis: TestRedis;
  /** A key without limits. */
  readonly key: string;
  /** A key with a low rate. */
  readonly limitedKey: string;
}

/**
 * Makes the load for so many seconds, in which an engine process is killed and Redis is restarted. Resolves to the
 * number of requests.
 */
export async function makeVariedLoad(
  { servers, redis, key, limitedKey }: LoadTargets,
  seconds: number,
): Promise<number> {
  const until = performance.now() + seconds * 1000;
  let sent = 0;
  const pick = <T>(list: readonly T[]): T => list[sent % list.length] as T;
  const base = (): string => `http://127.0.0.1:${pick(servers).port}`;
  const post = async (path: string, json: unknown, bearer?: string): Promise<void> => {
    await fetch(`${base()}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(bearer && { authorization: `Bearer ${bearer}` }) },
      body: JSON.stringify(json),
    }).then((answer) => answer.text());
  };
  const decision = (more: object = {}) => ({
    model: 'minilm-l6',
    input: pick(INPUTS),
    instruction: INSTRUCTION,
    choices: CHOICES,
    ...more,
  });
  const ownChoices = () => ({ choices: CHOICES.map((choice) => `${choice} ${sent}`) });
  const clients = servers.flatMap(({ port }) => {
    const baseUrl = `http://127.0.0.1:${port}`;
    return [
      createClient(DecisionService, createGrpcTransport({ baseUrl })),
      createClient(DecisionService, createConnectTransport({ baseUrl, httpVersion: '1.1' })),
    ];
  });
  /** A kind of caller: asks again `pause` milliseconds after each answer, whatever it is. */
  const caller = async (pause: number, ask: () => Promise<unknown>): Promise<void> => {
    while (performance.now() < until) {
      sent += 1;
      await ask().catch(() => undefined);
      await sleep(pause);
    }
  };

  await post('/v1/catalogs', { id: 'teams', model: 'minilm-l6', choices: CHOICES }, key);
  const { choices: _, ...withoutChoices } = decision();
  await Promise.all([
    caller(40, () => post('/v1/decisions', decision())),
    caller(150, () => post('/v1/decisions', decision(ownChoices()))),
    caller(120, () => pick(clients).createDecision(decision())),
    caller(90, () => post('/v1/decisions', { ...withoutChoices, input: pick(INPUTS), catalog: 'teams' }, key)),
    caller(300, () => post('/v1/decisions', decision({ model: 'remote', input: 'a b c', choices: ['a', 'b', 'xyz'] }))),
    caller(100, () => post('/v1/decisions', decision(), limitedKey)),
    caller(700, () => post('/v1/decisions', decision({ choices: ['one'] }))),
    caller(1500, () => post('/v1/decisions', decision(), 'no key at all')),
    caller(900, () => fetch(`${base()}/nowhere`).then((answer) => answer.text())),
    caller(500, () => fetch(`${base()}/health/ready`).then((answer) => answer.text())),
    caller(2000, () => pick(clients).createDecision(decision({ input: INPUTS.join(' ') }), { timeoutMs: 3 })),
    burst(),
    incidents(),
  ]);
  return sent;

  async function burst(): Promise<void> {
    await sleep(seconds * 250);
    await Promise.all(Array.from({ length: 40 }, () => post('/v1/decisions', decision({ input: INPUTS.join(' ') }))));
  }

  async function incidents(): Promise<void> {
    await sleep(seconds * 500);
    const [server] = servers;
    const children = readFileSync(`/proc/${server?.pid}/task/${server?.pid}/children`, 'utf8').trim().split(' ');
    // The largest child is the engine process with the models; the one that asks inference servers is smaller.
    const pages = (pid: string): number => Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    const [engine] = children.sort((a, b) => pages(b) - pages(a));
    process.kill(Number(engine), 'SIGKILL');
    await sleep(seconds * 150);
    await redis.kill();
    await sleep(seconds * 100);
    await redis.start();
  }
}
