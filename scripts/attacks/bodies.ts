/**
 * Attacks with the content of requests: texts that cost an engine time, and bodies that cost the serving process time.
 * They are bounded in number and come from 127.0.0.1.
 */
import { Agent, request } from 'node:http';
import { hostileBodies, hostileMessages } from '../../test/support/hostile-bodies.ts';
import type { Attack } from './attacks.ts';

const MIB = 1 << 20;
const DECIDE = '/umpire.v1.DecisionService/CreateDecision';

/** A request that is sent. */
interface Send {
  readonly path?: string;
  readonly type?: string;
  readonly body: Uint8Array;
}

/** Sends a request and resolves to the status of the answer, or to 0 without one. */
function send(
  port: number,
  agent: Agent,
  { path = '/v1/decisions', type = 'application/json', body }: Send,
): Promise<number> {
  return new Promise((resolve) => {
    const sent = request(
      {
        port,
        host: '127.0.0.1',
        localAddress: '127.0.0.1',
        agent,
        method: 'POST',
        path,
        timeout: 35_000,
        headers: { 'content-type': type },
      },
      (answer) => answer.resume().on('close', () => resolve(answer.statusCode ?? 0)),
    );
    sent.on('error', () => resolve(0)).on('timeout', () => sent.destroy());
    sent.end(body);
  });
}

/**
 * Sends the requests again and again over `callers` connections until the time is over. Resolves to how often each
 * status came, in words.
 */
async function flood(
  port: number,
  seconds: number,
  callers: number,
  sends: readonly Send[],
  pause = 0,
): Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const statuses = new Map<number, number>();
  const ends = performance.now() + seconds * 1000;
  let next = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < ends) {
      const status = await send(port, agent, sends[next++ % sends.length] as Send);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  agent.destroy();
  return [...statuses].map(([status, count]) => `${count} × ${status || 'no answer'}`).join(', ');
}

const decision = (fields: Readonly<Record<string, unknown>>): Send => ({
  body: Buffer.from(
    JSON.stringify({ model: 'minilm-l6', input: 'x', instruction: 'i', choices: ['a', 'b'], ...fields }),
  ),
});
const fill = (unit: string, bytes = MIB - 4096): string => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));

/** Texts that cost a careless reader more than their size suggests. */
const marks = `a${fill('\u0315\u0300')}`;
const hidden = `a${fill('\u0315\u200b\u0300\u200b')}`;
const unknownWords = fill(`${'q'.repeat(98)}\u{1f600} `);

/** The attacks by name. */
export const BODY_ATTACKS: Readonly<Record<string, Attack>> = {
  'hostile-texts': async ({ port }, seconds) =>
    flood(port, seconds, 4, [
      decision({ input: marks }),
      decision({ instruction: hidden }),
      decision({ input: unknownWords }),
      decision({ choices: ['a', marks] }),
      decision({ input: fill(' \n') }),
      decision({ input: fill('word ') }),
    ]),
  'combining-marks': async ({ port }, seconds) => flood(port, seconds, 4, [decision({ input: marks })]),
  'expensive-bodies': async ({ port }, seconds) =>
    flood(
      port,
      seconds,
      16,
      Object.values(hostileBodies).map((make) => ({ body: make(MIB - 2048) })),
    ),
  'escaped-keys': async ({ port }, seconds) =>
    flood(port, seconds, 16, [
      { body: (hostileBodies['unknown properties with escapes'] as (size: number) => Buffer)(MIB - 2048) },
    ]),
  'expensive-messages': async ({ port }, seconds) =>
    flood(
      port,
      seconds,
      16,
      Object.values(hostileMessages).map((make) => ({
        path: DECIDE,
        type: 'application/proto',
        body: make(MIB - 2048),
      })),
    ),
  'expensive-connect-json': async ({ port }, seconds) =>
    flood(
      port,
      seconds,
      16,
      Object.values(hostileBodies).map((make) => ({ path: DECIDE, body: make(MIB - 2048) })),
    ),
};
