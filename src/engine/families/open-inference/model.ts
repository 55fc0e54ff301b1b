/** One loaded package of the family: its texts are read here, its rows scored by the server. */
import { join } from 'node:path';
import type { CostProfile } from '../../cost-profile.ts';
import { InvalidOptions } from '../../packages/checker.ts';
import type { Manifest } from '../../packages/manifest.ts';
import { verifyFiles } from '../../packages/verify.ts';
import { loadTokenizer, type TextTokenizer } from '../../text/tokenizer.ts';
import { canaryProblem } from '../../worker/canary.ts';
import type { InferenceCalls, JobResult, ScoreMessage } from '../../worker/messages.ts';
import { tokensOfChoice } from '../choice-tokens.ts';
import { ChoiceTooLong, JobStopped, unhindered } from '../family.ts';
import { readPremise } from '../premise.ts';
import { softmax } from '../probabilities.ts';
import { createBreaker } from '../remote/breaker.ts';
import { createCalls, type JobCall } from '../remote/calls.ts';
import { CallFailed, reasonOf } from '../remote/failures.ts';
import { type Monitor, startMonitor } from '../remote/monitor.ts';
import { createPace } from '../remote/pace.ts';
import { createByteTokens } from './byte-tokens.ts';
import { createInferenceClient, type InferenceClient } from './client.ts';
import { readCredentials } from './credentials.ts';
import { createEmbeddingScorer } from './embedding-scorer.ts';
import { createInferRows } from './infer-rows.ts';
import { createLogitScorer } from './logit-scorer.ts';
import { type OpenInferenceOptions, readOpenInferenceOptions } from './options.ts';
import { measureServer } from './profile.ts';
import { modelProblems, readinessProblem } from './readiness.ts';
import { createRowMaker } from './row-maker.ts';
import type { ReadChoice, Scorer } from './scorer.ts';

/** A package whose files and options are sound. */
export interface InferenceModel {
  /** Connects anew and asks whether server and model are ready and what the package says. The problems; none if it may decide. Never rejects. */
  connect(): Promise<ConnectProblems>;
  /** Measures the server. Rejects with CallFailed. */
  profile(): Promise<CostProfile>;
  /** Makes the canary decision; when it is right, the server is watched from then on. The problem, or undefined. Never rejects. */
  canary(): Promise<string | undefined>;
  /** Makes a decision. Never rejects. */
  score(job: Pick<ScoreMessage, 'input' | 'instruction' | 'choices'>, call: JobCall): Promise<JobResult>;
  /** Checks choices, and has them encoded where vectors are kept. Never rejects. */
  prepare(choices: readonly string[], call: JobCall): Promise<JobResult>;
  count(): InferenceCalls | undefined;
  close(): void;
}

/** `away`: the server cannot be asked, which says nothing of the package. */
export interface ConnectProblems {
  readonly problems: readonly string[];
  readonly away: boolean;
}

/** Where a package lies and what it may use. */
export interface InferenceModelOptions {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Called when the server, having been fit, is not any more; then not again before the next right canary. */
  unready(problems: readonly string[]): void;
}

/** Longer than the deadline of any request. */
const ownPatience = 60_000;
/** Characters of all rows of a request together: a text that hardly has tokens may be long, and every choice's row holds it once more. */
const MAX_ROWS_LENGTH = 1 << 25;
/** A deadline that is so near has passed: timers of two processes do not agree to the millisecond. */
const clockSlack = 5;

