/** Whose address counts. */
import test from 'ava';
import {
  clientAddress,
  NO_PROXIES,
  parseTrustedProxies,
  type TrustedProxies,
} from '../../src/domain/client-address.ts';

const trusting = (text: string): TrustedProxies => {
  const proxies = parseTrustedProxies(text);
  if ('problem' in proxies) throw new Error(proxies.problem);
  return proxies.value;
};
const proxies = trusting('10.0.0.0/8, 192.168.1.1 2001:db8:ffff::/48,::1');

for (const [peer, forwarded, expected] of [
  ['192.0.2.1', undefined, '192.0.2.1'],
  ['::ffff:192.0.2.1', undefined, '192.0.2.1'],
  ['::ffff:c000:201', undefined, '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::9', undefined, '2001:db8:1:2::/64'],
  ['2001:db8::1', undefined, '2001:db8:0:0::/64'],
  ['fe80::1%eth0', undefined, 'fe80:0:0:0::/64'],
  ['::1', undefined, '0:0:0:0::/64'],
  [undefined, undefined, ''],
  // A stranger's header is not believed.
  ['192.0.2.1', '198.51.100.7', '192.0.2.1'],
  // A trusted proxy's is, from the right, up to the first stranger.
  ['10.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['::ffff:10.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['10.0.0.1', '203.0.113.66, 198.51.100.7', '198.51.100.7'],
  ['10.0.0.1', '203.0.113.66, 198.51.100.7, 10.9.9.9, 192.168.1.1', '198.51.100.7'],
  ['::1', '2001:db8:1:2::7', '2001:db8:1:2::/64'],
  ['2001:db8:ffff::5', ' ::ffff:198.51.100.7 ', '198.51.100.7'],
  // Ports and brackets.
  ['10.0.0.1', '198.51.100.7:4711', '198.51.100.7'],
  ['10.0.0.1', '[2001:db8:1:2::7]:443', '2001:db8:1:2::/64'],
  ['10.0.0.1', '[2001:db8:1:2::7]', '2001:db8:1:2::/64'],
  // What cannot be read ends the search at what could.
  ['10.0.0.1', 'unknown', '10.0.0.1'],
  ['10.0.0.1', '198.51.100.7, junk, 10.0.0.2', '10.0.0.2'],
  ['10.0.0.1', '', '10.0.0.1'],
  ['10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
] as const) {
  test(`${peer} with ${forwarded === undefined ? 'no header' : `'${forwarded}'`} is ${expected}`, (t) => {
    t.is(clientAddress(peer, forwarded, proxies), expected);
  });
}

test('nobody is trusted unless that is said', (t) => {
  t.is(clientAddress('10.0.0.1', '198.51.100.7', NO_PROXIES), '10.0.0.1');
  t.is(clientAddress('10.0.0.1', '198.51.100.7', trusting('')), '10.0.0.1');
});

test('lists of proxies that are wrong name the item', (t) => {
  for (const item of ['localhost', '10.0.0.0/33', '::/129', '10.0.0.0/', '10.0.0.0/8/8', '10.0.0', '10.0.0.0/-1']) {
    const parsed = parseTrustedProxies(`127.0.0.1, ${item}`);
    t.true('problem' in parsed && parsed.problem.includes(`'${item}'`), JSON.stringify(parsed));
  }
});
