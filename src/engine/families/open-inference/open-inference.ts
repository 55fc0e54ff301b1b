/**
 * `open-inference`: a server that speaks the Open Inference Protocol v2 over gRPC makes the numbers, of rows that are
 * made here. The options stand in options.ts.
 */
import { tokensOfChoice } from '../choice-tokens.ts';
import { type Family, type FamilyParts, InputTooLong, unhindered } from '../family.ts';
import { softmax } from '../probabilities.ts';
import { createPace } from '../remote/pace.ts';
import { RemoteServer } from '../remote/remote-server.ts';
import { loadShortlisted } from '../remote/shortlist.ts';
import { createByteTokens } from './byte-tokens.ts';
import { openConnection } from './connection.ts';
import { createEmbeddingScorer } from './embedding-scorer.ts';
import { createInferRows } from './infer-rows.ts';
import { createLogitScorer } from './logit-scorer.ts';
import { readOpenInferenceOptions } from './options.ts';
import { measureServer } from './profile.ts';
import { createRowMaker } from './row-maker.ts';
import type { ReadChoice, Scorer } from './scorer.ts';

/**
 * Characters of all rows of a request together: a text that hardly has tokens may be long, and every choice's row holds
 * it once more.
 */
const MAX_ROWS_LENGTH = 1 << 25;

/** Loads a package of this family. Throws InvalidOptions, or what loading its files throws. */
export async function loadOpenInference(parts: FamilyParts): Promise<Family> {
  const { limits, folder, unready } = parts;
  const options = readOpenInferenceOptions(parts.options, limits);
  const tokenizer =
    options.tokenizer === undefined
      ? createByteTokens(options.bytesPerToken)
      : await parts.tokenizer(options.tokenizer);
  const server = new RemoteServer({ open: () => openConnection(options, folder), bounds: options.bounds, unready });
  const rowMaker = createRowMaker(tokenizer);
  const infer = createInferRows(server, options);
  const scorerWith = (keeps: boolean): Scorer =>
    options.returns.kind === 'logit'
      ? createLogitScorer(options.returns, rowMaker, infer)
      : createEmbeddingScorer(options.returns, rowMaker, infer, keeps);
  const scorer = scorerWith(options.independent);

  const readChoices = async (choices: readonly string[], signal: AbortSignal): Promise<readonly ReadChoice[]> => {
    const pace = createPace(signal);
    const read: ReadChoice[] = [];
    for (const text of choices) {
      read.push({ text, ids: await tokensOfChoice(tokenizer, text, limits.candidateTokens, pace) });
      await pace();
    }
    return read;
  };

  const decider: Family = {
    tokenizer,
    server,
    score: (premise, choices, control) =>
      server.attempt(control, async (call) => {
        const { inputText, instructionText } = premise;
        const length = choices.length * (inputText.length + instructionText.length);
        if (scorer.choiceReadsPremise && length > MAX_ROWS_LENGTH) throw new InputTooLong();
        const { logits, read } = await scorer.logits(premise, await readChoices(choices, call.signal), call);
        const temperature = options.temperature(choices.length);
        server.decided();
        return { probabilities: softmax(logits.map((logit) => logit / temperature)), encoded: read };
      }),
    prepare: (choices, control) =>
      server.attempt(control, async (call) => scorer.prepare(await readChoices(choices, call.signal), call)),
    profile: () =>
      measureServer({
        scorer: scorerWith(false),
        keepsChoices: options.returns.kind === 'embedding' && options.independent,
        tokenizer,
        limits,
        rows: Math.min(options.bounds.rows, options.shortlist?.cap ?? limits.choices),
        call: () => server.callOf(unhindered),
      }),
    dispose: async () => server.close(),
  };
  return options.shortlist === undefined ? decider : await loadShortlisted(decider, options.shortlist, parts);
}
