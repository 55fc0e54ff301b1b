/** How limits are written in settings. */
import test from 'ava';
import { LIMIT_SETTINGS, limitsOf, parseCount, parseRate } from '../../src/domain/limit-settings.ts';
import { readSettings } from '../../src/domain/settings.ts';

for (const [text, value] of [
  ['50/s', { perSecond: 50, burst: 100 }],
  ['50/s, burst 70', { perSecond: 50, burst: 70 }],
  ['50/s burst=1', { perSecond: 50, burst: 1 }],
  [' 600/m ', { perSecond: 10, burst: 20 }],
  ['36/h', { perSecond: 0.01, burst: 1 }],
  ['0.5/s', { perSecond: 0.5, burst: 1 }],
  ['off', 'off'],
] as const) {
  test(`rate '${text}'`, (t) => {
    t.deepEqual(parseRate(text), { value });
  });
}

test('rates that are none', (t) => {
  for (const text of ['', '50', '0/s', '-1/s', '50/d', 'fast', '50/s, burst 0', '50/s, burst', '1e9/s', '9999999/s']) {
    t.true('problem' in parseRate(text), text);
  }
});

test('a rate whose waits could not be said is none, however it is written', (t) => {
  t.deepEqual(parseRate('1/h'), { value: { perSecond: 1 / 3600, burst: 1 } });
  for (const text of [`0.${'0'.repeat(30)}1/h`, '0.0001/h', `${'9'.repeat(400)}/s`, '1/s, burst 99999999'])
    t.true('problem' in parseRate(text), text);
});

test('counts', (t) => {
  t.deepEqual(parseCount('12'), { value: 12 });
  t.deepEqual(parseCount('off'), { value: 'off' });
  for (const text of ['', '0', '-1', '1.5', '01', 'many', '99999999999']) t.true('problem' in parseCount(text), text);
});

test('what is unset or empty has its default, what is wrong is named, all of it', (t) => {
  t.deepEqual(limitsOf(readSettings(LIMIT_SETTINGS, { UMPIRE_RATE_KEY: '' }).value), {
    anonymous: { rate: { perSecond: 200, burst: 1000 }, concurrency: 128, quota: 'off' },
    key: { rate: { perSecond: 1000, burst: 5000 }, concurrency: 512, quota: 'off' },
  });
  const { value, problems } = readSettings(LIMIT_SETTINGS, {
    UMPIRE_RATE_ANONYMOUS: 'off',
    UMPIRE_RATE_KEY: 'fast',
    UMPIRE_CONCURRENCY_ANONYMOUS: '3',
    UMPIRE_CONCURRENCY_KEY: '0',
    UMPIRE_QUOTA_ANONYMOUS: '7',
    UMPIRE_QUOTA_KEY: '-',
  });
  t.deepEqual(limitsOf(value).anonymous, { rate: 'off', concurrency: 3, quota: 7 });
  t.deepEqual(
    problems.map((problem) => problem.split(':')[0]),
    ['UMPIRE_RATE_KEY', 'UMPIRE_CONCURRENCY_KEY', 'UMPIRE_QUOTA_KEY'],
  );
});
