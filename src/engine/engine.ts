/** What the rest of Umpire knows of the engine: texts and choices in, probabilities out. */

/**
 * One decision to make. `model` and `revision` are resolved, `choices` unique and in code-unit order. A job without
 * choices only reads the texts: its outcome says whether they are too long, and has no probabilities.
 */
export interface ScoreJob {
  readonly model: string;
  readonly revision: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
  /** Whether the text's vector is wanted beside the probabilities. */
  readonly vector?: boolean;
}

/** Who asks, and until when: the call as the engine knows it. */
export interface JobTerms {
  /** When the answer becomes worthless: milliseconds on the clock of `performance.now()`. */
  readonly deadline: number;
  /** Whose fair share of the time the job counts towards: the owner of a key, or the address of an anonymous caller. */
  readonly tenant: string;
  /** Callers with a key keep a part of the queue that others cannot take. */
  readonly keyed: boolean;
  /** Aborted when the caller is gone: a queued job is then dropped, a running one's answer thrown away. */
  readonly signal: AbortSignal;
  /**
   * Called exactly once for a decision, when it no longer takes up anything: at once if it is refused, when its run
   * ends if its caller left or its deadline passed in mid-run.
   */
  released?(): void;
}

/** Where a job's time went, milliseconds. */
export interface JobTimings {
  readonly queue: number;
  readonly tokenize: number;
  readonly infer: number;
}

/** How much of a text its model has no words for. */
export interface Unread {
  /** The share of the input's tokens that the model has no words for, 0 to 1. */
  readonly share: number;
  /** Whether the share is so large that the probabilities were made more even for it. */
  readonly over: boolean;
}

/** Who answered for a cascade. Names are `<id>@<revision>`. */
export interface AnsweringStep {
  /** The last step that was asked. */
  readonly model: string;
  /** Steps that would have been asked and could not decide. */
  readonly away: readonly string[];
}

/** A decision that was made. */
export interface Scored {
  readonly kind: 'scored';
  /** In the order of `choices`; each in (0, 1), summing to 1 within rounding. */
  readonly probabilities: Float64Array;
  /** The model's vector of the text, of length 1, if the job asks for it and the model's family has one. */
  readonly vector?: Float32Array | undefined;
  readonly inputTokens: number;
  /** Left out by models that cannot tell. */
  readonly unread?: Unread | undefined;
  readonly timings: JobTimings;
  /** Of a cascade alone. */
  readonly step?: AnsweringStep | undefined;
}

/** Counting stops early on very long texts: `atLeast` then says that `tokens` is a lower bound. */
export interface LongInput {
  readonly kind: 'input_too_long';
  readonly tokens: number;
  readonly limit: number;
  readonly atLeast: boolean;
}

/** A choice has more tokens than the model takes. */
export interface LongChoice {
  readonly kind: 'choice_too_long';
  readonly choice: string;
  readonly tokens: number;
  readonly limit: number;
}

/** The outcome of a job that ran. Failures are thrown, see errors.ts. */
export type ScoreOutcome = Scored | LongInput | LongChoice;

/** The outcome of checking and encoding a catalog's choices in every engine. */
export type PrepareOutcome = { readonly kind: 'prepared' } | LongChoice;

/** The most that one decision of a model may hold. */
export interface ModelLimits {
  /** Tokens of instruction and input together. */
  readonly inputTokens: number;
  /** Tokens of one choice. */
  readonly candidateTokens: number;
  readonly choices: number;
}

/**
 * `ready` takes jobs; `unavailable` is known but broken or not loaded yet; `disabled` is switched off by its manifest.
 */
export type ModelStatus = 'ready' | 'unavailable' | 'disabled';

/** One revision of a model, as served now. */
export interface ModelRevision {
  readonly id: string;
  readonly revision: string;
  /** Whether the plain id names this revision. Exactly one of a model's revisions has it. */
  readonly isDefault: boolean;
  readonly ownedBy: string;
  /** The languages that it was measured in, as BCP 47 tags, if its package says. */
  readonly languages?: readonly string[] | undefined;
  readonly status: ModelStatus;
  readonly limits: ModelLimits;
}

