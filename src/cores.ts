/** How many processor cores this process may keep busy. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/**
 * Whole cores, at least one: those of the machine and of the process' affinity, or fewer by the quota of its container
 * (cgroups, version 2 or 1). A share of a core beyond whole ones would only have two engines stop each other.
 */
export function usableCores(root = '/sys/fs/cgroup'): number {
  const [quota, period] = (
    contents(`${root}/cpu.max`) ??
    `${contents(`${root}/cpu/cpu.cfs_quota_us`)} ${contents(`${root}/cpu/cpu.cfs_period_us`)}`
  ).split(/\s+/);
  const allowed = Number(quota) / Number(period);
  const cores = availableParallelism();
  return allowed > 0 ? Math.max(1, Math.min(cores, Math.floor(allowed))) : cores;
}

function contents(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}
