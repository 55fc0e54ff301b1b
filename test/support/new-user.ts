/** The environment of somebody who has only just cloned the repository: none of its own programs on PATH. */
import { delimiter } from 'node:path';

/**
 * This process's environment without the folders that npm and the scripts put before PATH, and without what npm
 * tells its scripts.
 */
export function newUserEnv(extra: Readonly<Record<string, string>> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !/^(npm_|NODE_|UMPIRE_)/.test(entry[0]),
  );
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !/node_modules[\\/]\.bin|node-gyp-bin/.test(folder))
    .join(delimiter);
  return { ...Object.fromEntries(kept), PATH: path, ...extra };
}
