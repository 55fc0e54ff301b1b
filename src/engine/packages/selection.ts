/** Which of the packages found are served: an operator names models, `<id>`, or single revisions, `<id>@<revision>`. */
import type { EngineLogger } from '../options.ts';
import { NAME_PATTERN } from './manifest.ts';
import type { FoundPackage } from './scan.ts';

/** Selects the packages that are to be served from those that were found. */
export type PackageSelection = (packages: readonly FoundPackage[]) => readonly FoundPackage[];

/** Reads names separated by commas; no name stands for all packages. */
export function parseSelection(text: string): { readonly value: readonly string[] } | { readonly problem: string } {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  const wrong = names.find(
    (name) => !/^[^@]+(@[^@]+)?$/.test(name) || !name.split('@').every((n) => NAME_PATTERN.test(n)),
  );
  return wrong === undefined
    ? { value: names }
    : { problem: `'${wrong}' is not a model, as 'umpire-mini', or a revision, as 'umpire-mini@r10'` };
}

/**
 * The selection by these names, all packages if there are none. Names without a package are logged, once as long as
 * they stay the same.
 */
export function createSelection(names: readonly string[], logger: EngineLogger): PackageSelection {
  if (names.length === 0) return (packages) => packages;
  let told = '';
  return (packages) => {
    const namesOf = ({ manifest: { id, revision } }: FoundPackage): readonly string[] => [id, `${id}@${revision}`];
    const there = new Set(packages.flatMap(namesOf));
    const missing = names.filter((name) => !there.has(name));
    if (missing.length > 0 && missing.join() !== told) {
      logger.warn({ models: missing }, 'there is no package of models that are to be served');
    }
    told = missing.join();
    return packages.filter((found) => namesOf(found).some((name) => names.includes(name)));
  };
}
