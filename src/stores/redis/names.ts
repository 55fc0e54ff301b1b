/**
 * The names of Umpire's keys in Redis. The part in braces decides a cluster's slot: all that belongs to one owner is in
 * one slot, and so is all that limits one subject. Owners' names have no braces.
 */

/** The hash of one catalog. */
export const catalogName = (owner: string, id: string): string => `umpire:{${owner}}:catalog:${id}`;

/** The set of an owner's catalog ids, for counting and listing. */
export const catalogIdsName = (owner: string): string => `umpire:{${owner}}:catalogs`;

/** The hash from an owner's catalog ids to the bytes of each catalog's choices. */
export const catalogSizesName = (owner: string): string => `umpire:{${owner}}:catalog-sizes`;

/** A pattern for SCAN that matches every owner's set of catalog ids. */
export const CATALOG_IDS_PATTERN = 'umpire:{*}:catalogs';
/** The owner in the name of a set of catalog ids. */
export const ownerOfCatalogIds = (name: string): string => name.slice('umpire:{'.length, -'}:catalogs'.length);

/** The Redis hash of one API key's record; `hash` is the SHA-256 of the API key. */
export const keyName = (hash: string): string => `${KEY_PREFIX}${hash}`;
/** What the names of all API keys' records begin with. */
export const KEY_PREFIX = 'umpire:key:';

/** The Redis keys of one subject's limits: its theoretical arrival time (see domain/gcra.ts), its leases, its quota. */
export const limitNames = (subject: string): readonly [string, string, string] => [
  `umpire:limit:{${subject}}:tat`,
  `umpire:limit:{${subject}}:leases`,
  `umpire:limit:{${subject}}:quota`,
];
