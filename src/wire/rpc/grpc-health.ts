/**
 * `grpc.health.v1.Health` on the same state as `/health/*`: the whole server (`""`) and each of its services
 * share one readiness.
 */
import type { DescService } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  type Health as HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../gen/health/v1/health_pb.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Health } from '../health.ts';
import type { Holdings } from '../holdings/holdings.ts';
import { exchangeOf, noting } from './context.ts';

/** The service's implementation. `services` are those that it answers for in addition to the whole server. */
export function createGrpcHealth(
  health: Health,
  services: readonly DescService[],
  holdings: Pick<Holdings, 'watch'>,
): ServiceImpl<typeof HealthService> {
  const known = new Set(['', ...services.map((service) => service.typeName)]);
  const status = (): Status => (health.ready ? Status.SERVING : Status.NOT_SERVING);
  const check = (service: string): { status: Status } => {
    if (known.has(service)) return { status: status() };
    throw new DomainError('SERVICE_NOT_FOUND', 'no such service here', { param: 'service' });
  };
  return {
    check: ({ service }, context) => noting(context, () => check(service)),
    list: () => ({ statuses: Object.fromEntries([...known].map((service) => [service, { status: status() }])) }),
    watch: ({ service }, context) =>
      watch(known.has(service) ? status : () => Status.SERVICE_UNKNOWN, health, context, holdings),
  };
}

/** Sends the status now and after each change, until the caller leaves, the watch must end or the process drains. */
async function* watch(
  status: () => Status,
  health: Health,
  context: HandlerContext,
  holdings: Pick<Holdings, 'watch'>,
): AsyncGenerator<{ status: Status }> {
  const { signal } = context;
  let wake: () => void = () => {};
  let ended = false;
  holdings.watch(exchangeOf(context), () => {
    ended = true;
    wake();
  });
  const unsubscribe = health.watch(() => wake());
  const stop = (): void => wake();
  signal.addEventListener('abort', stop);
  try {
    let sent: Status | undefined;
    while (!signal.aborted && !ended) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const now = status();
      if (now !== sent) {
        sent = now;
        yield { status: now };
      }
      if (health.draining) return;
      if (status() === sent) await changed;
    }
  } finally {
    unsubscribe();
    signal.removeEventListener('abort', stop);
  }
}
