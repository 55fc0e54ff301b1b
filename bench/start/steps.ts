/**
 * Where the time of loading a model goes, in CPU milliseconds of this process, which is a fresh one for each model:
 * `node steps.ts <folder of the package> <empty folder>` prints them as JSON.
 */
import { basename, dirname } from 'node:path';
import { verifyFiles } from '../../src/engine/packages/regular-file.ts';
import { readPackage } from '../../src/engine/packages/scan.ts';
import { LoadedModels } from '../../src/engine/worker/models.ts';

const cpu = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

const [, , folder = '', cacheDir = ''] = process.argv;
const STEPS: Record<string, number> = { 'begin the process': cpu() };
const timed = async <T>(step: string, work: () => Promise<T>): Promise<T> => {
  const before = cpu();
  const result = await work();
  STEPS[step] = cpu() - before;
  return result;
};

const { manifest } = await readPackage(folder, basename(dirname(folder)), basename(folder));
await timed('verify it', () => verifyFiles(folder, manifest.files));
const load = async (step: string, cache: string): Promise<void> => {
  const models = new LoadedModels(0, () => {}, cache);
  // A profile is given, and measured apart.
  const profile = { premise: [], choice: [], choiceReadsPremise: false, choicesCached: true };
  const message = { key: 'model', folder, manifest, proven: true, inDoubt: false };
  const loaded = await timed(step, () => models.load({ ...message, profile }));
  if (loaded.kind === 'load_failed') throw new Error(loaded.problems.join('; '));
  await timed(`${step}: canary`, () => models.canary('model'));
  if (cache === '') await timed('measure its costs', () => models.load({ ...message, profile: undefined }));
  await models.unload('model');
};
await load('load it', '');
await load('make its entry', cacheDir);
await load('load its entry', cacheDir);
process.stdout.write(JSON.stringify(STEPS));
