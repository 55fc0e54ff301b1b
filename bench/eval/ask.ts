/** Asks a running service for decisions over HTTP, as any caller does. */
import type { Row } from './data-sets.ts';

/** The outcome of one row. */
export type Answer =
  | {
      readonly kind: 'decided';
      readonly choice: string;
      readonly confidence: number;
      readonly ofLabel: number;
      readonly squares: number;
      readonly probabilities: ReadonlyMap<string, number>;
    }
  /** The service refused the row: its text or its choices are too long for the model. */
  | { readonly kind: 'refused'; readonly code: string };

/** The service to ask, and how many requests it gets at a time. */
export interface Service {
  /** Its address, without a slash at the end. */
  readonly url: string;
  /** Requests in progress at a time. */
  readonly concurrency: number;
}

/** The part of an answer's body that is read: a decision or an error. */
type Body =
  | { readonly output: Output; readonly error?: never }
  | { readonly output?: never; readonly error: { readonly code: string; readonly message: string } };

interface Output {
  readonly choice: string;
  readonly confidence: number;
  readonly probabilities: Readonly<Record<string, number>>;
}

/** Milliseconds during which a row is asked again that was refused for now. */
const PATIENCE = 120_000;

/**
 * The answers, in the order of the rows. Throws if the service answers with anything but a decision or a refusal of the
 * row.
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
      // A server may close an idle connection at the moment at which it is used again.
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
