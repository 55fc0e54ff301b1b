/** The families that there are. A name without a family does not compile. */
import type { FamilyName } from '../packages/manifest.ts';
import { loadBiEncoder } from './bi-encoder.ts';
import type { Family, FamilyParts } from './family.ts';
import { loadNliCrossEncoder } from './nli-cross-encoder.ts';
import { loadTwoStage } from './two-stage/two-stage.ts';

/** Loads a package of the named family. Throws what the family throws. */
export function loadFamily(name: FamilyName, parts: FamilyParts): Promise<Family> {
  return loaders[name](parts);
}

const loaders: Readonly<Record<FamilyName, (parts: FamilyParts) => Promise<Family>>> = {
  'bi-encoder': loadBiEncoder,
  'nli-cross-encoder': loadNliCrossEncoder,
  'two-stage': loadTwoStage,
};
