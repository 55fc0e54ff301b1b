/**
 * The family in which a server decides, whatever dialect it speaks: reads the choices, lets the dialect's scorer make
 * logits, divides them by the package's temperature, and keeps track of whether the server is fit.
 *
 * A dialect is a file that reads its options and calls this with two functions: `open`, which makes a connection, and
 * `scorer`, which makes logits by calls over it. Over HTTP `http/http-connection.ts` has the former;
 * `dialects/rerank.ts` is the shortest example.
 */
import { InvalidOptions } from '../../packages/manifest.ts';
import { softmax } from '../../tempered.ts';
import type { TextTokenizer } from '../../text/tokenizer.ts';
import { meanTokens, tokensOfChoice } from '../choice-encoder.ts';
import {
  ChoiceTooLong,
  type Family,
  type FamilyParts,
  type FamilyScores,
  InputTooLong,
  unhindered,
} from '../family.ts';
import { CallFailed, reasonOf } from './call-failed.ts';
import { type InferenceJob, paced } from './calls.ts';
import { type RemoteOptions, tokenizerOf } from './options.ts';
import { cutProblem, measureServer, type ProfileOptions } from './profile.ts';
import { type Connection, RemoteServer } from './remote-server.ts';
import { ofPremise, type ReadChoice, type Scorer } from './scorer.ts';
import { choicesProblem, loadShortlisted } from './shortlist.ts';

/** What a dialect is given to score with. */
export interface ScorerTools<C extends Connection> {
  /** All calls go through it: it bounds them, repeats them where that is safe, and counts them. */
  readonly server: Pick<RemoteServer<C>, 'call'>;
  readonly tokenizer: TextTokenizer;
  /** Whether the server's results for choices may be kept in `InferenceJob.vectors`. */
  readonly keeps: boolean;
}

/** What a dialect provides. */
export interface Dialect<C extends Connection> {
  /**
   * Makes a connection, and a new one whenever the server was unfit. Rejects if what the package says about it cannot
   * be used.
   */
  open(): Promise<C>;
  scorer(tools: ScorerTools<C>): Scorer;
  /** Whether its scorer can keep the server's results for choices; it does if the package says `batch.independent`. */
  readonly keepsChoices: boolean;
}

/**
 * The most characters of all rows of a decision together: a text with hardly any tokens may be long, and every choice's
 * row holds it once more.
 */
const MAX_ROWS_LENGTH = 1 << 25;

/**
 * Makes the family of a package whose options were read. Throws InvalidOptions, and what loading its tokenizer and its
 * local model throws.
 */
export async function createRemoteFamily<C extends Connection>(
  parts: FamilyParts,
  options: RemoteOptions,
  dialect: Dialect<C>,
): Promise<Family> {
  const { limits, unready } = parts;
  const problem = choicesProblem(limits, options.cap, options.shortlist);
  if (problem !== undefined) throw new InvalidOptions([problem]);
  const tokenizer = await tokenizerOf(options.tokens, parts);
  const server = new RemoteServer({ open: () => dialect.open(), bounds: options.bounds, unready });
  const keeps = dialect.keepsChoices && options.independent;
  const scorer = dialect.scorer({ server, tokenizer, keeps });

  const readChoices = (choices: readonly string[], call: InferenceJob): Promise<readonly ReadChoice[]> =>
    paced(choices, call, async (text, pause) => ({
      text,
      ids: await tokensOfChoice(tokenizer, text, limits.candidateTokens, pause),
    }));

  const decider: Family = {
    tokenizer,
    server,
    score: (premise, choices, control) =>
      server.attempt(control, async (call): Promise<FamilyScores> => {
        const length = choices.length * (premise.inputText.length + premise.instructionText.length);
        if (scorer.choiceReadsPremise && length > MAX_ROWS_LENGTH) throw new InputTooLong();
        const read = await readChoices(choices, call);
        const scored = await scorer.logits(premise, read, call).catch((error: unknown) => {
          throw ofPremise(error);
        });
        const { logits, vector, doubt = samenessOf(logits), read: encoded } = scored;
        const temperature = options.temperature(choices.length);
        server.decided();
        return {
          probabilities: softmax(logits.map((logit) => logit / temperature)),
          encoded,
          ...meanTokens(read.map(({ ids }) => ids)),
          ...(vector && { vector }),
          ...(doubt !== undefined && { doubt }),
        };
      }),
    prepare: (choices, control) =>
      server.attempt(control, async (call) => await scorer.prepare?.(await readChoices(choices, call), call)),
    async profile() {
      const measured: ProfileOptions = {
        scorer: dialect.scorer({ server, tokenizer, keeps: false }),
        keepsChoices: keeps,
        tokenizer,
        limits,
        rows: Math.min(options.bounds.rows, options.cap?.choices ?? limits.choices, limits.choices),
        densest: options.tokens.kind === 'bytes' ? options.tokens.perToken : 1,
        call: () => server.callOf(unhindered),
      };
      try {
        const profile = await measureServer(measured);
        const problem = await cutProblem(measured);
        if (problem !== undefined) throw new InvalidOptions([problem]);
        return profile;
      } catch (error) {
        throw problemOfLimits(error) ?? error;
      }
    },
    dispose: async () => server.close(),
  };
  return options.shortlist === undefined ? decider : await loadShortlisted(decider, options.shortlist, parts);
}

/** Why logits do not tell choices apart, whatever scale they are of; undefined if they do. */
function samenessOf(logits: Float64Array): string | undefined {
  const [first] = logits;
  return logits.every((logit) => logit === first) ? 'the server scores every choice of the canary the same' : undefined;
}

/** A problem of the package's limits, if the server refused texts that are as long as they allow, or was too slow. */
function problemOfLimits(error: unknown): InvalidOptions | undefined {
  if (error instanceof ChoiceTooLong) {
    const counts = `${error.tokens} tokens, where it takes ${error.limit}`;
    return new InvalidOptions([`limits.candidate_tokens is more than the server reads: it was sent ${counts}`]);
  }
  if (error instanceof CallFailed && error.outcome === 'timed_out') {
    const remedies = 'lower limits.input_tokens, limits.candidate_tokens or batch.rows, or raise timeout_ms';
    return new InvalidOptions([`the largest request that the options allow: ${error.message}; ${remedies}`]);
  }
  return error instanceof CallFailed && error.tooLong !== undefined
    ? new InvalidOptions([
        `limits.input_tokens and candidate_tokens are more than the server reads: ${reasonOf(error)}`,
      ])
    : undefined;
}
