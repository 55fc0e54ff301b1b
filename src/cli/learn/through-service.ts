/** Has a running service decide labelled examples, for those who have a key and no shell on the server. */
import type { JudgedAnswer } from '../../learning/quality.ts';
import { Interrupted, type Terminal } from '../command.ts';
import { type Asked, type DecidingClient, nameOf } from '../decide/deciding-client.ts';
import { interruptible, outcomesOf } from '../decide/pace.ts';
import { type ExampleFile, type LineProblem, refuse } from './examples.ts';

/** Requests in progress at one time, and milliseconds without an answer after which the command gives up. */
const [AT_ONCE, PATIENCE_MS] = [64, 120_000];

/**
 * The answers to examples, in their order. `asked`: choices or a catalog. Throws Error with a line for each example
 * that was refused, or if the model changed meanwhile.
 */
export async function answersThrough(
  client: DecidingClient,
  asked: Omit<Asked, 'input' | 'instruction'>,
  { examples, problems }: Pick<ExampleFile, 'examples' | 'problems'>,
  terminal: Terminal,
): Promise<{ readonly name: string; readonly answers: readonly JudgedAnswer[] }> {
  refuse(problems);
  if (examples.length === 0) throw new Error('there are no examples');
  const stop = interruptible(terminal);
  const answers: JudgedAnswer[] = [];
  const refused: LineProblem[] = [];
  const names = new Set<string>();
  const outcomes = outcomesOf(examples.values(), {
    client,
    question: ({ input, instruction }) => ({ ...asked, input, instruction }),
    weigh: () => 0,
    atOnce: AT_ONCE,
    patience: PATIENCE_MS,
    signal: stop.signal,
  });
  try {
    for await (const { thing, outcome } of outcomes) {
      const { line, label } = thing;
      if (outcome.kind === 'refused') {
        refused.push({ line, problem: `${outcome.refusal.code}: ${outcome.refusal.message}` });
        continue;
      }
      const { choice, confidence, probabilities } = outcome.answer;
      names.add(nameOf(outcome.answer));
      answers.push({ label, choice, confidence, ofLabel: probabilities[label] ?? 0 });
    }
  } finally {
    stop.abort(new Interrupted('over'));
  }
  refuse(refused);
  if (names.size > 1) throw new Error(`what decides changed while this ran (${[...names].join('; ')}): run it again`);
  return { name: [...names].join(), answers };
}
