/** The suites that every store passes, on Redis in one of its shapes. */
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import type { LimitStore, Stores } from '../../../src/stores/stores.ts';
import { catalogStoreSuite } from '../catalog-store-suite.ts';
import { keyStoreSuite } from '../key-store-suite.ts';
import { limitStoreSuite } from '../limit-store-suite.ts';

/** Declares their tests under a name; returns the store of limits for tests of the caller's own. */
export function redisSuites(name: string, { catalogs, keys, limits }: Stores): LimitStore {
  if (limits === undefined) throw new Error('Redis counts limits');
  catalogStoreSuite(test.serial, name, () => catalogs);
  keyStoreSuite(test.serial, name, () => keys);
  limitStoreSuite(test.serial, name, () => ({
    take: (demand) => limits.take(demand, budget()),
    release: (subject, lease) => limits.release(subject, lease),
  }));
  return limits;
}
