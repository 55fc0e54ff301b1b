/** An engine process that answers at once, with the pool's own messages: it shows what these alone cost. */
import type { FromEngine, ScoreMessage } from '../../src/engine/worker/messages.ts';

process.on('message', ({ job, choices }: ScoreMessage) => {
  const answer: FromEngine = {
    kind: 'finished',
    job,
    result: {
      kind: 'scored',
      probabilities: new Float64Array(choices.length).fill(1 / choices.length),
      inputTokens: 24,
      encoded: 0,
      waited: 0,
      tokenize: 0,
      infer: 0,
    },
  };
  process.send?.(answer);
});
process.on('disconnect', () => process.exit(0));
