/** Which of the packages found are served: an operator names models, `<id>`, or single revisions, `<id>@<revision>`. */
import { isRemote, NAME_PATTERN } from './manifest.ts';
import type { FoundPackage } from './scan.ts';

type Found = Pick<FoundPackage, 'manifest'>;

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
    : { problem: `'${wrong}' is not a model, as 'umpire-mini', or a revision, as 'umpire-mini@r11'` };
}

/** The packages that these names mean, all of them if there are none. */
export function selected<T extends Found>(names: readonly string[], packages: readonly T[]): readonly T[] {
  return names.length === 0
    ? packages
    : packages.filter((found) => namesOf(found).some((name) => names.includes(name)));
}

/** The names that mean none of the packages. */
export function strangers(names: Iterable<string>, packages: readonly Found[]): readonly string[] {
  const there = new Set(packages.flatMap(namesOf));
  return [...names].filter((name) => !there.has(name));
}

/** The names in the operator's addresses of inference servers that no remote package has. */
export function straysOf(servers: ReadonlyMap<string, string>, packages: readonly Found[]): readonly string[] {
  return strangers(
    servers.keys(),
    packages.filter(({ manifest }) => isRemote(manifest.family)),
  );
}

function namesOf({ manifest: { id, revision } }: Found): readonly string[] {
  return [id, `${id}@${revision}`];
}
