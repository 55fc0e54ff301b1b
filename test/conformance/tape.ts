/**
 * The answers of a real service to every request of the kit, kept check by check, so that the kit can be run over and
 * over against answers that are changed on their way, without a service that does the same work again each time.
 */
import type { Answer } from '../../conformance/answer.ts';
import type { Call } from '../../conformance/call.ts';
import type { Caller } from '../../conformance/caller.ts';
import type { Check } from '../../conformance/check.ts';
import { createKit } from '../../conformance/kit.ts';
import { type Outcome, runChecks } from '../../conformance/run.ts';

/** A request as a breakage sees it. */
export interface SeenRequest {
  readonly protocol: 'http1' | 'http2';
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
  /** The body as a JSON object; empty if it is none. */
  readonly json: Readonly<Record<string, unknown>>;
}

/**
 * Something wrong with a service: the answer that it gives instead, or undefined for the right one. `before`: the
 * check's requests so far.
 */
export type Breakage = (request: SeenRequest, answer: Answer, before: readonly SeenRequest[]) => Answer | undefined;

/** The requests of one check with their answers, in order. */
export type Tape = { readonly name: string; readonly seen: SeenRequest; readonly answer: Answer }[];

export interface Keys {
  readonly key: string;
  readonly otherKey: string;
}

/** Recorded checks. */
export interface Recording {
  /** How each check went against the service itself. */
  readonly outcomes: readonly Outcome[];
  /**
   * Runs all checks against the recorded answers, changed by a breakage. Resolves to the checks that failed,
   * with their reasons.
   */
  replay(breakage: Breakage): Promise<ReadonlyMap<string, string>>;
  /** The requests and answers of each check. */
  readonly tapes: readonly { readonly check: Check; readonly tape: Tape }[];
  /** Runs one check against its recorded answers, of which one, or none, is another. */
  replayOne(check: Check, place: number, answer: Answer): Promise<Outcome>;
}

/** Runs checks through a caller and keeps what it answers. */
export async function record(checks: readonly Check[], caller: Caller, keys: Keys): Promise<Recording> {
  const recorded: { readonly check: Check; readonly tape: Tape; readonly outcome: Outcome }[] = [];
  for (const check of checks) {
    const tape: Tape = [];
    const keep = (protocol: 'http1' | 'http2') => async (call: Call) => {
      const answer = await caller[protocol](call);
      tape.push({ name: nameOf(protocol, call), seen: seenOf(protocol, call), answer });
      return answer;
    };
    recorded.push({
      check,
      tape,
      outcome: await run(check, { http1: keep('http1'), http2: keep('http2'), close() {} }, keys),
    });
  }
  return {
    outcomes: recorded.map(({ outcome }) => outcome),
    tapes: recorded,
    replayOne(check, place, answer) {
      const tape = recorded.find((one) => one.check === check)?.tape ?? [];
      const changed = tape.map((entry, at) => (at === place ? { ...entry, answer } : entry));
      return run(
        check,
        broken(changed, () => undefined),
        keys,
      );
    },
    async replay(breakage) {
      const failed = new Map<string, string>();
      // At once, since some checks wait for what does not come.
      await Promise.all(
        recorded.map(async ({ check, tape }) => {
          // A check none of whose answers is changed goes as it went.
          const before = tape.map(({ seen }) => seen);
          if (!tape.some(({ seen, answer }, at) => breakage(seen, answer, before.slice(0, at)) !== undefined)) return;
          const outcome = await run(check, broken(tape, breakage), keys);
          if (outcome.kind === 'failed') failed.set(check.id, outcome.reason);
        }),
      );
      return failed;
    },
  };
}

async function run(check: Check, caller: Caller, keys: Keys): Promise<Outcome> {
  let count = 0;
  // Different from check to check, for they are all made on one service.
  const unique = (): string => `${check.id}-${count++}`;
  const [outcome] = await runChecks([check], createKit({ caller, ...keys, model: 'mock', unique }));
  if (outcome === undefined) throw new Error('no outcome');
  return outcome;
}

/** A caller that answers from a tape; a request that comes more often than it did gets its last answer again. */
function broken(tape: Tape, breakage: Breakage): Caller {
  const turns = new Map<string, number>();
  const before: SeenRequest[] = [];
  const answer = (protocol: 'http1' | 'http2') => async (call: Call) => {
    const name = nameOf(protocol, call);
    const turn = turns.get(name) ?? 0;
    turns.set(name, turn + 1);
    const entries = tape.filter((entry) => entry.name === name);
    const entry = entries[turn] ?? entries.at(-1);
    // Only what checks do after a broken answer was not recorded, such as clearing up.
    if (entry === undefined) return { status: 404, headers: {}, trailers: {}, body: Buffer.from('{}') };
    const changed = breakage(entry.seen, entry.answer, [...before]);
    before.push(entry.seen);
    return changed ?? entry.answer;
  };
  return { http1: answer('http1'), http2: answer('http2'), close() {} };
}

function nameOf(protocol: string, { path, method, headers, body }: Call): string {
  const bytes = typeof body === 'string' ? body : Buffer.from(body ?? []).toString('base64');
  return JSON.stringify([protocol, path, method, headers, bytes]);
}

function seenOf(protocol: SeenRequest['protocol'], { path, method, headers = {}, body }: Call): SeenRequest {
  const bytes = Buffer.from((body ?? '') as string);
  return {
    protocol,
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    path,
    headers,
    body: bytes,
    json: jsonIn(bytes),
  };
}

function jsonIn(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
