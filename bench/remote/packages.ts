/** Writes a models folder with minilm-l6 and `shortlisted`, for which minilm-l6 picks and a decision server decides. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the local model's package. */
export const LOCAL = fileURLToPath(new URL('../../models/minilm-l6/r2', import.meta.url));

/** A temporary models folder. */
export interface ModelsFolder {
  readonly path: string;
  remove(): void;
}

/** Writes the folder; the server is at `address` and takes `cap` choices. */
export function writeModels(address: string, cap: number): ModelsFolder {
  const path = mkdtempSync(join(tmpdir(), 'umpire-bench-models-'));
  cpSync(LOCAL, join(path, 'minilm-l6', 'r2'), { recursive: true });
  const folder = join(path, 'shortlisted', 'r1');
  mkdirSync(folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(LOCAL, 'model.json'), 'utf8'));
  for (const file of Object.keys(manifest.files)) cpSync(join(LOCAL, file), join(folder, file));
  const { family, limits, options, ...common } = manifest;
  writeFileSync(
    join(folder, 'model.json'),
    JSON.stringify({
      ...common,
      id: 'shortlisted',
      family: 'remote',
      limits: { input_tokens: 160, candidate_tokens: 20, choices: 300 },
      options: {
        dialect: 'system-one',
        server: { address },
        model: 'umpire-mini',
        options: cap,
        cuts: 'refuses',
        timeout_ms: 30_000,
        tokenizer: options.tokenizer,
        temperature: 1,
        shortlist: { family, limits, options },
      },
    }),
  );
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
