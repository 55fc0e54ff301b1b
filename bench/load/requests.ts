/** The decisions that the benchmarks ask for, whose inputs have a known number of tokens for the shipped model. */

/** A request body. */
export interface DecisionBody {
  readonly model: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
}

// Each of these words is one token.
const words =
  'time year people way day man thing woman life child world school state family student group country problem hand part'.split(
    ' ',
  );
const verbs = 'asked called came found gave kept made needed paid sent told took turned used wanted'.split(' ');

/** The instruction in all benchmarks, of six tokens. */
export const INSTRUCTION = 'which team should handle this?';

/** An input of so many tokens; different seeds give different inputs. */
function inputOf(tokens: number, seed = 0): string {
  return Array.from({ length: tokens }, (_, i) => {
    const list = i % 2 === 0 ? words : verbs;
    return list[(i * 7 + seed * 13 + Math.floor(i / 5)) % list.length];
  }).join(' ');
}

/** So many different choices of three to five tokens. */
export function choicesOf(count: number): readonly string[] {
  return Array.from(
    { length: count },
    (_, i) => `${words[i % words.length]} ${verbs[Math.floor(i / words.length) % verbs.length]} ${i}`,
  );
}

/** A body. */
export function bodyOf(tokens: number, choices: number, seed = 0, model = 'minilm-l6'): DecisionBody {
  return { model, input: inputOf(tokens, seed), instruction: INSTRUCTION, choices: choicesOf(choices) };
}
