/**
 * The messages between the pool and an engine process. They are structured-cloned over the child's IPC channel, which
 * keeps their order.
 *
 * An engine does one thing at a time, in the order of arrival: load, unload, score, prepare, release; jobs that a
 * server scores run at the same time. Between `reading` and `read` or `finished` of a job the engine pauses to make
 * short decisions that have arrived meanwhile. `cancel` and `drain` are read between two graph runs. Every `score` and
 * `prepare` gets exactly one `finished`, every `load` one `loaded` or `load_failed`, every `release` one `released`.
 * `key` names one loaded package: two generations of one revision have different keys. Times are milliseconds.
 */
import type { CostProfile } from '../cost-profile.ts';
import type { InferenceCalls, LongChoice, LongInput, Scored } from '../engine.ts';
import type { Manifest } from '../packages/manifest.ts';

/**
 * A decision may pass one whose texts take long to read if its own texts and choices have at most this many characters
 * together.
 */
export const PASSING_LENGTH = 4096;

/** From the pool to an engine. */
export type ToEngine =
  | LoadMessage
  | { readonly kind: 'unload'; readonly key: string }
  | ScoreMessage
  | PrepareMessage
  /** Asks it to give back the memory that it does not use. */
  | { readonly kind: 'release' }
  | { readonly kind: 'cancel'; readonly job: number }
  | { readonly kind: 'drain' };

/** Asks for a package to be verified and loaded, and for its canary decision. */
export interface LoadMessage {
  readonly kind: 'load';
  readonly key: string;
  readonly folder: string;
  readonly manifest: Manifest;
  /** What another engine measured; if undefined, this one measures, or remembers. */
  readonly profile: CostProfile | undefined;
  /** Whether an engine of this service has verified it and made its canary decision. */
  readonly proven: boolean;
  /** Whether loading it has failed, so that what is remembered of its costs may be wrong. */
  readonly inDoubt: boolean;
}

/** Asks for one decision. */
export interface ScoreMessage {
  readonly kind: 'score';
  readonly job: number;
  readonly key: string;
  /** Who shares what is cached for it, see `ChoiceList`. */
  readonly part: string;
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
  /** Whether the text's vector is wanted. */
  readonly vector: boolean;
  /** What was left until the deadline when the message was sent. */
  readonly timeLeft: number;
}

/** Asks for the choices of a catalog to be checked and encoded before a decision asks for them. */
export interface PrepareMessage {
  readonly kind: 'prepare';
  readonly job: number;
  readonly key: string;
  readonly part: string;
  readonly choices: readonly string[];
  /** The length of the whole list, of which these choices are a piece. */
  readonly all: number;
  readonly timeLeft: number;
}

/** From an engine to the pool. */
export type FromEngine =
  /** The package is loaded and its canary was right; `resident` are the process's resident bytes after it. */
  | { readonly kind: 'loaded'; readonly key: string; readonly profile: CostProfile; readonly resident: number }
  | {
      readonly kind: 'load_failed';
      readonly key: string;
      readonly problems: readonly string[];
      /** The package may be sound, but its inference server cannot be asked. */
      readonly away?: boolean;
    }
  | { readonly kind: 'finished'; readonly job: number; readonly result: JobResult }
  /** The texts of a job take long to read: other decisions may pass it. */
  | { readonly kind: 'reading'; readonly job: number }
  /** The texts are read: nothing passes the job any more. */
  | { readonly kind: 'read'; readonly job: number }
  /**
   * A loaded model cannot serve now, since its inference server is not fit; it serves again after it is loaded again.
   */
  | { readonly kind: 'unready'; readonly key: string; readonly problems: readonly string[] }
  /** Counts of the inference calls since the last such message. */
  | { readonly kind: 'calls'; readonly calls: InferenceCalls }
  /** The work goes on: sent between graph runs, at most every 100 ms, and while a server is waited for. */
  | { readonly kind: 'progress' }
  /** Resident bytes, about once a second, and once what was not used has been given back. */
  | { readonly kind: 'memory' | 'released'; readonly resident: number };

/** What became of a job. */
export type JobResult =
  | ScoredResult
  | { readonly kind: 'prepared' }
  | LongInput
  | LongChoice
  | { readonly kind: 'canceled' }
  /** Its inference server could not be reached, refused it or gave an answer that cannot be used. */
  | { readonly kind: 'unavailable'; readonly message: string }
  /** The engine lives on, but the model's runtime failed. */
  | { readonly kind: 'failed'; readonly message: string };

/** A decision that was made; times in milliseconds. */
export interface ScoredResult extends Omit<Scored, 'timings' | 'step'> {
  /** How many choices had to be encoded for it. */
  readonly encoded: number;
  /** Tokens of one of the choices that were read for it, on average; undefined if none was. */
  readonly choiceTokens?: number | undefined;
  /** Between its arrival in the engine and its start. */
  readonly waited: number;
  readonly tokenize: number;
  readonly infer: number;
}
