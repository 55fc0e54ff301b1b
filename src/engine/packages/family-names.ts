/** The kinds of model that the engine knows how to run, and where each kind's numbers are made. */

/**
 * `here`: by graph runs in an engine process. `server`: elsewhere, by a server that the package's `options.server`
 * names.
 */
const FAMILIES = {
  'bi-encoder': 'here',
  'nli-cross-encoder': 'here',
  'two-stage': 'here',
  remote: 'server',
  // The older name of `remote` with the dialect of that name.
  'open-inference': 'server',
} as const satisfies Readonly<Record<string, 'here' | 'server'>>;

/** A `family` of a manifest. `worker/load-family.ts` finds its code by this name. */
export type FamilyName = keyof typeof FAMILIES;

/** All families, in the order in which messages list them. */
export const FAMILY_NAMES = Object.keys(FAMILIES) as readonly FamilyName[];

/**
 * Whether a server elsewhere makes the numbers of this family's models. Such a model has a process and a queue of its
 * own, so that a server that is slow or away holds up nothing else.
 */
export function isRemote(family: FamilyName): boolean {
  return FAMILIES[family] === 'server';
}

/** What the servers of the family `remote` speak: its `options.dialect`. */
export const DIALECT_NAMES = ['open-inference', 'rerank', 'embeddings', 'system-one'] as const;

/** The name of a dialect. `worker/load-dialect.ts` finds its code by this name. */
export type DialectName = (typeof DIALECT_NAMES)[number];
