/** Runs the generator in a process of its own, so that its CPU time can be told from the service's. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { LoadPlan, LoadResult } from './generator.ts';

const generator = fileURLToPath(new URL('./generator.ts', import.meta.url));

/** Makes the load and resolves to its result. */
export async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  const child = fork(generator, [JSON.stringify(plan)], { execArgv: [], serialization: 'advanced' });
  const [result] = (await once(child, 'message')) as [LoadResult];
  return result;
}
