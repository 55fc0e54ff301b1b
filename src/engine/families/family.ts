/**
 * A family is the code that knows how one kind of model scores choices. It gets the pieces that it runs with, and promises: equal texts get
 * equal numbers, bit for bit, whatever was computed before; every graph run holds one sequence; nothing is truncated.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CostProfile } from '../cost-profile.ts';
import type { ModelLimits } from '../engine.ts';
import type { UnreadShare } from '../text/unread.ts';
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

/** A model's own tokenizer; adds no special tokens, and reads those in a text as plain text. */
export interface TextTokenizer {
  /** Token ids of a short text, at once. */
  ids(text: string): readonly number[];
  /** Begins to read a text of any length. */
  reader(): TextReader;
  /** Which share of a text's tokens the model has no words for; left out where the vocabulary cannot tell. */
  readonly unreadShare?: UnreadShare | undefined;
}

/** Reads one text, piece by piece. */
export interface TextReader {
  /** The next piece: the ids that are known by now, after those of the pieces before. */
  read(piece: string): readonly number[];
  /** The rest of the ids. */
  end(): readonly number[];
}

/** What a family is given when a package is loaded. */
export interface FamilyParts {
  readonly limits: ModelLimits;
  /** `options` of the manifest, not yet checked. */
  readonly options: unknown;
  /** Loads a tokenizer file of the package. */
  tokenizer(file: string): Promise<TextTokenizer>;
  /** Reads a JSON file of the package. */
  json(file: string): Promise<unknown>;
  /** Loads a graph file of the package; `weights`: the file of its five-bit weights, if it has such. */
  graph(file: string, weights?: string): Promise<Graph>;
}

/** What the process gives a family for one job. */
export interface RunControl {
  /** Called before every graph run: reports progress and throws JobStopped when the job is no longer wanted. */
  checkpoint(): void;
  /** The part of the process's cache that the job's caller may learn of: how long a job takes tells what was in it. */
  readonly vectors: ChoiceVectors;
}

/** For work that is nobody's: never stopped, and nothing is kept. */
export const unhindered: RunControl = { checkpoint() {}, vectors: { get: () => undefined, set() {} } };

/** What is awaited between pieces of a text: a checkpoint, and a turn of the event loop in which a cancellation can be read. */
export function pauseOf({ checkpoint }: Pick<RunControl, 'checkpoint'>): () => Promise<void> {
  return async () => {
    checkpoint();
    await nextTurn();
  };
}

/** A premise: the tokens of the two texts, within the model's limit. */
export interface Premise {
  readonly instruction: readonly number[];
  readonly input: readonly number[];
  readonly instructionText: string;
  readonly inputText: string;
}

/** Probabilities in the order of the choices, and how many choices had to be encoded. */
export interface FamilyScores {
  readonly probabilities: Float64Array;
  /** The vector of the text, of length 1, of a family that has one: learned weights read it. */
  readonly vector?: Float32Array;
  readonly encoded: number;
}

/** One loaded package. */
export interface Family {
  readonly tokenizer: TextTokenizer;
  /** Throws ChoiceTooLong and JobStopped. */
  score(premise: Premise, choices: readonly string[], control: RunControl): Promise<FamilyScores>;
  /** Checks choices and fills the cache. Throws ChoiceTooLong and JobStopped. */
  prepare(choices: readonly string[], control: RunControl): Promise<void>;
  /** Measures what runs cost on this machine. */
  profile(): Promise<CostProfile>;
  dispose(): Promise<void>;
}

/** A choice has more tokens than the model's `candidate_tokens`. */
export class ChoiceTooLong extends Error {
  override readonly name = 'ChoiceTooLong';
  readonly choice: string;
  readonly tokens: number;
  constructor(choice: string, tokens: number) {
    super('a choice has too many tokens');
    this.choice = choice;
    this.tokens = tokens;
  }
}

/** The job is no longer wanted: its caller left or its time is up. */
export class JobStopped extends Error {
  override readonly name = 'JobStopped';
}

/** The package's options are wrong. */
export class InvalidOptions extends Error {
  override readonly name = 'InvalidOptions';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}
