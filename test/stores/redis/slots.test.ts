/** The slots of a cluster, as the cluster specification of Redis works them out. */
import test from 'ava';
import { slotOf } from '../../../src/stores/redis/names.ts';

test('the checksum is CRC-16/XMODEM', (t) => {
  t.is(slotOf('123456789'), 0x31c3 % 16_384);
  t.is(slotOf(''), 0);
});

test('the part in the first braces decides, unless there is none', (t) => {
  t.is(slotOf('umpire:{acme}:catalog:a'), slotOf('acme'));
  t.is(slotOf('{acme}{other}'), slotOf('acme'));
  t.is(slotOf('a{{acme}}b'), slotOf('{acme'));
  for (const key of ['a{}b', 'a{b', 'a}b{', '{}']) t.not(slotOf(key), slotOf(''));
});
