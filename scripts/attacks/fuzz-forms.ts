/**
 * Bodies of the bridge's two forms for the fuzz of bodies, what its reader makes of them, and a bridge to send them to.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readJson } from '../../src/bridge/json.ts';
import { OPENAI } from '../../src/bridge/openai.ts';
import type { Form } from '../../src/bridge/question.ts';
import { checkBody } from '../../src/bridge/rules.ts';
import { SYSTEM_ONE } from '../../src/bridge/system-one.ts';
import { Refused } from '../../src/front/refused.ts';

/** The forms by the name that the command line has for them. */
export const FORMS: Readonly<Record<string, Form>> = { systemone: SYSTEM_ONE, decisions: OPENAI };

/** Numbers of a seed. */
export interface Random {
  below(bound: number): number;
  one<T>(of: readonly T[]): T;
}

const MODEL = 'minilm-l6';
/** Valid bodies, with all that a form knows. */
const VALID: Readonly<Record<string, readonly object[]>> = {
  systemone: [
    {
      model: MODEL,
      state: 'a',
      questions: { q: { type: 'noul', instructions: 'b', criteria: { true: 'c', false: null } } },
    },
    {
      model: MODEL,
      state: { a: [1] },
      questions: { q: { type: 'choice', criteria: { a: null, b: { c: 1 }, d: 'e' } } },
    },
    {
      model: MODEL,
      state: ['a'],
      questions: { q: { type: 'score', instructions: null, criteria: ['a', ['b'], { c: 1 }] } },
    },
    {
      model: MODEL,
      state: 'a',
      questions: { 1: { type: 'noul', instructions: 'x' }, __q: { type: 'choice', criteria: { 10: 'a', 9: 'b' } } },
    },
  ],
  decisions: [
    {
      model: MODEL,
      input: 'a',
      questions: [{ type: 'predicate', name: 'n', instructions: 'b' }],
      safety_identifier: 's',
    },
    {
      model: MODEL,
      input: [
        { role: 'system', content: 'a' },
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'b' },
            { type: 'input_json', data: {} },
          ],
        },
        { type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: '1', output: 'c' },
        {
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'd' },
            { type: 'refusal', refusal: 'e' },
          ],
        },
      ],
      questions: [
        { type: 'choice', instructions: 'x', choices: [{ value: true }, { value: 'b', description: 'c' }] },
        { type: 'score', instructions: [{ type: 'input_text', text: 'y' }], levels: [{ label: 'a' }, { label: 'b' }] },
      ],
      prompt_cache_options: { mode: 'implicit', ttl: '30m' },
    },
  ],
};
const NAMES = [
  'type',
  'criteria',
  'instructions',
  'name',
  '__proto__',
  'constructor',
  'toString',
  '',
  '0',
  'ü',
  'images',
];
const VALUES: readonly unknown[] = [
  '',
  'x',
  'y'.repeat(3000),
  'ü😀',
  '\ud800',
  0,
  -1,
  1e308,
  true,
  false,
  null,
  [],
  {},
];
const TYPES = ['noul', 'choice', 'score', 'box', 'predicate', 'message', 'input_image', 'constructor'];

/** A valid body with up to five things in it changed, as JSON. */
export function formBody(kind: string, random: Random): Buffer {
  const { below, one } = random;
  // What is parsed again has a name such as `__proto__` as one of its own.
  const body = JSON.parse(JSON.stringify(one(VALID[kind] ?? [])));
  for (let left = below(6); left > 0; left -= 1) {
    const [container, name] = one(placesIn(body));
    const value = one<() => unknown>([
      () => one(VALUES),
      () => one(TYPES),
      () =>
        JSON.parse(
          `${'['.repeat(below(60))}${'1'}`.replace(/^(\[*)1$/, (_, open) => `${open}1${']'.repeat(open.length)}`),
        ),
      () => JSON.parse(`{${JSON.stringify(one(NAMES))}:${JSON.stringify(one(VALUES))}}`),
      () => Object.fromEntries(Array.from({ length: below(420) }, (_, i) => [`c${i}`, null])),
      () => Array.from({ length: below(420) }, (_, i) => ({ value: `c${i}` })),
      () => one(placesIn(body))[0],
    ])();
    // A body within itself has no JSON; its copy has.
    const copy = JSON.parse(JSON.stringify(value));
    const action = below(16);
    if (action < 4) delete container[name];
    else if (action > 7) container[name] = copy;
    else {
      const own = { value: copy, enumerable: true, configurable: true, writable: true };
      Object.defineProperty(container, one(NAMES), own);
    }
    if (JSON.stringify(body).length > 300_000) break;
  }
  return Buffer.from(JSON.stringify(body));
}

type Container = Record<string, unknown>;

function placesIn(value: unknown, found: [Container, string][] = []): [Container, string][] {
  if (typeof value !== 'object' || value === null) return found;
  for (const [name, each] of Object.entries(value)) {
    found.push([value as Container, name]);
    if (found.length < 2000) placesIn(each, found);
  }
  return found.length > 0 ? found : [[value as Container, 'x']];
}

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...Object.values(value).slice(0, 1000).map(depthOf))
    : 0;

/** How the bridge's reader differs from JSON.parse on a body, or undefined. */
export function formDifference(kind: string, body: Buffer): string | undefined {
  let theirs: { readonly value: unknown } | undefined;
  try {
    theirs = { value: JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)) };
  } catch {}
  try {
    const ours = readJson(body);
    if (theirs === undefined) return 'accepted, though it is not JSON';
    if (JSON.stringify(ours) !== JSON.stringify(theirs.value)) return 'read as another value';
    const form = FORMS[kind] as Form;
    checkBody(ours, form.rule);
    const { questions } = form.ask(ours);
    return questions.some(({ options }) => options.length < 2 || options.includes(''))
      ? 'asks without options'
      : undefined;
  } catch (error) {
    if (!(error instanceof Refused)) return `threw ${error}`;
    const isRefused = error.reason === 'INVALID_JSON' && theirs !== undefined && depthOf(theirs.value) < 40;
    return isRefused && body.length < 50_000 ? 'refused, though it is JSON' : undefined;
  }
}

/** Starts a bridge in front of a service, as a process of its own. */
export async function startBridge(checkout: string, service: number) {
  const args = [join(checkout, 'src/cli.ts'), 'bridge', '--url', `http://127.0.0.1:${service}`, '--port', '0'];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH },
  });
  process.on('exit', () => child.kill('SIGKILL'));
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-100_000);
  });
  let port = 0;
  while (port === 0) {
    if (child.exitCode !== null) throw new Error(`the bridge ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    port = Number(/"port":(\d+)/.exec(log)?.[1] ?? 0);
  }
  return {
    port,
    /** Resident MiB. */
    memory: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024,
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
