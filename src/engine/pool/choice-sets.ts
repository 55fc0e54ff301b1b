/** Which sets of choices an engine has encoded: an estimate, for costs only. */
import { hash } from 'node:crypto';

const digests = new WeakMap<readonly string[], string>();

/** A short name of a list of choices. Lists that differ have the same name only by accident or intent, which spoils an estimate at most. */
export function choiceSetOf(choices: readonly string[]): string {
  const known = digests.get(choices);
  if (known !== undefined) return known;
  const digest = hash('sha1', choices.join('\n'), 'base64');
  digests.set(choices, digest);
  return digest;
}

/** The sets that one engine is likely to have in its cache. */
export interface KnownChoiceSets {
  has(key: string, choiceSet: string): boolean;
  add(key: string, choiceSet: string): void;
  remove(key: string, choiceSet: string): void;
}

const maxSets = 2048;

/** Remembers the sets used last; `key` names the loaded model. */
export function createKnownChoiceSets(): KnownChoiceSets {
  const sets = new Set<string>();
  return {
    has: (key, choiceSet) => sets.has(`${key} ${choiceSet}`),
    add(key, choiceSet) {
      const name = `${key} ${choiceSet}`;
      sets.delete(name);
      sets.add(name);
      const [oldest] = sets;
      if (sets.size > maxSets && oldest !== undefined) sets.delete(oldest);
    },
    remove: (key, choiceSet) => sets.delete(`${key} ${choiceSet}`),
  };
}
