/** What tests of `umpire decide` share: files, records, a mock to ask, and the command, run here or as a process. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { Fields } from '../../src/cli/decide/lines.ts';
import { mintKey } from '../../src/domain/keys.ts';
import type { MockOptions } from '../../src/mock/start-mock.ts';
import { faultOf, startTestMock } from './mock.ts';
import { newUserEnv } from './new-user.ts';
import { outputOf } from './output.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { runUmpire } from './terminal.ts';

const launcher = fileURLToPath(new URL('../../bin/umpire', import.meta.url));
const folder = temporaryFolder();
/** The key that the mock knows. */
export const key = mintKey();
/** The choices of every question, and the file that holds them. */
export const CHOICES = ['red', 'green', 'blue'];
export const choicesFile = join(folder, 'choices.txt');
writeFileSync(choicesFile, `${CHOICES.join('\n')}\n`);

let files = 0;
/** The path of a new file; it exists if it has content. */
export const newFile = (content?: string): string => {
  const file = join(folder, `file-${files++}`);
  if (content !== undefined) writeFileSync(file, content);
  return file;
};

/** Starts a mock that decides by words; resolves to its address. */
export async function start(t: ExecutionContext, options: Partial<MockOptions> = {}) {
  const limits = { inputTokens: 3000, candidateTokens: 8, choices: 30 };
  const mock = await startTestMock({ limits, keys: { acme: key }, ...options });
  t.teardown(() => mock.stop());
  return mock.url;
}

/** A fault that strikes by chance. */
export const fault = (spec: string, rate: number) => ({ spec: faultOf(spec), rate });
/** A record, and as many of them as JSON lines. */
export const record = (i: number) => ({ id: i, input: `the ${CHOICES[i % 3]} one ${i}`, label: CHOICES[i % 3] });
export const records = (count: number): string =>
  Array.from({ length: count }, (_, i) => `${JSON.stringify(record(i))}\n`).join('');
/** The objects of JSON lines. @throws Error if the last line is not whole. */
export const jsonLines = (text: string): readonly Fields[] => {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line is not whole');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
};
/** Arguments that ask an address for decisions between the choices. */
export const asking = (url: string, ...args: readonly string[]): readonly string[] => [
  'decide',
  '--url',
  url,
  '--model',
  'mock',
  '--choices',
  choicesFile,
  '--instruction',
  'which colour',
  ...args,
];

/** Runs the command here. */
export const decide = (url: string, args: readonly string[], terminal: Parameters<typeof runUmpire>[1] = {}) =>
  runUmpire(asking(url, ...args), terminal);

/**
 * Runs the command as somebody does who has only just cloned the repository. `said`: what it wrote to
 * standard error so far.
 */
export function launch(
  args: readonly string[],
  env: Record<string, string> = {},
): { readonly child: ChildProcessWithoutNullStreams; said(): string } {
  const child = spawn(launcher, args, { env: newUserEnv(env), stdio: 'pipe' });
  return { child, said: outputOf(child.stderr) };
}
