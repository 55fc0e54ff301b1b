/** Asks a running service, over HTTP, as any caller does. */
import type { Row } from './data-sets.ts';

/** What became of one row. */
export type Answer =
  | {
      readonly kind: 'decided';
      readonly choice: string;
      readonly confidence: number;
      readonly ofLabel: number;
      readonly squares: number;
      readonly probabilities: ReadonlyMap<string, number>;
    }
  /** The service refuses the row: its text or its choices are too long for the model. */
  | { readonly kind: 'refused'; readonly code: string };

/** Where to ask. */
export interface Service {
  /** Without a slash at the end. */
  readonly url: string;
  /** Requests at one time. */
  readonly concurrency: number;
}

/** What is read of an answer's body: a decision or an error. */
type Body =
  | { readonly output: Output; readonly error?: never }
  | { readonly output?: never; readonly error: { readonly code: string; readonly message: string } };

interface Output {
  readonly choice: string;
  readonly confidence: number;
  readonly probabilities: Readonly<Record<string, number>>;
}

const PATIENCE = 120_000;

/**
 * Answers in the order of the rows. Throws when the service says something that is neither a decision nor a
 * refusal of the row.
 */
export async function askAll(
  { url, concurrency }: Service,
  model: string,
  rows: readonly Row[],
): Promise<readonly Answer[]> {
  const answers = new Array<Answer>(rows.length);
  let next = 0;
  const caller = async (): Promise<void> => {
    for (let place = next++; place < rows.length; place = next++) {
      answers[place] = await ask(url, model, rows[place] as Row);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
  return answers;
}

async function ask(url: string, model: string, row: Row): Promise<Answer> {
  const { input, instruction, choices, label } = row;
  let lost = 0;
  for (const end = performance.now() + PATIENCE; ; ) {
    let response: Response;
    let body: Body;
    try {
      response = await fetch(`${url}/v1/decisions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model, input, instruction, choices }),
      });
      body = (await response.json()) as Body;
    } catch (error) {
      // A server may close a connection that was idle, at the moment when it is used again.
      if (++lost > 3) throw error;
      continue;
    }
    if (body.output !== undefined) return read(body.output, label);
    const { code, message } = body.error;
    if (response.status === 400 && /_tokens_exceeded$/.test(code)) return { kind: 'refused', code };
    const passing = response.status === 429 || response.status === 503;
    if (!passing || performance.now() > end) throw new Error(`the service answered ${response.status}: ${message}`);
    await new Promise((resolve) =>
      setTimeout(resolve, 1000 * Math.max(1, Number(response.headers.get('retry-after')))),
    );
  }
}

function read(output: Output, label: string): Answer {
  const probabilities = new Map(Object.entries(output.probabilities));
  const squares = [...probabilities.values()].reduce((sum, p) => sum + p * p, 0);
  return {
    kind: 'decided',
    choice: output.choice,
    confidence: output.confidence,
    ofLabel: probabilities.get(label) ?? 0,
    squares,
    probabilities,
  };
}