/**
 * What the engine is doing and has done since its start. Times are in milliseconds unless stated otherwise, sizes in
 * bytes.
 */
export interface EngineStats {
  /** Decisions and pieces of catalogs that wait, and the time that they will take on one engine. */
  readonly queue: { readonly jobs: number; readonly cost: number };
  /** The processes that run models. */
  readonly engines: readonly { readonly resident: number }[];
  /** Time spent on decisions, all processes together. */
  readonly busy: number;
  /** Processes that were replaced because they were too large. */
  readonly replacements: number;
  /** Processes that crashed or were killed, including those that were killed because they were stuck. */
  readonly restarts: number;
  /** Jobs that were given up because their engine made no progress with them, or crashed. */
  readonly abandoned: Readonly<Record<'stuck' | 'crashed', number>>;
  /** Choices of decisions whose vectors had to be computed, and those whose vectors were cached. */
  readonly choices: { readonly encoded: number; readonly cached: number };
  /** Models that inference servers score. */
  readonly inference: readonly InferenceStats[];
}

/** Counts of the calls to an inference server. */
export interface InferenceCalls {
  /** Calls that ended, by how they ended. */
  readonly outcomes: Readonly<Record<CallOutcome, number>>;
  /** Rows of the answered calls. */
  readonly rows: number;
  /** Calls that were made again. */
  readonly retries: number;
  /** Time of the answered calls, in seconds. */
  readonly seconds: number;
  readonly tokens: TokensUsed;
}

/** Tokens that an inference server says it has read and written; 0 where it does not say. */
export interface TokensUsed {
  readonly in: number;
  readonly out: number;
}

/** One model's inference server, and the calls to it since its package was last changed. */
export interface InferenceStats extends InferenceCalls {
  /** `<id>@<revision>`. */
  readonly model: string;
  /** Decisions that may be under way at a time, and those that are. */
  readonly concurrency: number;
  readonly inFlight: number;
  /** Resident bytes of the process that asks the server. */
  readonly resident: number;
}

/**
 * How a call to an inference server ended: without reaching one (`unavailable`), with an error from it (`refused`),
 * with an answer that cannot be used (`malformed`), too late, or because nobody waited for it any more.
 */
export type CallOutcome = 'answered' | 'unavailable' | 'refused' | 'malformed' | 'timed_out' | 'canceled';

/** Scores choices. Implemented by pools of processes: those that run models, and those that ask inference servers. */
export interface Engine {
  /** Every revision that is known now, in the order of ids and revisions. Cheap: called for every request. */
  models(): readonly ModelRevision[];
  /** Makes one decision. Throws the errors of errors.ts. */
  score(job: ScoreJob, terms: JobTerms): Promise<ScoreOutcome>;
  /**
   * Whether a decision of this caller would be refused now, whatever it asks: the whole seconds until a retry may help,
   * or undefined if the request must be read to know. Cheap; undefined unless many jobs were refused just now.
   */
  crowded(terms: Pick<JobTerms, 'deadline' | 'tenant' | 'keyed'>): number | undefined;
  /** Checks choices against the model's token limit and encodes them in every engine, before decisions ask for them. */
  prepare(job: Pick<ScoreJob, 'model' | 'revision' | 'choices'>, terms: JobTerms): Promise<PrepareOutcome>;
  /**
   * Whether decisions can be made: every model that was there at the start has made its canary decision or has failed
   * (a model that is added later delays nothing), a live engine serves at least one model, and the queue moves, which
   * it does not if decisions wait and no engine has finished anything for some seconds.
   */
  ready(): boolean;
  stats(): EngineStats;
  /** Looks at the model packages again, and tries those that failed (SIGHUP). */
  reload(): void;
  /** Refuses new jobs, finishes the accepted ones, ends the processes. Resolves when all have exited. */
  close(): Promise<void>;
}
