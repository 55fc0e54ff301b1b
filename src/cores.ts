/** How many processor cores this process may keep busy. */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Quota and period in microseconds of processor time, in cgroups of version 2 and of version 1. */
const QUOTAS = [['cpu.max'], ['cpu/cpu.cfs_quota_us', 'cpu/cpu.cfs_period_us']];

/**
 * Whole cores, at least one: those of the machine and of the process' affinity, or fewer by the quota of its container.
 * A share of a core beyond whole ones would only have two engines stop each other.
 */
export function usableCores(root = '/sys/fs/cgroup'): number {
  const files = QUOTAS.find(([file]) => existsSync(`${root}/${file}`)) ?? [];
  const [quota, period] = files.flatMap((file) => readFileSync(`${root}/${file}`, 'utf8').trim().split(' '));
  const allowed = Number(quota) / Number(period);
  const cores = availableParallelism();
  return allowed > 0 ? Math.max(1, Math.min(cores, Math.floor(allowed))) : cores;
}
