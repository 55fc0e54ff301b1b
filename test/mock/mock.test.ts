/** `umpire mock`: predictable answers, and every fault that can be asked for, in each protocol. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { isKey, mintKey } from '../../src/domain/keys.ts';
import type { MockOptions } from '../../src/mock/start-mock.ts';
import { isError, json, VALID_BODY } from '../support/answers.ts';
import { CHILD_ENV } from '../support/child-env.ts';
import { callGrpc, errorDetails, openGrpc } from '../support/grpc.ts';
import { decide, openSession, send, sendH2, sendRaw } from '../support/http.ts';
import { faultOf, startTestMock } from '../support/mock.ts';
import { until } from '../support/redis.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runUmpire } from '../support/terminal.ts';

const key = mintKey();
const LIMITS = { inputTokens: 20, candidateTokens: 4, choices: 30 };
const MODELS = [
  { id: 'mock', revision: 'r2', status: 'ready' },
  { id: 'mock', revision: 'r1', status: 'ready' },
  { id: 'gone', revision: 'r1', status: 'unavailable' },
  { id: 'off', revision: 'r1', status: 'disabled' },
] as const;

async function start(options: Partial<MockOptions> = {}) {
  const mock = await startTestMock({ models: MODELS, limits: LIMITS, keys: { mock: key }, ...options });
  return { ...mock, port: Number(new URL(mock.url).port) };
}

const { port, stop } = await start();
const grpc = openGrpc(port);
test.after.always(async () => {
  grpc.close();
  await stop();
});

const QUESTION = { ...VALID_BODY, model: 'mock' };
const asking = (spec: string) => ({ 'umpire-mock': spec });
const CONNECT_PATH = '/umpire.v1.DecisionService/CreateDecision';

test('the choice whose words stand in the input is chosen, always with the same numbers', async (t) => {
  for (const choice of QUESTION.choices) {
    const body = { ...QUESTION, input: `it is about ${choice.toUpperCase()}.` };
    const [first, second] = [json(await decide(port, body)), json(await decide(port, body))];
    t.is((first.output as { choice: string }).choice, choice);
    t.is(first.model, 'mock@r2');
    t.deepEqual({ ...first, id: second.id }, second);
  }
  // Of a page that explains the mock: the numbers may not change from one release to the next.
  t.like(json(await decide(port, QUESTION)), {
    output: { choice: 'billing', confidence: 0.406136 },
    usage: { input_tokens: 13 },
  });
});

test('a process near its bounds is no fault that was asked for', async (t) => {
  const mock = await start({ env: { PORT: '0', UMPIRE_MEMORY: '128' } });
  t.teardown(() => mock.stop());
  t.true(process.memoryUsage.rss() > 128 * 2 ** 20);
  // Two looks of the watchdog, if there were one.
  await new Promise((resolve) => setTimeout(resolve, 1100));
  t.is((await decide(mock.port, QUESTION)).status, 200);
});

const ERRORS: readonly (readonly [spec: string, status: number, code: string, grpc: number, retry?: number])[] = [
  ['429', 429, 'rate_limit_exceeded', 8, 1],
  ['429; retry-after=7', 429, 'rate_limit_exceeded', 8, 7],
  ['concurrency_limit_exceeded', 429, 'concurrency_limit_exceeded', 8, 1],
  ['quota_exceeded', 429, 'quota_exceeded', 8],
  ['503', 503, 'overloaded', 14, 1],
  ['draining;retry-after=2', 503, 'draining', 14, 2],
  ['draining; retry-after=none', 503, 'draining', 14],
  ['model_unavailable', 503, 'model_unavailable', 14, 1],
  ['store_unavailable', 503, 'store_unavailable', 14, 1],
  ['deadline_exceeded', 503, 'deadline_exceeded', 4, 1],
  ['500', 500, 'internal', 13],
  ['authentication_required', 401, 'authentication_required', 16],
];

for (const [spec, status, code, grpcCode, retry] of ERRORS) {
  test(`${spec} over REST, Connect and gRPC`, async (t) => {
    const param = code === 'model_unavailable' ? 'model' : null;
    const answer = await decide(port, QUESTION, asking(spec));
    isError(t, answer, { status, code, param, ...(param === null ? {} : { type: 'model_error' }) });
    t.is(answer.headers['retry-after'], retry === undefined ? undefined : String(retry));
    const connect = await send(port, { path: CONNECT_PATH, body: JSON.stringify(QUESTION), headers: asking(spec) });
    t.regex(connect.text, new RegExp(code.toUpperCase()));
    const { error, trailers } = await callGrpc(grpc.decisions, 'CreateDecision', QUESTION, { metadata: asking(spec) });
    t.is(error?.code, grpcCode);
    t.like(errorDetails(trailers), { reason: code.toUpperCase(), param, retrySeconds: retry });
  });
}

test('a delay comes before the answer, and is none of the deadline’s business', async (t) => {
  const began = performance.now();
  t.is((await decide(port, QUESTION, asking('delay=120'))).status, 200);
  t.true(performance.now() - began >= 119);
});

test('a connection that is cut instead of the answer, or in the middle of it', async (t) => {
  for (const spec of ['cut=answer', 'cut=body', '503; cut=body']) {
    await t.throwsAsync(decide(port, QUESTION, asking(spec)), { code: 'ECONNRESET' }, spec);
    await t.throwsAsync(send(port, { path: CONNECT_PATH, body: JSON.stringify(QUESTION), headers: asking(spec) }));
    const session = openSession(port);
    await t.throwsAsync(sendH2(session, { body: JSON.stringify(QUESTION), headers: asking(spec) }), undefined, spec);
    t.is((await sendH2(session, { body: JSON.stringify(QUESTION) })).status, 200, 'the session goes on');
    session.close();
  }
  for (const spec of ['cut=answer', 'cut=body']) {
    const { error } = await callGrpc(grpc.decisions, 'CreateDecision', QUESTION, { metadata: asking(spec) });
    t.true([1, 13, 14].includes(error?.code ?? 0), `${spec}: ${error}`);
  }
  // Headers and a part of the body arrived.
  const body = JSON.stringify(QUESTION);
  const { bytes } = await sendRaw(
    port,
    `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nUmpire-Mock: cut=body\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  t.regex(bytes.toString(), /^HTTP\/1.1 200 OK\r\n[\s\S]*\r\n\r\n\{"id":"dec_[\s\S]*[^}]$/);
});

test('the first requests of a name fail, then one gets through', async (t) => {
  const headers = asking('503; first=2; id=retry');
  const statuses: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) statuses.push((await decide(port, QUESTION, headers)).status);
  t.deepEqual(statuses, [503, 503, 200, 200]);
});

test('a fault strikes only what would have been let in, and a spec that is none is said', async (t) => {
  const headers = { authorization: 'Bearer wrong', ...asking('503') };
  t.is((await decide(port, QUESTION, headers)).status, 401);
  t.is((await send(port, { path: '/health/ready', headers: asking('503') })).status, 200);
  const wrong = { status: 400, code: 'malformed_request', param: null };
  const specs = [
    '418',
    'OVERLOADED',
    'canceled',
    'delay=99999',
    'cut=here',
    'first=2',
    'id=a',
    'retry-after=0',
    'a=1',
    '',
  ];
  for (const spec of specs) isError(t, await decide(port, QUESTION, asking(spec)), wrong);
});

test('chance follows from the seed', async (t) => {
  const spec = faultOf('429');
  const statusesOf = async (seed: number) => {
    const { port, stop } = await start({ faults: [{ spec, rate: 0.3 }], seed });
    const statuses: number[] = [];
    for (let turn = 0; turn < 60; turn += 1) statuses.push((await decide(port, QUESTION)).status);
    await stop();
    return statuses;
  };
  const [first, again, other] = [await statusesOf(1), await statusesOf(1), await statusesOf(2)];
  t.deepEqual(first, again);
  t.notDeepEqual(first, other);
  const struck = first.filter((status) => status === 429).length;
  t.true(struck > 6 && struck < 32, String(struck));
});

test('the command serves until it is told to stop, then leaves nothing behind', async (t) => {
  const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
  const args = [cli, 'mock', '--port', '0', '--model', 'm@r7', '--model', 'gone=unavailable', '--fault', 'delay=1:0.5'];
  const folder = fileURLToPath(new URL('../../', import.meta.url));
  const temp = temporaryFolder();
  // A Redis of the environment's must not be touched.
  const env = { ...CHILD_ENV, TMPDIR: temp, REDIS_URL: 'redis://127.0.0.1:1', LOG_LEVEL: 'info' };
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] });
  const exited = once(child, 'exit');
  let output = '';
  for await (const chunk of child.stdout.setEncoding('utf8')) {
    output += chunk;
    const [, port, printed] = /listens on http:\/\/127\.0\.0\.1:(\d+) [\s\S]*\n(ump_live_\w+)\n/.exec(output) ?? [];
    if (printed === undefined) continue;
    t.regex(output, /serves m@r7, gone@r1 \(unavailable\)/);
    t.true(isKey(printed));
    const answer = await decide(Number(port), { ...QUESTION, model: 'm' }, { authorization: `Bearer ${printed}` });
    t.is(json(answer).model, 'm@r7');
    child.kill('SIGTERM');
  }
  t.deepEqual(await exited, [0, null]);
  t.deepEqual(readdirSync(temp), []);
});

test('arguments that are wrong are said', async (t) => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['--port x', /PORT/],
    ['--model A', /--model A/],
    ['--model a=gone', /--model/],
    ['--fault 429', /rate/],
    ['--fault 429:2', /rate/],
    ['--fault 418:0.1', /418/],
    ['--seed -1', /seed/],
    ['--choices 301', /choices/],
  ];
  for (const [args, message] of cases) {
    const { status, err } = await runUmpire(['mock', ...args.split(' ')]);
    t.true(status === 1 || status === 2, args);
    t.regex(err, message);
  }
});

test('the shipped models have the limits of their packages, unless others are asked for', async (t) => {
  const limitsBy = async (...args: string[]) => {
    const lines: string[] = [];
    let listed: { data: { id: string; limits: unknown }[] } = { data: [] };
    const { status } = await runUmpire(['mock', '--port', '0', ...args], {
      out: (line) => lines.push(line),
      interrupted: async () => {
        await until(() => lines.length > 0);
        const [url = ''] = /http:\S+/.exec(lines.join('\n')) ?? [];
        listed = (await (await fetch(new URL('/v1/models', url))).json()) as typeof listed;
      },
    });
    t.is(status, 0);
    return Object.fromEntries(listed.data.map(({ id, limits }) => [id, limits]));
  };
  const shipped = Object.fromEntries(
    ['umpire-mini/r11', 'umpire-base/r4', 'umpire-multi/r5', 'minilm-l6/r2'].map((name) => {
      const manifest = readFileSync(new URL(`../../models/${name}/model.json`, import.meta.url), 'utf8');
      return [name.split('/')[0], (JSON.parse(manifest) as { limits: unknown }).limits];
    }),
  );
  t.deepEqual(await limitsBy(), shipped);
  t.deepEqual(await limitsBy('--choices', '7', '--model', 'minilm-l6', '--model', 'other'), {
    'minilm-l6': { ...(shipped['minilm-l6'] as object), choices: 7 },
    other: { input_tokens: 512, candidate_tokens: 128, choices: 7 },
  });
  t.deepEqual(await limitsBy('--model', 'umpire-mini'), { 'umpire-mini': shipped['umpire-mini'] });
});
