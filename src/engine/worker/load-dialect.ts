/**
 * The family `remote`: a server elsewhere makes the numbers. `options.dialect` says what the server speaks; the code of
 * a dialect is imported when a package needs it.
 */
import type { Family, FamilyParts } from '../families/family.ts';
import { createChecker, InvalidOptions } from '../packages/checker.ts';
import { DIALECT_NAMES, type DialectName } from '../packages/family-names.ts';

type LoadPackage = (parts: FamilyParts) => Promise<Family>;

/** A name without a dialect does not compile. */
const DIALECTS: Readonly<Record<DialectName, () => Promise<LoadPackage>>> = {
  'open-inference': async () => (await import('../families/open-inference/open-inference.ts')).loadOpenInference,
  rerank: async () => (await import('../families/rerank/rerank.ts')).loadRerank,
  'system-one': async () => (await import('../families/system-one/system-one.ts')).loadSystemOne,
  embeddings: async () => (await import('../families/embeddings/embeddings.ts')).loadEmbeddings,
};

/** Loads a package of the family. Throws InvalidOptions, or what the dialect throws. */
export async function loadRemote(parts: FamilyParts): Promise<Family> {
  const problems: string[] = [];
  const found = createChecker(parts.options, 'options', problems).text('dialect');
  const dialect = DIALECT_NAMES.find((name) => name === found);
  if (dialect === undefined) {
    throw new InvalidOptions(
      problems.length > 0 ? problems : [`options.dialect must be one of ${DIALECT_NAMES.join(', ')}`],
    );
  }
  const loadPackage = await DIALECTS[dialect]();
  return await loadPackage(parts);
}
