/**
 * An attack with a key: catalogs whose choices keep the engines busy. Another owner, at another address, creates small
 * ones meanwhile.
 */
import { Agent, request } from 'node:http';
import type { Attack } from './attacks.ts';

/** An owner who creates catalogs: from `callers` loops at a time, with `choices` choices each. */
interface Maker {
  readonly port: number;
  readonly key: string;
  readonly localAddress: string;
  readonly callers: number;
  readonly choices: number;
}

/** The answer to a creation, and its time in milliseconds. */
interface Made {
  readonly status: number;
  readonly ms: number;
}

/** Creates and deletes catalogs with choices that nobody has had before, until the time is over. */
async function makeCatalogs({ port, key, localAddress, callers, choices }: Maker, seconds: number): Promise<Made[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const send = (method: string, path: string, body?: string): Promise<number> =>
    new Promise((resolve) => {
      const headers = {
        authorization: `Bearer ${key}`,
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      };
      const options = { port, host: '127.0.0.1', localAddress, agent, method, path, headers, timeout: 35_000 };
      const sent = request(options, (answer) => answer.resume().on('close', () => resolve(answer.statusCode ?? 0)));
      sent.on('error', () => resolve(0)).on('timeout', () => sent.destroy());
      sent.end(body);
    });
  const made: Made[] = [];
  const ends = performance.now() + seconds * 1000;
  let next = 0;
  const maker = async (): Promise<void> => {
    while (performance.now() < ends) {
      const id = `made-${next++}`;
      const texts = Array.from(
        { length: choices },
        (_, index) => `${id} is number ${index} of what ${key.slice(-6)} has`,
      );
      const began = performance.now();
      const status = await send('POST', '/v1/catalogs', JSON.stringify({ id, model: 'minilm-l6', choices: texts }));
      made.push({ status, ms: performance.now() - began });
      if (status === 201) await send('DELETE', `/v1/catalogs/${id}`);
      // After a refusal it tries again soon, but not in the same millisecond.
      else await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  await Promise.all(Array.from({ length: callers }, maker));
  agent.destroy();
  return made;
}

function inWords(made: readonly Made[]): string {
  const statuses = Map.groupBy(made, ({ status }) => status);
  const times = made
    .filter(({ status }) => status === 201)
    .map(({ ms }) => ms)
    .toSorted((a, b) => a - b);
  const at = (share: number): string => times[Math.floor(times.length * share)]?.toFixed(0) ?? '-';
  const counts = [...statuses].map(([status, { length }]) => `${length} × ${status || 'no answer'}`);
  return `${counts.join(', ')}, those made in ${at(0.5)}/${at(0.99)} ms`;
}

/** The attack by name. */
export const CATALOG_ATTACKS: Readonly<Record<string, Attack>> = {
  async preparation({ port, issueKey }, seconds) {
    const [attacker, other] = [await issueKey('attacker'), await issueKey('other')];
    // The other owner's figures are taken first without an attack.
    const small = { port, key: other, localAddress: '127.0.0.3', callers: 2, choices: 2 };
    const alone = await makeCatalogs(small, 2);
    const [attacks, others] = await Promise.all([
      makeCatalogs({ port, key: attacker, localAddress: '127.0.0.1', callers: 24, choices: 60 }, seconds),
      makeCatalogs(small, seconds),
    ]);
    return `catalogs of the attacker: ${inWords(attacks)}; of another owner: ${inWords(others)}; of that owner alone before: ${inWords(alone)}`;
  },
};
