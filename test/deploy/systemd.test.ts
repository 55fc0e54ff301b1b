/** The systemd unit agrees with what the service does and with where its files are. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { SETTINGS } from '../../src/config.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const unit = readFileSync(new URL('../../deploy/systemd/umpire.service', import.meta.url), 'utf8');
const settingOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
const usual = (name: string): number => Number(SETTINGS.find((setting) => setting.name === name)?.default);

test('it starts what there is, as the process that signals reach', (t) => {
  const [node = '', entry = ''] = settingOf('ExecStart').split(' ');
  t.true(existsSync(node.replace('/opt/umpire/', root)));
  t.true(existsSync(`${root}${entry}`));
  t.is(settingOf('WorkingDirectory'), '/opt/umpire');
  t.is(settingOf('KillMode'), 'mixed');
  t.regex(settingOf('ExecReload'), /-HUP \$MAINPID$/);
});

test('the drop-in for TLS lets it read the key and have port 443, and nothing else', (t) => {
  const dropIn = readFileSync(new URL('../../deploy/systemd/tls.conf', import.meta.url), 'utf8');
  const lines = dropIn.split('\n').filter((line) => /^\w+=/.test(line));
  const [environment = '', ...rights] = lines;
  t.deepEqual(
    Object.fromEntries(
      environment
        .replace('Environment=', '')
        .split(' ')
        .map((each) => each.split('=')),
    ),
    {
      PORT: '443',
      TLS_CERT: '/etc/umpire/tls.crt',
      TLS_KEY: '/etc/umpire/tls.key',
    },
  );
  t.deepEqual(rights, [
    'SupplementaryGroups=ssl-cert',
    'AmbientCapabilities=CAP_NET_BIND_SERVICE',
    'CapabilityBoundingSet=CAP_NET_BIND_SERVICE',
  ]);
});

test('the store is in the one folder that may be written, and the drain has the time that it takes', (t) => {
  t.regex(settingOf('Environment'), /UMPIRE_DATA_DIR=\/var\/lib\/umpire\b/);
  t.is(settingOf('StateDirectory'), 'umpire');
  t.is(settingOf('ProtectSystem'), 'strict');
  t.true(Number(settingOf('TimeoutStopSec')) > usual('UMPIRE_DRAIN_DELAY') + usual('UMPIRE_DRAIN_GRACE') + 10);
  t.true(Number(settingOf('LimitNOFILE')) > 2 * usual('UMPIRE_MAX_CONNECTIONS'));
});
