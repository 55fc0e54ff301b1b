/**
 * Which of a cluster's 16,384 slots a key is in: the CRC-16 (XMODEM) of the part in the first pair of braces, or of the
 * whole key if there is no such part or it is empty, as the cluster specification of Redis says. With it a store call's
 * server is known before the call is made.
 */

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
