/** Where catalogs and keys are kept, as the environment says. */
import test from 'ava';
import { durabilityWarnings } from '../../src/stores/redis/inspect.ts';
import { parseStoreSettings } from '../../src/stores/settings.ts';

for (const [title, env, expected] of [
  ['nothing is the embedded store', {}, { kind: 'sqlite', folder: 'data' }],
  ['its folder', { UMPIRE_DATA_DIR: '/var/lib/umpire' }, { kind: 'sqlite', folder: '/var/lib/umpire' }],
  ['one Redis', { REDIS_URL: 'redis://r:1' }, { kind: 'redis', topology: { kind: 'plain' }, waitReplicas: 0 }],
  ['with TLS', { REDIS_URL: 'rediss://u:p@r:1/3' }, { kind: 'redis', topology: { kind: 'plain' } }],
  [
    'Sentinels',
    { REDIS_SENTINELS: 'a:1, [::1]:2', REDIS_SENTINEL_NAME: 'main', UMPIRE_REDIS_WAIT_REPLICAS: '1' },
    {
      kind: 'redis',
      topology: {
        kind: 'sentinel',
        name: 'main',
        sentinels: [
          { host: 'a', port: 1 },
          { host: '::1', port: 2 },
        ],
      },
      waitReplicas: 1,
    },
  ],
  [
    'a cluster',
    { REDIS_CLUSTER: 'a:1' },
    { kind: 'redis', topology: { kind: 'cluster', nodes: [{ host: 'a', port: 1 }] } },
  ],
] as const) {
  test(title, (t) => {
    const { value, problems } = parseStoreSettings(env);
    t.deepEqual(problems, []);
    t.like(value, expected);
  });
}

for (const [title, env, setting] of [
  ['no URL', { REDIS_URL: 'localhost' }, 'REDIS_URL'],
  ['another scheme', { REDIS_URL: 'http://localhost' }, 'REDIS_URL'],
  ['a path that is no database', { REDIS_URL: 'redis://localhost/main' }, 'REDIS_URL'],
  ['Sentinels without a name', { REDIS_SENTINELS: 'a:1' }, 'REDIS_SENTINELS'],
  ['a name without Sentinels', { REDIS_SENTINEL_NAME: 'a' }, 'REDIS_SENTINELS'],
  ['an address without a port', { REDIS_CLUSTER: 'a:1,b' }, 'REDIS_CLUSTER'],
  ['a port that is none', { REDIS_CLUSTER: 'a:65536' }, 'REDIS_CLUSTER'],
  ['both', { REDIS_CLUSTER: 'a:1', REDIS_SENTINELS: 'a:1', REDIS_SENTINEL_NAME: 'a' }, 'REDIS_SENTINELS'],
  ['a database in a cluster', { REDIS_CLUSTER: 'a:1', REDIS_URL: 'redis://a/2' }, 'REDIS_URL'],
  [
    'replicas that are no number',
    { REDIS_URL: 'redis://a', UMPIRE_REDIS_WAIT_REPLICAS: 'all' },
    'UMPIRE_REDIS_WAIT_REPLICAS',
  ],
  ['replicas of the embedded store', { UMPIRE_REDIS_WAIT_REPLICAS: '1' }, 'UMPIRE_REDIS_WAIT_REPLICAS'],
] as const) {
  test(`wrong: ${title}`, (t) => {
    const { problems } = parseStoreSettings(env);
    t.is(problems.length, 1);
    t.true(problems[0]?.startsWith(setting), problems[0]);
  });
}

test('no problem tells a password', (t) => {
  t.false(parseStoreSettings({ REDIS_URL: 'http://user:secret@host' }).problems.join().includes('secret'));
});

test('warnings about how Redis is set up', (t) => {
  const sound = { evictionPolicy: 'noeviction', appendOnly: true, appendFsync: 'everysec', snapshots: '' };
  t.deepEqual(durabilityWarnings(sound), []);
  t.deepEqual(durabilityWarnings({ ...sound, evictionPolicy: 'volatile-lru' }), []);
  t.regex(durabilityWarnings({ ...sound, evictionPolicy: 'allkeys-lfu' }).join(), /noeviction/);
  t.regex(durabilityWarnings({ ...sound, appendOnly: false }).join(), /nothing on disk/);
  t.regex(durabilityWarnings({ ...sound, appendOnly: false, snapshots: '3600 1' }).join(), /only takes snapshots/);
  t.regex(durabilityWarnings({ ...sound, appendFsync: 'no' }).join(), /appendfsync/);
  const silent = { evictionPolicy: undefined, appendOnly: undefined, appendFsync: undefined, snapshots: undefined };
  t.deepEqual(durabilityWarnings(silent), []);
});
