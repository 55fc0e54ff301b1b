/** Packages of models at servers and of cascades, written for a benchmark. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { USUAL_CANARY } from '../../src/engine/package-tools/pack.ts';
import { type ManifestSource, writeManifest } from '../../src/engine/package-tools/place-package.ts';

/** A model at a simulated server. */
export function remotePackage(port: number, model: string): PackageParts {
  return {
    family: 'remote',
    limits: { inputTokens: 4096, candidateTokens: 96, choices: 300 },
    canary: USUAL_CANARY,
    options: {
      ...{ dialect: 'system-one', server: { address: `127.0.0.1:${port}` }, model, options: 300, cuts: 'refuses' },
      ...{ bytes_per_token: 4, temperature: 1 },
    },
  };
}

/** What a package is made of, beside its name. */
type PackageParts = Omit<ManifestSource, 'id' | 'revision' | 'ownedBy' | 'isDefault'>;

/** Writes the revision r1 of a model into a models folder. */
export async function writePackage(modelsDir: string, id: string, parts: PackageParts): Promise<void> {
  const folder = join(modelsDir, id, 'r1');
  await mkdir(folder, { recursive: true });
  await writeManifest(folder, [], { id, revision: 'r1', ownedBy: 'bench', isDefault: true, ...parts });
}
