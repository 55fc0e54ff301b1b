/**
 * Two servers on one data folder, as one host has them while it changes over: what they keep is safe, and the second
 * one says what is not shared.
 */
import test from 'ava';
import { claimFolder } from '../src/stores/sqlite/folder.ts';
import { json } from './support/answers.ts';
import { send } from './support/http.ts';
import { lightModel } from './support/light-model.ts';
import { until } from './support/redis.ts';
import { startServer } from './support/server-process.ts';
import { temporaryFolder } from './support/temporary-folder.ts';
import { linesOf, runUmpire } from './support/terminal.ts';

const data = temporaryFolder();

const umpire = async (...args: string[]) => linesOf((await runUmpire(args, { env: { UMPIRE_DATA_DIR: data } })).out);

test('a claim is had by one, and is free when it is given back', (t) => {
  const folder = temporaryFolder();
  const first = claimFolder(folder);
  t.true(first.alone);
  t.false(claimFolder(folder).alone);
  first.release();
  const third = claimFolder(folder);
  t.true(third.alone);
  third.release();
});

test('catalogs and keys are one, their bounds hold over both, and the second server warns', async (t) => {
  const cap = 20;
  const settings = {
    UMPIRE_DATA_DIR: data,
    UMPIRE_MODELS_DIR: lightModel(),
    UMPIRE_CATALOGS_PER_OWNER: String(cap),
  };
  const servers = [await startServer(settings), await startServer(settings)] as const;
  t.teardown(async () => {
    for (const server of servers) await server.kill();
  });
  t.notRegex(servers[0].output(), /another server uses this data folder/);
  t.regex(servers[1].output(), /"level":"warn".*another server uses this data folder/);

  const issued = await umpire('keys', 'create', '--owner', 'acme');
  const [keyId = ''] = /key_\w+/.exec(issued.join()) ?? [];
  const headers = { authorization: `Bearer ${issued.at(-1)}` };
  const portOf = (server: number): number => servers[server]?.port ?? 0;
  const create = async (server: number, id: string): Promise<number> => {
    const body = JSON.stringify({ id, model: 'minilm-l6', choices: [`${id} of ${server}`, 'other'] });
    return (await send(portOf(server), { path: '/v1/catalogs', headers, body })).status;
  };
  const read = async (server: number, id: string) => {
    const answer = await send(portOf(server), { path: `/v1/catalogs/${id}`, headers });
    return { status: answer.status, body: json(answer) as { choices?: readonly string[] } };
  };

  // The same ids at both at the same time: one of them wins each, and both servers say the same of it.
  const ids = Array.from({ length: cap - 2 }, (_, place) => `c${place}`);
  const statuses = await Promise.all(ids.map((id) => Promise.all([create(0, id), create(1, id)])));
  for (const [place, pair] of statuses.entries()) {
    t.deepEqual(pair.toSorted(), [201, 409]);
    const id = ids[place] ?? '';
    const seen = [await read(0, id), await read(1, id)];
    t.deepEqual(seen[0], seen[1]);
    t.is(seen[0]?.body.choices?.[0], `${id} of ${pair.indexOf(201)}`);
  }
  // Two places are left for ten: the cap counts what the other server made.
  const last = await Promise.all(Array.from({ length: 10 }, (_, place) => create(place % 2, `last${place}`)));
  t.is(last.filter((status) => status === 201).length, 2);
  t.is(last.filter((status) => status === 429).length, 8);

  // A key that is revoked is refused by both within five seconds, though both had it in memory.
  for (const server of [0, 1]) t.is((await read(server, 'c0')).status, 200);
  await umpire('keys', 'revoke', keyId);
  await until(async () => (await read(0, 'c0')).status === 401 && (await read(1, 'c0')).status === 401, 5_500);

  // One goes, the other serves on; its successor is alone again.
  t.is(await servers[0].stop(), 0);
  t.is((await read(1, 'c0')).status, 401);
  t.is(await servers[1].stop(), 0);
  // The last use that the servers saw is written by the end.
  const [key] = JSON.parse((await umpire('keys', 'list', '--json')).join('')) as { last_used_at: string | null }[];
  t.truthy(key?.last_used_at);
  const claim = claimFolder(data);
  t.true(claim.alone);
  claim.release();
});
