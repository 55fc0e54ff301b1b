/** `grpc.health.v1.Health` on the same state as `/health/*`: the whole server (`""`) and each of its services share one readiness. */
import type { DescService } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import {
  type Health as HealthService,
  HealthCheckResponse_ServingStatus as Status,
} from '../../../gen/health/v1/health_pb.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Health } from '../health.ts';

/** The service's implementation. `services` are those that it answers for beside the whole server. `check` throws DomainError. */
export function createGrpcHealth(health: Health, services: readonly DescService[]): ServiceImpl<typeof HealthService> {
  const known = new Set(['', ...services.map((service) => service.typeName)]);
  const status = (): Status => (health.ready ? Status.SERVING : Status.NOT_SERVING);
  return {
    check({ service }) {
      if (!known.has(service)) {
        throw new DomainError('SERVICE_NOT_FOUND', 'no such service here', { param: 'service' });
      }
      return { status: status() };
    },
    list: () => ({ statuses: Object.fromEntries([...known].map((service) => [service, { status: status() }])) }),
    watch: ({ service }, context) => watch(known.has(service) ? status : () => Status.SERVICE_UNKNOWN, health, context),
  };
}

/** Sends the status now and after each change, until the caller leaves or the process drains. */
async function* watch(
  status: () => Status,
  health: Health,
  { signal }: HandlerContext,
): AsyncGenerator<{ status: Status }> {
  let wake: () => void = () => {};
  const unsubscribe = health.watch(() => wake());
  const stop = (): void => wake();
  signal.addEventListener('abort', stop);
  try {
    let sent: Status | undefined;
    while (!signal.aborted) {
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
