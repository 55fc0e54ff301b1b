/** Runs bare loops in several processes at a time. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { INSTRUCTION } from '../load/requests.ts';
import type { BareResult } from './bare-loop.ts';

/** The shipped package that the benchmarks use. */
export const packageFolder = fileURLToPath(new URL('../../models/minilm-l6/r2', import.meta.url));

const script = fileURLToPath(new URL('./bare-loop.ts', import.meta.url));
const { options } = JSON.parse(readFileSync(join(packageFolder, 'model.json'), 'utf8'));

/** All loops together: decisions per second, CPU milliseconds of a decision, and the milliseconds of each. */
export interface BareTotals {
  readonly perSecond: number;
  readonly cpu: number;
  readonly latencies: readonly number[];
}

/** The tokens of each sequence that the model reads for a decision with cached choices, special tokens included. */
export function sequencesOf(inputTokens: number): readonly number[] {
  const alone = inputTokens + 2;
  const joint = inputTokens + INSTRUCTION.split(/(?=\W)\s*/).length + 3;
  return options.joint_weight === 0 ? [alone] : options.joint_weight === 1 ? [joint] : [joint, alone];
}

/** Runs `processes` loops at a time, for so many seconds. */
export async function runBare(processes: number, seconds: number, inputTokens: number): Promise<BareTotals> {
  const args = [packageFolder, String(seconds), ...sequencesOf(inputTokens).map(String)];
  const children = Array.from({ length: processes }, () => {
    return fork(script, args, { execArgv: [], serialization: 'advanced' });
  });
  await Promise.all(children.map((child) => once(child, 'message')));
  const results = children.map(async (child) => {
    child.send('go');
    const [result] = (await once(child, 'message')) as [BareResult];
    return result;
  });
  const all = await Promise.all(results);
  const decisions = all.reduce((sum, each) => sum + each.decisions, 0);
  return {
    perSecond: all.reduce((sum, each) => sum + each.decisions / each.seconds, 0),
    cpu: (1000 * all.reduce((sum, each) => sum + each.cpu, 0)) / decisions,
    latencies: all.flatMap((each) => each.latencies),
  };
}
