/** D13 and D14: a full store, and bytes that are not valid text. */
import { ask } from './calls.ts';
import { type Scene, type Shown, sleep, until } from './shown.ts';

/** Options of the Redis that is filled. */
export const FULL_STORE = ['--maxmemory', '24mb', '--maxmemory-policy', 'noeviction'];
/** Owners who store catalogs: more than one, since each owner has a bound. */
const OWNERS = 3;
/** Catalogs that each owner tries to create: together more than the store holds. */
const CATALOGS = 24;
const DECIDE = '/umpire.v1.DecisionService/CreateDecision';

/** D13: one owner, then others create catalogs of 1 MiB until the store is full; then tries what must still work. */
export async function showFullStore({ target }: Scene): Promise<Shown> {
  const keys: string[] = [];
  for (let owner = 0; owner < OWNERS; owner += 1) keys.push(await target.issueKey(`owner-${owner}`));
  const choices = Array.from({ length: 42 }, (_, index) => `${index}${'x'.repeat(24_000)}`);
  const accepted: number[] = [];
  let last = 0;
  for (const key of keys) {
    let made = 0;
    for (; made < CATALOGS; made += 1) {
      const body = JSON.stringify({ id: `c${made}`, model: 'minilm-l6', choices });
      last = (await ask(target.port, { path: '/v1/catalogs', key, body })).status;
      if (last !== 201) break;
    }
    accepted.push(made);
    // 503 comes from the full store; 429 is the owner's bound, after which the next owner goes on.
    if (last === 503) break;
  }
  const created = (await target.operate(['keys', 'create', '--owner', 'late'])).ok;
  const revoked = (await target.operate(['keys', 'revoke', '-'], { input: keys[2] as string })).ok;
  const deleted = (await ask(target.port, { method: 'DELETE', path: '/v1/catalogs/c0', key: keys[0] as string }))
    .status;
  const ok = (good: boolean): string => (good ? 'works' : 'fails');
  return {
    figure: `catalogs of 1 MiB taken from one owner ${accepted[0]}, in all ${accepted.reduce((sum, each) => sum + each, 0)}, then ${last}; on the full store DELETE ${deleted}, keys create ${ok(created)}, keys revoke ${ok(revoked)}`,
    defect: deleted !== 204 || !created || !revoked || (accepted[0] as number) > 16,
  };
}

/** D14: bodies of Connect that are not the text of a request. */
export async function showLooseText({ target }: Scene, seconds: number): Promise<Shown> {
  const text = (choice: string): string =>
    `{"model":"minilm-l6","input":"x","instruction":"i","choices":["${choice}","y"]}`;
  const bodies = {
    'invalid UTF-8': Buffer.from(text('x\xff'), 'latin1'),
    'a byte order mark': Buffer.from(`\ufeff${text('x')}`),
    null: Buffer.from(text('x').replace('{', '{"catalog":null,')),
  };
  const statuses = new Map<string, Set<number>>();
  await until(seconds, async () => {
    for (const [what, body] of Object.entries(bodies)) {
      const { status } = await ask(target.port, { path: DECIDE, body });
      statuses.set(what, (statuses.get(what) ?? new Set()).add(status));
      await sleep(20);
    }
  });
  const parts = [...statuses].map(([what, seen]) => `${what} ${[...seen].join(' and ')}`);
  return { figure: parts.join(', '), defect: [...statuses.values()].some((seen) => seen.has(200)) };
}
