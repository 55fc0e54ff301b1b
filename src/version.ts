/** The version of this Umpire. */
import { readFileSync } from 'node:fs';

/**
 * The package's version: logged at the start, shown by `umpire --version`, at `/` and in
 * the metric `umpire_build_info`.
 */
export const VERSION: string = String(
  (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: unknown }).version,
);
