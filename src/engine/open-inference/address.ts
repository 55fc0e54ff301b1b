/** Addresses of inference servers: `host:port`, an IPv6 host in brackets. An operator's own replaces the one in a package, which so stays portable. */
import type { FoundPackage } from '../packages/scan.ts';

/** What an address looks like. */
export const addressPattern = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]{0,252}))(:\d{1,5})$/;

/** The package with the operator's address in its manifest, if there is one for `<id>@<revision>` or for `<id>`. */
export function withAddress(found: FoundPackage, servers: ReadonlyMap<string, string>): FoundPackage {
  const { manifest } = found;
  if (manifest.family !== 'open-inference') return found;
  const address = servers.get(`${manifest.id}@${manifest.revision}`) ?? servers.get(manifest.id);
  if (address === undefined) return found;
  const options = objectOf(manifest.options);
  const server = { ...objectOf(options.server), address };
  return { ...found, manifest: { ...manifest, options: { ...options, server } } };
}

/** The operator's names that no package bears which a server scores. */
export function straysOf(
  servers: ReadonlyMap<string, string>,
  packages: readonly Pick<FoundPackage, 'manifest'>[],
): readonly string[] {
  const names = new Set(
    packages
      .filter(({ manifest }) => manifest.family === 'open-inference')
      .flatMap(({ manifest: { id, revision } }) => [id, `${id}@${revision}`]),
  );
  return [...servers.keys()].filter((name) => !names.has(name));
}

/** Reads `<model>=<host:port>, …`, a model being `<id>` or `<id>@<revision>`, or nothing; a string is what is wrong with it. */
export function parseServers(text: string): ReadonlyMap<string, string> | string {
  const servers = new Map<string, string>();
  for (const entry of text === '' ? [] : text.split(',')) {
    const [, model, address] = /^\s*([a-z0-9][a-z0-9._-]*(?:@[a-z0-9][a-z0-9._-]*)?)\s*=\s*(\S+)\s*$/.exec(entry) ?? [];
    if (model === undefined || address === undefined || !addressPattern.test(address)) {
      return `must be <model>=<host>:<port>,…, not '${entry.trim()}'`;
    }
    if (servers.has(model)) return `names '${model}' twice`;
    servers.set(model, address);
  }
  return servers;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
