/**
 * The gate, before anything of a request is read and in every protocol: who is the caller, may it call this, and is it
 * within its limits?
 */
import type { Engine } from '../engine/engine.ts';
import { type Authenticator, authenticationRequired } from './authenticate.ts';
import { type BodyLimits, BodyMeter } from './body-limits.ts';
import type { Call } from './call.ts';
import { clientAddress, type TrustedProxies } from './client-address.ts';
import { DomainError } from './errors.ts';
import { overloaded } from './failures.ts';
import type { LimitedWork, Limits } from './limits.ts';

/** Where a call comes from, as its request says. */
export interface Origin {
  /** The address of the socket's other end. */
  readonly peer: string | undefined;
  /** The addresses that proxies name; see `clientAddress`. */
  readonly forwarded: string | readonly string[] | undefined;
  /** The scheme and the key. */
  readonly authorization: string | undefined;
}

/** Who may make a call, and what it counts against. */
export interface Access {
  /** `keyed`: refused without a valid key before the request is read. */
  readonly access: 'anyone' | 'keyed';
  /** Which of the caller's limits the call counts against. */
  readonly limits: LimitedWork | 'none';
}

/** Whose new work is refused because the process is near its bounds. */
export type Refused = 'nobody' | 'anonymous' | 'everybody';

/** A deployment's keys and limits. */
export interface GateOptions {
  readonly authenticator: Authenticator;
  readonly limits: Limits;
  /** Counts the bytes of answers. */
  readonly answers: BodyLimits;
  readonly trustedProxies: TrustedProxies;
  /** Whether decisions may be made without a key. */
  readonly anonymous: boolean;
  readonly engine: Pick<Engine, 'crowded'>;
  readonly watchdog: { readonly refused: Refused };
}

/** The one gate of a service. */
export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /** Lets a call in, which then has its caller and its lease. @throws DomainError if it may not come in. */
  async admit(call: Call, { peer, forwarded, authorization }: Origin, { access, limits }: Access): Promise<void> {
    const { authenticator, answers, trustedProxies, anonymous } = this.#options;
    const address = clientAddress(peer, forwarded, trustedProxies);
    const caller = authenticator.authenticate(authorization, address, call.storeBudget);
    call.identified(caller instanceof Promise ? await caller : caller);
    if (!call.keyed && (access === 'keyed' || (!anonymous && limits === 'decision'))) {
      call.place?.meter();
      throw authenticationRequired('this needs a key: send it as Authorization: Bearer <API_KEY>');
    }
    const beyond = answers.count(call.caller, 0);
    if (beyond !== undefined) throw beyond;
    call.answers = new BodyMeter(answers, call.caller);
    if (limits !== 'none') await this.#grant(call, limits);
    call.admitted();
  }

  async #grant(call: Call, work: LimitedWork): Promise<void> {
    const { limits, engine, watchdog } = this.#options;
    if (watchdog.refused === 'everybody' || (watchdog.refused === 'anonymous' && !call.keyed)) {
      throw new DomainError('OVERLOADED', 'this process has no room for more work; try again later', { retryAfter: 1 });
    }
    const lease = limits.grant(call.caller, work, call.storeBudget);
    call.hold(lease instanceof Promise ? await lease : lease);
    if (work !== 'decision') return;
    const retryAfter = engine.crowded(call);
    if (retryAfter !== undefined) throw overloaded(retryAfter);
  }
}
