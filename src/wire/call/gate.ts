/**
 * What a call must pass before its request is read, in every protocol: who is the caller, may it call this procedure,
 * and is it within its limits?
 */
import type { Authenticator } from '../../domain/authenticate.ts';
import type { BodyLimits } from '../../domain/body-limits.ts';
import { callerTerms } from '../../domain/callers.ts';
import { clientAddress, type TrustedProxies } from '../../domain/client-address.ts';
import { overloaded } from '../../domain/engine-faults.ts';
import { DomainError } from '../../domain/errors.ts';
import type { LimitedWork, Limits } from '../../domain/limits.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Procedure } from '../../service/procedure.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Refused } from '../watchdog.ts';

/** Lets a call in, or throws DomainError. Sets the exchange's caller and its lease. */
export type Gate = (exchange: Exchange, procedure: Procedure) => Promise<void>;

/** A gate over a deployment's keys and limits. */
export function createGate(options: {
  readonly authenticator: Authenticator;
  readonly limits: Limits;
  /** Counts the bytes of answers. */
  readonly answers: BodyLimits;
  readonly trustedProxies: TrustedProxies;
  /** Whether decisions may be made without a key. */
  readonly anonymous: boolean;
  readonly engine: Pick<Engine, 'crowded'>;
  /** Whose work is refused because the process is near its bounds. */
  readonly refused: () => Refused;
}): Gate {
  const { authenticator, limits, answers, trustedProxies, anonymous, engine, refused } = options;
  const admit = async (exchange: Exchange, work: LimitedWork): Promise<void> => {
    const whose = refused();
    if (whose === 'everybody' || (whose === 'anonymous' && exchange.caller.kind === 'anonymous')) {
      throw new DomainError('OVERLOADED', 'this process has no room for more work; try again later', { retryAfter: 1 });
    }
    const admitted = limits.admit(exchange.caller, work, exchange.storeBudget);
    exchange.hold(admitted instanceof Promise ? await admitted : admitted);
    if (work !== 'decision') return;
    const retryAfter = engine.crowded(callerTerms(exchange));
    if (retryAfter !== undefined) throw overloaded(retryAfter);
  };
  return async (exchange, procedure) => {
    const { headers, socket } = exchange.request;
    const address = clientAddress(socket?.remoteAddress, headers['x-forwarded-for'], trustedProxies);
    const checked = authenticator.authenticate(headers.authorization, address, exchange.storeBudget);
    exchange.identified(checked instanceof Promise ? await checked : checked);
    const keyed = procedure.access === 'keyed' || (!anonymous && procedure.limits === 'decision');
    if (keyed && exchange.caller.kind === 'anonymous') {
      exchange.place?.meter();
      throw new DomainError('AUTHENTICATION_REQUIRED', 'this needs a key: send it as Authorization: Bearer <API_KEY>');
    }
    const sent = answers.meter(exchange.caller);
    const beyond = sent(0);
    if (beyond !== undefined) throw beyond;
    exchange.metered(sent);
    if (procedure.limits !== 'none') await admit(exchange, procedure.limits);
    exchange.admitted();
  };
}
