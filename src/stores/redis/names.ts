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

// Which of a cluster's 16,384 slots a key is in: the CRC-16 (XMODEM) of the part in the first pair of braces, or of the
// whole key if there is no such part or it is empty, as the cluster specification of Redis says. With it a store call's
// server is known before the call is made.

/** Slots of a cluster. */
const SLOTS = 16_384;
/** The polynomial of CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021;

/** The CRC of each byte. */
const CRC_TABLE = Uint16Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc;
});

/** The slot of a key, 0 to 16,383. */
export function slotOf(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open + 1);
  const tag = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) crc = ((crc << 8) ^ (CRC_TABLE[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  return crc % SLOTS;
}
