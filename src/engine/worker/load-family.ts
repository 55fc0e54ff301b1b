/**
 * The code of each family. It is imported when a package needs it: a process that runs graphs needs no client of
 * inference servers, and one that asks a server needs no runtime for graphs.
 */
import type { Family, FamilyParts } from '../families/family.ts';
import type { FamilyName } from '../packages/family-names.ts';
import { loadRemote } from './load-dialect.ts';

type LoadPackage = (parts: FamilyParts) => Promise<Family>;

/** A name without a family does not compile. */
const FAMILIES: Readonly<Record<FamilyName, () => Promise<LoadPackage>>> = {
  'bi-encoder': async () => (await import('../families/bi-encoder.ts')).loadBiEncoder,
  'nli-cross-encoder': async () => (await import('../families/nli-cross-encoder.ts')).loadNliCrossEncoder,
  'two-stage': async () => (await import('../families/two-stage/two-stage.ts')).loadTwoStage,
  remote: async () => loadRemote,
  'open-inference': async () => (await import('../families/open-inference/open-inference.ts')).loadOpenInference,
};

/** Loads a package of the named family. Throws what the family throws. */
export async function loadFamily(name: FamilyName, parts: FamilyParts): Promise<Family> {
  const loadPackage = await FAMILIES[name]();
  return await loadPackage(parts);
}
