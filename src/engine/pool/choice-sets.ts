/** Which sets of choices an engine has encoded: an estimate, for costs only. */
import { hash } from 'node:crypto';
import type { JobTerms } from '../engine.ts';

const digests = new WeakMap<readonly string[], string>();

/** A short name of a list of choices. Lists that differ have the same name only by accident or intent, which spoils an estimate at most. */
export function choiceSetOf(choices: readonly string[]): string {
  const known = digests.get(choices);
  if (known !== undefined) return known;
  const digest = hash('sha1', choices.join('\n'), 'base64');
  digests.set(choices, digest);
  return digest;
}

/**
 * Who shares what engines cache: a key's owner with nobody, callers without a key with each other. How long a decision takes tells whether its choices
 * were cached, so what one owner sends must make nobody else's decision faster.
 */
export function cachePart({ tenant, keyed }: Pick<JobTerms, 'tenant' | 'keyed'>): string {
  return keyed ? tenant : '';
}

/** The sets that one engine is likely to have in its cache. */
export interface KnownChoiceSets {
  has(key: string, choiceSet: string, part: string): boolean;
  add(key: string, choiceSet: string, part: string): void;
  remove(key: string, choiceSet: string, part: string): void;
}

const maxSets = 2048;

/** Remembers the sets used last; `key` names the loaded model, `part` those who share what is cached. */
export function createKnownChoiceSets(): KnownChoiceSets {
  const sets = new Set<string>();
  return {
    has: (key, choiceSet, part) => sets.has(`${key} ${choiceSet} ${part}`),
    add(key, choiceSet, part) {
      const name = `${key} ${choiceSet} ${part}`;
      sets.delete(name);
      sets.add(name);
      const [oldest] = sets;
      if (sets.size > maxSets && oldest !== undefined) sets.delete(oldest);
    },
    remove: (key, choiceSet, part) => sets.delete(`${key} ${choiceSet} ${part}`),
  };
}
