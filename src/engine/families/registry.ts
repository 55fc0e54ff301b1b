/** The families that run in an engine. A name without a family does not compile; `open-inference` has processes of its own. */
import type { FamilyName } from '../packages/manifest.ts';
import { loadBiEncoder } from './bi-encoder.ts';
import { type Family, type FamilyParts, InvalidOptions } from './family.ts';
import { loadNliCrossEncoder } from './nli-cross-encoder.ts';
import { loadTwoStage } from './two-stage/two-stage.ts';

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
