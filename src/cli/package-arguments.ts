/** Reads the arguments of commands that make packages. Throws UsageError for an argument that is wrong. */
import { readFile } from 'node:fs/promises';
import { createChecker } from '../engine/packages/checker.ts';
import type { Canary } from '../engine/packages/manifest.ts';
import { UsageError } from './command.ts';

/** The two parts of a package's name, `MODEL@REVISION`. Throws UsageError for any other text. */
export function packageNameFrom(name: string): { readonly id: string; readonly revision: string } {
  const [id = '', revision = '', ...rest] = name.split('@');
  if (revision === '' || rest.length > 0) throw new UsageError(`'${name}' is not MODEL@REVISION`);
  return { id, revision };
}

/** The number that is the value of `option`; undefined without one. Throws UsageError. */
export function numberFrom(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(number)) throw new UsageError(`${option}: '${value}' is not a number`);
  return number;
}

/** The whole number, at least 1, that is the value of `option`; undefined without one. Throws UsageError. */
export function wholeFrom(option: string, value: string | undefined): number | undefined {
  const number = numberFrom(option, value);
  if (number !== undefined && (!Number.isInteger(number) || number < 1))
    throw new UsageError(`${option}: '${value}' is not a whole number from 1`);
  return number;
}

/** The canary in a JSON file. Throws Error with all that is wrong with it. */
export async function canaryFrom(file: string): Promise<Canary> {
  const problems: string[] = [];
  const fields = createChecker(JSON.parse(await readFile(file, 'utf8')), '', problems);
  const canary = {
    input: fields.text('input'),
    instruction: fields.text('instruction'),
    choices: fields.texts('choices', 2),
    choice: fields.text('choice'),
  };
  fields.refuseOthers();
  if (problems.length > 0) throw new Error(`${file}: ${problems.join('; ')}`);
  return canary;
}
