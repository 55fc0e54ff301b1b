/** The form of keys, and of the identifiers of decisions and requests. */
import test from 'ava';
import fc from 'fast-check';
import { newId } from '../../src/domain/ids.ts';
import { hashKey, isKey, isOwnerName, KEY_LENGTH, mintKey, mintKeyId } from '../../src/domain/keys.ts';

test('a minted key has its form and is like no other', (t) => {
  const keys = Array.from({ length: 500 }, mintKey);
  for (const key of keys) {
    t.regex(key, /^ump_live_[0-9A-Za-z]{49}$/);
    t.is(key.length, KEY_LENGTH);
    t.true(isKey(key));
  }
  t.is(new Set(keys).size, keys.length);
});

test('any one character changed, added or missing makes it junk', (t) => {
  const key = mintKey();
  fc.assert(
    fc.property(fc.nat(KEY_LENGTH - 1), fc.string({ minLength: 1, maxLength: 1 }), (place, character) => {
      const changed = key.slice(0, place) + character + key.slice(place + 1);
      t.is(isKey(changed), changed === key);
      t.false(isKey(key.slice(0, place) + key.slice(place + 1)));
      t.false(isKey(key.slice(0, place) + character + key.slice(place)));
    }),
  );
});

test('other texts are no keys', (t) => {
  for (const text of [
    '',
    'ump_live_',
    'ump_test_'.padEnd(KEY_LENGTH, 'a'),
    'ump_live_'.padEnd(KEY_LENGTH, '0'),
    `${mintKey()}\n`,
  ]) {
    t.false(isKey(text));
  }
});

test('the checksum is CRC-32 in base62, as another implementation computes it', (t) => {
  const body = `ump_live_${'0'.repeat(43)}`;
  let crc = ~0;
  for (const byte of Buffer.from(body)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  let rest = ~crc >>> 0;
  let check = '';
  for (; check.length < 6; rest = Math.floor(rest / 62)) check = digits.charAt(rest % 62) + check;
  t.true(isKey(body + check));
});

test('the hash is SHA-256 in hex; ids say nothing of the key', (t) => {
  t.is(hashKey('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  t.regex(mintKeyId(), /^key_[0-9A-Za-z]{16}$/);
});

test('names of owners', (t) => {
  for (const name of ['acme', 'A', '0', 'team.eu-1_x', 'x'.repeat(64)]) t.true(isOwnerName(name), name);
  for (const name of ['', '.a', '-a', '_a', 'a b', 'a/b', 'a:b', '{a}', 'a\n', 'é', 'x'.repeat(65)])
    t.false(isOwnerName(name), name);
});

test('identifiers match the contract and never repeat', (t) => {
  const seen = new Set<string>();
  for (let index = 0; index < 20_000; index += 1) {
    const id = newId(index % 2 === 0 ? 'dec_' : 'req_');
    t.regex(id, /^(dec|req)_[A-Za-z0-9_-]{22}$/);
    seen.add(id.slice(4));
  }
  t.is(seen.size, 20_000);
});
