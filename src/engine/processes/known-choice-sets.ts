/** Which sets of choices an engine has encoded: an estimate, for costs only. */
import { hash } from 'node:crypto';
import type { CallerTerms } from '../engine.ts';

/** A list of choices as an engine process may have it in its cache. */
export interface ChoiceSet {
  /** The key of the loaded revision. */
  readonly key: string;
  /** Who shares what is cached, see `cachePart`. */
  readonly part: string;
  /**
   * The digest of the list. Two lists could have the same one only by accident or intent, which spoils an estimate at
   * most.
   */
  readonly digest: string;
}

/** The choice set of a caller's list at one model. */
export function choiceSetOf(key: string, choices: readonly string[], caller: CallerTerms): ChoiceSet {
  return { key, part: cachePart(caller), digest: hash('sha1', choices.join('\n'), 'base64') };
}

/**
 * Who shares what engines cache: a key's owner with nobody, callers without a key with each other. How long a decision
 * takes tells whether its choices were cached, so what one owner sends must make nobody else's decision faster.
 */
function cachePart({ tenant, keyed }: CallerTerms): string {
  return keyed ? tenant : '';
}

/** The sets that one engine process is likely to have in its cache. */
export interface KnownChoiceSets {
  has(set: ChoiceSet): boolean;
  add(set: ChoiceSet): void;
  remove(set: ChoiceSet): void;
}

/** Sets that are remembered for one process. */
const MAX_SETS = 2048;

/** No sets at first; remembers those that were used last. */
export function createKnownChoiceSets(): KnownChoiceSets {
  const sets = new Set<string>();
  const nameOf = ({ key, part, digest }: ChoiceSet): string => `${key} ${digest} ${part}`;
  return {
    has: (set) => sets.has(nameOf(set)),
    add(set) {
      const name = nameOf(set);
      sets.delete(name);
      sets.add(name);
      const [oldest] = sets;
      if (sets.size > MAX_SETS && oldest !== undefined) sets.delete(oldest);
    },
    remove: (set) => sets.delete(nameOf(set)),
  };
}
