/**
 * TLS, a user with the least rights, a password with odd characters, another database; slots, and what attempts cost.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { createStoreBudget as budget } from '../../../src/stores/budget.ts';
import { newClient, nodeOptions, socketOptions } from '../../../src/stores/redis/connection.ts';
import { slotOf } from '../../../src/stores/redis/names.ts';
import { StoreUnavailable } from '../../../src/stores/stores.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { createRecordedLog } from '../../support/log.ts';
import { openStores } from '../../support/open-stores.ts';
import { freePort, startRedis } from '../../support/redis.ts';
import { redisSuites } from './redis-suites.ts';

const certificate = makeCertificate('localhost');
const tlsPort = await freePort();
const { certFile, keyFile } = certificate;
const FILES = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile];
const redis = await startRedis(['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', ...FILES]);
const PASSWORD = 'p@ss:w/rd%';
const RIGHTS = ['~umpire:*', '+@read', '+@write', '+@scripting', '+@connection', '-@admin', '-@dangerous', '+time'];
await redis.command('ACL', 'SETUSER', 'umpire', 'on', `>${PASSWORD}`, ...RIGHTS);

const login = `umpire:${encodeURIComponent(PASSWORD)}@`;
const stores = await openStores({ REDIS_URL: `redis://${login}127.0.0.1:${redis.port}/3` });
test.after.always(async () => {
  await stores.close();
  await redis.stop();
});

redisSuites('least rights', stores);

test.serial('the database of the URL is used', async (t) => {
  t.is(await redis.command('DBSIZE'), 0);
  t.regex(String(await redis.command('INFO', 'keyspace')), /db3:keys=/);
});

test('a wrong password is a store that is away, and is not told', async (t) => {
  const log = createRecordedLog();
  const wrong = await openStores({ REDIS_URL: `redis://umpire:secretish@127.0.0.1:${redis.port}` }, log);
  t.teardown(() => wrong.close());
  const away = await t.throwsAsync(wrong.keys.list(budget()), { instanceOf: StoreUnavailable });
  t.regex(away?.message ?? '', /^Redis is away \(WRONGPASS (?!.*secretish)/);
  t.true(log.lines.some(({ level }) => level === 'warn'));
  t.false(
    JSON.stringify(
      log.lines.map((line) => ({ ...line, error: String((line.fields as { err?: unknown }).err) })),
    ).includes('secretish'),
  );
});

test('over TLS with a certificate that is trusted, and not with one that is not', async (t) => {
  const cli = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url));
  const create = (host: string, trust: string | undefined) =>
    promisify(execFile)(process.execPath, [cli, 'keys', 'create', '--owner', 'tls'], {
      env: {
        REDIS_URL: `rediss://${login}${host}:${tlsPort}`,
        ...(trust === undefined ? {} : { NODE_EXTRA_CA_CERTS: trust }),
      },
    });
  for (const host of ['localhost', '127.0.0.1']) {
    t.regex((await create(host, certificate.certFile)).stdout, /\nump_live_[0-9A-Za-z]{49}\n$/, host);
  }
  await t.throwsAsync(create('localhost', undefined), { message: /Redis is away/ });
});

test('clients of different servers share one class, so that trying again while Redis is away does not hold up the process', (t) => {
  const clientOf = (text: string) => {
    const url = new URL(text);
    return newClient({
      ...nodeOptions(url),
      socket: socketOptions(url, { host: url.hostname, port: Number(url.port) }),
    });
  };
  const [one, other] = [clientOf('redis://127.0.0.1:1001'), clientOf('redis://user:secret@127.0.0.1:1002/3')];
  t.is(one.constructor, other.constructor);
  t.like(one.options, { socket: { port: 1001 }, disableOfflineQueue: true });
  t.is(one.options?.username, undefined);
  t.like(other.options, { socket: { port: 1002 }, username: 'user', password: 'secret', database: 3 });
});

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
