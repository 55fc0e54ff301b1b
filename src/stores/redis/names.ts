/**
 * The names of Umpire's keys in Redis. What is in braces decides a cluster's slot: all that belongs to one owner is in
 * one slot, and so is all that limits one subject. Owners hold no braces.
 */

/** The hash of one catalog. */
export const catalogName = (owner: string, id: string): string => `umpire:{${owner}}:catalog:${id}`;

/** A set of the ids that an owner has, for counting and listing. */
export const catalogIdsName = (owner: string): string => `umpire:{${owner}}:catalogs`;

/** A hash from each of these ids to the bytes of its choices. */
export const catalogSizesName = (owner: string): string => `umpire:{${owner}}:catalog-sizes`;

/** A pattern of SCAN's for the sets of all owners' ids. */
export const CATALOG_IDS_PATTERN = 'umpire:{*}:catalogs';
/** The owner in the name of such a set. */
export const ownerOfCatalogIds = (name: string): string => name.slice('umpire:{'.length, -'}:catalogs'.length);

/** The hash of one key's record; `hash` is that of its secret. */
export const keyName = (hash: string): string => `${KEY_PREFIX}${hash}`;
/** What the names of all keys' records begin with. */
export const KEY_PREFIX = 'umpire:key:';

/** TAT, leases and quota of one subject. */
export const limitNames = (subject: string): readonly [string, string, string] => [
  `umpire:limit:{${subject}}:tat`,
  `umpire:limit:{${subject}}:leases`,
  `umpire:limit:{${subject}}:quota`,
];
