/**
 * The names of Umpire's keys in Redis. What is in braces decides a cluster's slot: all that belongs to one owner is in
 * one slot, and so is all that limits one subject. Owners hold no braces.
 */
export const catalogName = (owner: string, id: string): string => `umpire:{${owner}}:catalog:${id}`;

/** A set of the ids that an owner has, for counting and listing. */
export const catalogIdsName = (owner: string): string => `umpire:{${owner}}:catalogs`;

/** A hash from each of these ids to the bytes of its choices. */
export const catalogSizesName = (owner: string): string => `umpire:{${owner}}:catalog-sizes`;

/** A pattern of SCAN's for those sets, and the owner in the name of one. */
export const CATALOG_IDS_PATTERN = 'umpire:{*}:catalogs';
export const ownerOfCatalogIds = (name: string): string => name.slice('umpire:{'.length, -'}:catalogs'.length);

/** By the key's hash. */
export const keyName = (hash: string): string => `${KEY_PREFIX}${hash}`;
export const KEY_PREFIX = 'umpire:key:';

/** TAT, leases and quota of one subject. */
export const limitNames = (subject: string): readonly [string, string, string] => [
  `umpire:limit:{${subject}}:tat`,
  `umpire:limit:{${subject}}:leases`,
  `umpire:limit:{${subject}}:quota`,
];
