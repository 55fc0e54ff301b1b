/**
 * A family is the code that knows how one kind of model scores choices. It gets the pieces that it runs with, and
 * promises: equal texts get equal numbers, bit for bit, whatever was computed before; every graph run holds one
 * sequence; nothing is truncated.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls, ModelLimits } from '../engine.ts';
import type { FamilyName } from '../packages/manifest.ts';
import type { TextTokenizer } from '../text/tokenizer.ts';
import type { ChoiceVectors } from './choice-vectors.ts';

/** Values of one graph input or output: `int64` as bigints, `float32` as numbers. */
export interface Tensor {
  readonly data: BigInt64Array | Float32Array;
  readonly dims: readonly number[];
}

/** A loaded ONNX graph. */
export interface Graph {
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** One run on this process's thread. Rejects with the runtime's error. */
  run(feeds: Readonly<Record<string, Tensor>>): Promise<Readonly<Record<string, Tensor>>>;
  /** Gives the memory back. No run may be in progress. */
  dispose(): Promise<void>;
}

/** What a family is given when a package is loaded. */
export interface FamilyParts {
  readonly limits: ModelLimits;
  /** `options` of the manifest, not yet checked. */
  readonly options: unknown;
  /** The package's folder, for files that its manifest does not list, such as certificates. */
  readonly folder: string;
  /** To be called when a watched server can no longer decide: see `FamilyServer`. */
  unready(problems: readonly string[]): void;
  /** Loads a tokenizer file of the package. */
  tokenizer(file: string): Promise<TextTokenizer>;
  /** Reads a JSON file of the package. */
  json(file: string): Promise<unknown>;
  /** Loads a graph file of the package; `weights`: all files that it names, if one of them is coded. */
  graph(file: string, weights?: readonly string[]): Promise<Graph>;
  /**
   * Loads a local model from files of the package, for a family in which a server decides; the model takes one job at a
   * time. Rejects with InvalidOptions, and with what loading its files throws.
   */
  local(family: FamilyName, options: unknown, limits: ModelLimits): Promise<Family>;
}

/** What the process gives a family for one job. */
export interface RunControl {
  /** Called before every graph run: reports progress and throws JobStopped when the job is no longer wanted. */
  checkpoint(): void;
  /**
   * Awaited between pieces of a text: a checkpoint, and a turn of the event loop in which a cancellation can be read.
   * Rejects with JobStopped.
   */
  readonly pause: () => Promise<void>;
  /** Aborted when the job is no longer wanted, so that waiting for a server ends at once. */
  readonly signal: AbortSignal;
  /** When the answer becomes worthless, on the clock of `performance.now()`. */
  readonly deadline: number;
  /**
   * The part of the process's cache that the job's caller may learn about: how long a job takes shows what was cached.
   */
  readonly vectors: ChoiceVectors;
}

/** The control of work that no caller asked for: it is never stopped and keeps nothing in the cache. */
export const unhindered: RunControl = {
  checkpoint() {},
  pause: () => nextTurn(),
  signal: new AbortController().signal,
  deadline: Number.POSITIVE_INFINITY,
  vectors: { get: () => undefined, set() {}, ofStage: () => unhindered.vectors },
};

/** A premise: the tokens of the two texts, within the model's limit. */
export interface Premise {
  readonly instruction: readonly number[];
  readonly input: readonly number[];
  readonly instructionText: string;
  readonly inputText: string;
}

/**
 * Probabilities in the order of the choices, how many choices had to be encoded, and how many tokens those that were
 * read have on average.
 */
export interface FamilyScores {
  readonly probabilities: Float64Array;
  /** The vector of the text, of length 1, if the family has one; learned weights read it. */
  readonly vector?: Float32Array;
  readonly encoded: number;
  readonly choiceTokens?: number;
  /**
   * Why the numbers of a server cannot tell choices apart: a package whose canary decision has such numbers is not
   * served.
   */
  readonly doubt?: string;
}

/**
 * One loaded package. A family whose numbers a server makes has a `server`, and takes any number of jobs at a time; the
 * others take one.
 */
export interface Family {
  readonly tokenizer: TextTokenizer;
  readonly server?: FamilyServer;
  /** Throws ChoiceTooLong, InputTooLong and JobStopped, and CallFailed where there is a server. */
  score(premise: Premise, choices: readonly string[], control: RunControl): Promise<FamilyScores>;
  /**
   * Checks choices and fills the cache. They may be a piece of a list of `all` choices. Throws ChoiceTooLong and
   * JobStopped, and CallFailed where there is a server.
   */
  prepare(choices: readonly string[], control: RunControl, all: number): Promise<void>;
  /** Measures what runs cost on this machine, or what the server takes. */
  profile(): Promise<CostProfile>;
  dispose(): Promise<void>;
}

/** The server of a loaded package, as the process sees it. `families/remote` implements it for every dialect. */
export interface FamilyServer {
  /** Connects anew and asks whether server and model are ready and as the package describes them. Never rejects. */
  connect(): Promise<ServerProblems>;
  /**
   * Called when the canary was right: watches the server until it is no longer fit, and then calls `unready` of the
   * parts, once.
   */
  watch(): void;
  /** Counts of the calls since this was last called; undefined if there were none. */
  takeCounts(): InferenceCalls | undefined;
}

/** Why a server may not decide; no problems if it may. */
export interface ServerProblems {
  readonly problems: readonly string[];
  /** The server cannot be asked, which says nothing about the package. */
  readonly away: boolean;
}

/** How long a text is, and how long it may be, as far as that is known. */
export interface TokenCounts {
  readonly tokens?: number;
  readonly limit?: number;
  /** Whether `tokens` is a lower bound; true by default if `tokens` is left out. */
  readonly atLeast?: boolean;
}

/**
 * A premise is within the package's limit in tokens, but too long in another way: to be sent with every choice, by the
 * server's own count, or for the local model that picks choices for the server. The counts are those of the server or
 * of that model.
 */
export class InputTooLong extends Error {
  override readonly name = 'InputTooLong';
  readonly tokens: number | undefined;
  readonly limit: number | undefined;
  readonly atLeast: boolean;
  constructor({ tokens, limit, atLeast = tokens === undefined }: TokenCounts = {}) {
    super('the input is too long');
    this.tokens = tokens;
    this.limit = limit;
    this.atLeast = atLeast;
  }
}

/**
 * A choice has more tokens than `limit`, which is the package's, its local model's or its server's; both numbers are
 * the server's own counts where it gives them.
 */
export class ChoiceTooLong extends Error {
  override readonly name = 'ChoiceTooLong';
  readonly choice: string;
  readonly tokens: number;
  readonly limit: number;
  constructor(choice: string, tokens: number, limit: number) {
    super('a choice has too many tokens');
    this.choice = choice;
    this.tokens = tokens;
    this.limit = limit;
  }
}

/** The job is no longer wanted: its caller left or its time is up. */
export class JobStopped extends Error {
  override readonly name = 'JobStopped';
}
