/**
 * Finds limits that are above what a graph can read, and says how much it can: the runtime's own message names some
 * operator inside.
 */

import { messageOf } from '../errors.ts';
import { InvalidOptions } from '../packages/checker.ts';

/** A limit of a package; `beside` are the tokens that the longest run has in addition: special ones, a hypothesis. */
export interface LengthLimit {
  readonly limit: string;
  readonly tokens: number;
  readonly beside: number;
}

/**
 * Tries the longest runs. `run` takes a sequence of this many tokens and adds `own` to them. Throws InvalidOptions for
 * limits that the graph fails at.
 */
export async function checkLength(
  run: (tokens: number) => Promise<unknown>,
  own: number,
  limits: readonly LengthLimit[],
): Promise<void> {
  const problems: string[] = [];
  for (const { limit, tokens, beside } of limits) {
    const extra = beside - own;
    const failure = await failureOf(run, tokens + extra);
    if (failure === undefined) continue;
    let [most, least] = [tokens + extra, 0];
    while (most - least > 1) {
      const middle = (most + least) >> 1;
      if ((await failureOf(run, middle)) === undefined) least = middle;
      else most = middle;
    }
    problems.push(
      least === 0
        ? `the graph cannot be run: ${failure}`
        : `${limit} is ${tokens}, but the graph reads at most ${least + own} tokens, ${beside} of which are not the text's: lower it to ${least - extra}`,
    );
  }
  if (problems.length > 0) throw new InvalidOptions([...new Set(problems)]);
}

async function failureOf(run: (tokens: number) => Promise<unknown>, tokens: number): Promise<string | undefined> {
  try {
    await run(tokens);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
