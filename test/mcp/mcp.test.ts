/** The tools as agents call them: over HTTP with the caller's key, and over standard input and output. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { mintKey } from '../../src/domain/keys.ts';
import { McpSite } from '../../src/mcp/site.ts';
import { startFront } from '../support/bridge.ts';
import { send } from '../support/http.ts';
import { startTestMock } from '../support/mock.ts';
import { newUserEnv } from '../support/new-user.ts';
import { runUmpire } from '../support/terminal.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/umpire', import.meta.url));
const HEADERS = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' };
const key = mintKey();
const authorization = `Bearer ${key}`;

interface Result {
  readonly tools?: readonly { readonly name: string; readonly annotations: object; readonly outputSchema: object }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly content?: readonly { readonly text: string }[];
  readonly isError?: boolean;
}

async function ask(port: number, method: string, params: object, headers: object = {}): Promise<Result> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const { status, text } = await send(port, { path: '/mcp', body, headers: { ...HEADERS, ...headers } });
  if (status !== 200) throw new Error(`${status} ${text}`);
  const { result, error } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  if (error !== undefined) throw new Error(JSON.stringify(error));
  return result;
}
const call = (port: number, name: string, args: object, headers: object = {}) =>
  ask(port, 'tools/call', { name, arguments: args }, headers);
const ASKED = { text: 'a red flower', question: 'Which colour?', choices: ['red', 'blue'] };

test('over HTTP, tools decide and list, and say what to change', async (t) => {
  const limits = { inputTokens: 64, candidateTokens: 16, choices: 300 };
  const mock = await startTestMock({ keys: { acme: key }, limits });
  t.teardown(() => mock.stop());
  const catalog = { id: 'colours', model: 'mock', choices: ['red', 'blue'] };
  const stored = await fetch(`${mock.url}/v1/catalogs`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify(catalog),
  });
  t.true(stored.ok, await stored.text());
  const options = { model: 'mock', catalogs: ['colours', 'another'] };
  const { port, log } = await startFront(t, mock.url, (umpire) => new McpSite(options, umpire));

  const { tools = [] } = await ask(port, 'tools/list', {});
  const names = tools.map(({ name }) => name);
  t.deepEqual(names, ['decide', 'list_models']);
  for (const { annotations, outputSchema } of tools) {
    t.like(annotations, { readOnlyHint: true, destructiveHint: false });
    t.like(outputSchema, { type: 'object' });
  }
  t.is((await ask(port, 'tools/list', {}, { authorization })).tools?.length, 3);

  const own = (await (
    await fetch(`${mock.url}/v1/decisions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'mock', input: ASKED.text, instruction: ASKED.question, choices: ASKED.choices }),
    })
  ).json()) as { output: { confidence: number } };
  const { structuredContent: decided = {}, content } = await call(port, 'decide', ASKED);
  t.like(decided, { choice: 'red', confidence: own.output.confidence, model: 'mock@r1' });
  t.deepEqual(JSON.parse(content?.[0]?.text ?? ''), decided);
  const { choices: _, ...byCatalog } = { ...ASKED, catalog: 'colours' };
  t.deepEqual((await call(port, 'decide', byCatalog, { authorization })).structuredContent, decided);
  t.like((await call(port, 'list_models', {})).structuredContent, { models: { 0: { id: 'mock', status: 'ready' } } });
  t.deepEqual((await call(port, 'list_catalogs', {}, { authorization })).structuredContent, {
    catalogs: [{ ...catalog, version: '1' }],
  });

  const wrong: readonly (readonly [object, object, RegExp])[] = [
    [{ ...ASKED, model: 'x' }, {}, /^unknown_model: .*list_models/],
    [{ ...ASKED, text: 'word '.repeat(80) }, {}, /^input_tokens_exceeded: .*Shorten the text/],
    [{ ...ASKED, catalog: 'colours' }, {}, /^choices_or_catalog: /],
    [{ ...byCatalog, catalog: 'another' }, { authorization }, /^catalog_not_found: .*Give choices/],
    [byCatalog, {}, /^authentication_required: .*valid key/],
    [ASKED, { authorization: `Bearer ${mintKey()}` }, /^authentication_required: /],
    [{ ...ASKED, choices: ['red'] }, {}, /choices/],
    [{ ...ASKED, more: 1 }, {}, /additional/],
    [{ ...ASKED, text: '\ud800' }, {}, /^invalid_value: .*surrogate/],
  ];
  for (const [args, headers, message] of wrong) {
    const { isError, content: said } = await call(port, 'decide', args, headers);
    t.true(isError);
    t.regex(said?.[0]?.text ?? '', message);
  }
  const batch = JSON.stringify(Array(17).fill({ jsonrpc: '2.0', id: 1, method: 'tools/list' }));
  t.is((await send(port, { path: '/mcp', body: batch, headers: HEADERS })).status, 400);
  t.is((await send(port, { path: '/mcp' })).status, 405);
  t.is((await send(port, { path: '/other' })).status, 404);
  const page = { ...HEADERS, origin: 'https://evil.example' };
  t.is((await send(port, { path: '/mcp', body: '{}', headers: page })).status, 417);
  t.is((await send(port, { path: '/health/ready' })).status, 200);
  t.false(JSON.stringify(log).includes(key.slice(-12)));
});

test('over standard input and output the command ends with its input', async (t) => {
  const mock = await startTestMock();
  t.teardown(() => mock.stop());
  const child = spawn(LAUNCHER, ['mcp', '--url', mock.url, '--model', 'mock'], { env: newUserEnv(), stdio: 'pipe' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exchange = async (id: number, method: string, params: object): Promise<Result> => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return JSON.parse((await lines.next()).value ?? '').result;
  };
  const clientInfo = { name: 'test', version: '1' };
  const opened = await exchange(1, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  t.like(opened, { protocolVersion: '2025-06-18', serverInfo: { name: 'umpire' } });
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`);
  const found = (await exchange(2, 'tools/list', {})).tools?.map(({ name }) => name);
  t.deepEqual(found, ['decide', 'list_models']);
  const { structuredContent } = await exchange(3, 'tools/call', { name: 'decide', arguments: ASKED });
  t.is(structuredContent?.choice, 'red');
  child.stdin.end();
  t.is(await ended, 0);
});

test('a key that is none is refused at the start, and not printed', async (t) => {
  const { status, err } = await runUmpire(['mcp', '--url', 'http://a'], { env: { UMPIRE_KEY: 'sk-secret' } });
  t.is(status, 2);
  t.regex(err, /this is not a key/);
  t.notRegex(err, /secret/);
});