/** Verifies files and options and loads the tokenizer. Rejects with InvalidOptions, or what loading the files throws. */
export async function loadInferenceModel(parts: InferenceModelOptions): Promise<InferenceModel> {
  const { folder, manifest, unready } = parts;
  const { limits, canary } = manifest;
  const options = readOpenInferenceOptions(manifest.options);
  const problems = await verifyFiles(folder, manifest.files);
  if (problems.length > 0) throw new InvalidOptions(problems);
  const tokenizer = await tokenizerOf(options, parts);

  let client: InferenceClient | undefined;
  let monitor: Monitor | undefined;
  /** Whether the server is watched: from a right canary until it is found to be away. */
  let fit = false;

  const gone = (problem: string): void => {
    if (!fit) return;
    fit = false;
    monitor?.stop();
    unready([problem]);
  };
  const breaker = createBreaker((reason) => gone(`the inference server fails again and again: ${reason}`));
  const calls = createCalls({
    options,
    client: () => {
      if (client === undefined) throw new CallFailed('unavailable', 'there is no connection');
      return client;
    },
    unreachable: () => monitor?.hurry(),
  });
  const rowMaker = createRowMaker(tokenizer);
  const infer = createInferRows(calls, options);
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

  /** What a job came to that did not come to its end. */
  const resultOf = (error: unknown, { signal, deadline }: JobCall, began: number): JobResult => {
    const outOfTime = performance.now() >= deadline - clockSlack;
    if (error instanceof CallFailed) breaker.failed(error, began, outOfTime);
    if (error instanceof ChoiceTooLong) {
      const { choice, tokens } = error;
      return { kind: 'choice_too_long', choice, tokens, limit: limits.candidateTokens };
    }
    // Its caller has been answered, or is about to be.
    if (error instanceof JobStopped || (error instanceof CallFailed && (signal.aborted || outOfTime)))
      return { kind: 'canceled' };
    if (!(error instanceof CallFailed)) return { kind: 'failed', message: reasonOf(error) };
    return { kind: 'unavailable', message: error.message };
  };

  const decide = async (
    job: Pick<ScoreMessage, 'input' | 'instruction' | 'choices'>,
    call: JobCall,
  ): Promise<JobResult> => {
    const began = performance.now();
    const checkpoint = (): void => {
      if (call.signal.aborted) throw new JobStopped();
    };
    const reading = await readPremise(tokenizer, job, limits.inputTokens, { checkpoint });
    if (reading.kind !== 'read') return reading;
    const { premise } = reading;
    if (
      scorer.choiceReadsPremise &&
      job.choices.length * (job.input.length + job.instruction.length) > MAX_ROWS_LENGTH
    ) {
      return { kind: 'input_too_long', tokens: limits.inputTokens, limit: limits.inputTokens, atLeast: true };
    }
    const choices = await readChoices(job.choices, call.signal);
    const tokenized = performance.now();
    const { logits, read } = await scorer.logits(premise, choices, call);
    const temperature = options.temperature(choices.length);
    return {
      kind: 'scored',
      probabilities: softmax(logits.map((logit) => logit / temperature)),
      inputTokens: premise.instruction.length + premise.input.length,
      encoded: read,
      waited: 0,
      tokenize: tokenized - began,
      infer: performance.now() - tokenized,
    };
  };

  /** Terms of a call of our own. */
  const own = (): JobCall => ({
    signal: new AbortController().signal,
    deadline: performance.now() + ownPatience,
    vectors: unhindered.vectors,
  });

  return {
    async connect() {
      fit = false;
      monitor?.stop();
      client?.close();
      client = undefined;
      try {
        const tls = await readCredentials(options.server.tls, folder);
        client = createInferenceClient({
          address: options.server.address,
          tls,
          messageBytes: Math.max(options.bounds.messageBytes, 2 ** 20),
        });
        const problem = await readinessProblem(client, options);
        if (problem !== undefined) return { problems: [problem], away: true };
        return { problems: await modelProblems(client, options), away: false };
      } catch (error) {
        return { problems: [reasonOf(error)], away: false };
      }
    },
    profile: () =>
      measureServer({
        scorer: scorerWith(false),
        keepsChoices: options.returns.kind === 'embedding' && options.independent,
        tokenizer,
        limits,
        rows: Math.min(options.bounds.rows, limits.choices),
        call: own,
      }),
    async canary() {
      try {
        const problem = canaryProblem(canary, await decide(canary, own()));
        if (problem !== undefined || client === undefined) return problem;
        const current = client;
        fit = true;
        breaker.reset();
        monitor?.stop();
        monitor = startMonitor(() => readinessProblem(current, options), gone);
        return undefined;
      } catch (error) {
        return `the canary decision failed: ${reasonOf(error)}`;
      }
    },
    async score(job, call) {
      const began = performance.now();
      try {
        const result = await decide(job, call);
        if (result.kind === 'scored') breaker.succeeded();
        return result;
      } catch (error) {
        return resultOf(error, call, began);
      }
    },
    async prepare(choices, call) {
      const began = performance.now();
      try {
        await scorer.prepare(await readChoices(choices, call.signal), call);
        return { kind: 'prepared' };
      } catch (error) {
        return resultOf(error, call, began);
      }
    },
    count: () => calls.count(),
    close() {
      fit = false;
      monitor?.stop();
      client?.close();
    },
  };
}

async function tokenizerOf(
  { tokenizer, bytesPerToken }: OpenInferenceOptions,
  { folder, manifest }: InferenceModelOptions,
): Promise<TextTokenizer> {
  if (tokenizer === undefined) return createByteTokens(bytesPerToken);
  if (!manifest.files.has(tokenizer))
    throw new InvalidOptions([`options name ${tokenizer}, which files does not list`]);
  return await loadTokenizer(join(folder, tokenizer));
}
