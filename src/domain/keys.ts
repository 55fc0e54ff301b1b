/**
 * The form of a key: `ump_live_`, then 43 base62 characters that write 32 random bytes as a number, then 6 base62
 * characters that write the CRC-32 of all before them. The checksum lets junk be refused without a look-up and lets
 * secret scanners find leaked keys. Stores know a key by its SHA-256 alone: with 256 random bits a slow hash would add
 * nothing, and looking a hash up compares no secret.
 */
import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

const PREFIX = 'ump_live_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const BODY = 43;
const CHECK = 6;

/** The length of every key. */
export const KEY_LENGTH = PREFIX.length + BODY + CHECK;

const FORM = new RegExp(`^${PREFIX}[0-9A-Za-z]{${BODY + CHECK}}$`);

/** The form of owners' names, which the operator chooses; they are part of the stores' key names. */
const OWNER = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/**
 * Whether a string may be an owner's name: 1 to 64 letters, digits, `.`, `_`, `-`, beginning with a letter or digit.
 */
export function isOwnerName(name: string): boolean {
  return OWNER.test(name);
}

/** A new secret key. */
export function mintKey(): string {
  const body = PREFIX + base62(BigInt(`0x${randomBytes(32).toString('hex')}`), BODY);
  return body + checksum(body);
}

/** A new public name for a key: says nothing about the secret. */
export function mintKeyId(): string {
  return `key_${base62(BigInt(`0x${randomBytes(11).toString('hex')}`), 16)}`;
}

/** Whether a string has the form of a key and its checksum is right. Says nothing about whether the key exists. */
export function isKey(text: string): boolean {
  if (text.length !== KEY_LENGTH || !FORM.test(text)) return false;
  return checksum(text.slice(0, -CHECK)) === text.slice(-CHECK);
}

/** What stores and caches know a key by: its SHA-256 in hex. */
export function hashKey(key: string): string {
  return hash('sha256', key, 'hex');
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let place = 0; place < CHECK; place++) {
    text = DIGITS.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

function base62(value: bigint, width: number): string {
  let rest = value;
  let text = '';
  while (text.length < width) {
    text = DIGITS.charAt(Number(rest % 62n)) + text;
    rest /= 62n;
  }
  return text;
}
