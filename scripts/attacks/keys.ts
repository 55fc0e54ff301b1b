/** D8 and D9: keys that nobody issued, and wrong clocks. */
import { connect } from 'node:net';
import { mintKey } from '../../src/domain/keys.ts';
import { ask, decisionText } from './calls.ts';
import { type Scene, type Shown, sleep, until } from './shown.ts';

/** Junk keys with a valid checksum: more than a cache of keys may hold. */
const JUNK = 60_000;
/** Connections that send them at a time. */
const SENDERS = 8;

/**
 * Sends pipelined requests, each with a new junk key, and counts the answers. Resolves to how many were sent.
 */
async function sendJunk(port: number, seconds: number): Promise<number> {
  const ends = performance.now() + seconds * 1000;
  let sent = 0;
  const sender = async (): Promise<void> => {
    while (performance.now() < ends && sent < JUNK) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.1' });
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      socket.on('error', () => {});
      let answers = 0;
      let rest = '';
      socket.on('data', (part) => {
        const lines = (rest + part.toString('latin1')).split('HTTP/1.1 ');
        answers += lines.length - 1;
        // A read may end within these nine characters.
        rest = (lines.at(-1) as string).slice(-8);
      });
      for (let written = 0; written < 2000 && !socket.destroyed && performance.now() < ends && sent < JUNK; ) {
        const requests = Array.from(
          { length: 50 },
          () => `GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${mintKey()}\r\n\r\n`,
        );
        socket.write(requests.join(''));
        written += requests.length;
        sent += requests.length;
        while (answers < written && !socket.destroyed && performance.now() < ends)
          await Promise.race([closed, sleep(1)]);
      }
      socket.destroy();
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, sender));
  return sent;
}

/** How many look-ups of keys Redis has answered so far. */
async function lookUps({ redis }: Scene): Promise<number> {
  const text = String(await redis?.command('INFO', 'commandstats'));
  return Number(/cmdstat_hmget:calls=(\d+)/.exec(text)?.[1] ?? 0);
}

/**
 * D8: sends junk keys, and then tries whether a key that was verified before is still accepted while Redis is frozen.
 */
export async function showJunkKeys(scene: Scene, seconds: number): Promise<Shown> {
  const { target, redis } = scene;
  const key = await target.issueKey('good');
  const body = decisionText();
  const good = () => ask(target.port, { body, key, from: '127.0.0.3' });
  const first = (await good()).status;
  const before = await lookUps(scene);
  const sent = await sendJunk(target.port, seconds + 5);
  const looked = (await lookUps(scene)) - before;
  redis?.freeze();
  const { status } = await good();
  redis?.thaw();
  return {
    figure: `${sent} junk keys: ${looked} look-ups in Redis; then Redis frozen: a key that was verified before (${first}) gets ${status}`,
    defect: status !== 200 || looked > sent / 10,
  };
}

/** Settings of a service whose clock can be changed, as can its operator's: see stepped-clock.ts. */
export const STEPPED_CLOCK = { NODE_OPTIONS: `--import=${new URL('stepped-clock.ts', import.meta.url).href}` };
/** Seconds that a key is watched after it was revoked; it is promised to end within 5. */
const WATCHED = 8;

/** Seconds until a key is refused, or undefined if it is not. */
async function untilRefused({ target }: Scene, key: string): Promise<number | undefined> {
  const began = performance.now();
  let after: number | undefined;
  await until(WATCHED, async () => {
    if (after !== undefined) return sleep(100);
    if ((await ask(target.port, { body: decisionText(), key })).status === 401)
      after = (performance.now() - began) / 1000;
    return sleep(250);
  });
  return after;
}

/**
 * D9: revokes a key with an operator's clock that is a minute ahead, and another after the service's clock was set back
 * by an hour.
 */
export async function showClocks(scene: Scene): Promise<Shown> {
  const { target } = scene;
  const [ahead, back] = [await target.issueKey('ahead'), await target.issueKey('back')];
  for (const key of [ahead, back]) await ask(target.port, { body: decisionText(), key });
  await target.operate(['keys', 'revoke', '-'], { input: ahead, env: { STEPPED_CLOCK_MS: '60000' } });
  const afterAhead = await untilRefused(scene, ahead);
  await ask(target.port, { body: decisionText(), key: back });
  process.kill(target.pid, 'SIGUSR2');
  await sleep(100);
  await target.operate(['keys', 'revoke', '-'], { input: back });
  const afterBack = await untilRefused(scene, back);
  const words = (seconds: number | undefined): string =>
    seconds === undefined ? `still works after ${WATCHED} s` : `refused after ${seconds.toFixed(1)} s`;
  return {
    figure: `the operator's clock 60 s ahead: a revoked key ${words(afterAhead)}; the service's set back 1 h: ${words(afterBack)}`,
    defect: [afterAhead, afterBack].some((seconds) => seconds === undefined || seconds > 5),
  };
}
