/** The families that run in an engine. A name without a family does not compile; `open-inference` has processes of its own. */

import { loadBiEncoder } from '../families/bi-encoder.ts';
import type { Family, FamilyParts } from '../families/family.ts';
import { loadNliCrossEncoder } from '../families/nli-cross-encoder.ts';
import { loadTwoStage } from '../families/two-stage/two-stage.ts';
import { InvalidOptions } from '../packages/checker.ts';
import type { FamilyName } from '../packages/family-names.ts';

/** Loads a package of the named family. Throws what the family throws. */
export async function loadFamily(name: FamilyName, parts: FamilyParts): Promise<Family> {
  if (name === 'open-inference') throw new InvalidOptions(['family open-inference does not run in an engine']);
  return await loaders[name](parts);
}

const loaders: Readonly<Record<Exclude<FamilyName, 'open-inference'>, (parts: FamilyParts) => Promise<Family>>> = {
  'bi-encoder': loadBiEncoder,
  'nli-cross-encoder': loadNliCrossEncoder,
  'two-stage': loadTwoStage,
};
