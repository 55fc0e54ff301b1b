/** A DomainError as gRPC and Connect carry it: a status code, `google.rpc.ErrorInfo`, and where a retry helps `RetryInfo` and pushback. */
import { Code, ConnectError } from '@connectrpc/connect';
import { ErrorInfoSchema, RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.ts';
import { type DomainError, ERROR_TABLE, type StatusName } from '../../domain/errors.ts';

const codes: Readonly<Record<StatusName, Code>> = {
  CANCELLED: Code.Canceled,
  INVALID_ARGUMENT: Code.InvalidArgument,
  DEADLINE_EXCEEDED: Code.DeadlineExceeded,
  NOT_FOUND: Code.NotFound,
  ALREADY_EXISTS: Code.AlreadyExists,
  RESOURCE_EXHAUSTED: Code.ResourceExhausted,
  FAILED_PRECONDITION: Code.FailedPrecondition,
  UNIMPLEMENTED: Code.Unimplemented,
  INTERNAL: Code.Internal,
  UNAVAILABLE: Code.Unavailable,
  DATA_LOSS: Code.DataLoss,
  UNAUTHENTICATED: Code.Unauthenticated,
};

/** `ErrorInfo.domain`: who defines the reasons. */
export const ERROR_DOMAIN = 'umpire';

/** The metadata by which a gRPC server tells a client's retry policy when to try again, milliseconds; -1 for never. */
const PUSHBACK = 'grpc-retry-pushback-ms';

/** Converts. The result carries everything that the error is on the wire, in both protocols. */
export function toConnectError(error: DomainError): ConnectError {
  const { status } = ERROR_TABLE[error.reason];
  const metadata = new Headers();
  const details: ConstructorParameters<typeof ConnectError>[3] = [
    {
      desc: ErrorInfoSchema,
      value: {
        reason: error.reason,
        domain: ERROR_DOMAIN,
        metadata: error.param === null ? {} : Object.fromEntries([['param', error.param]]),
      },
    },
  ];
  if (error.retryAfter !== undefined) {
    details.push({ desc: RetryInfoSchema, value: { retryDelay: { seconds: BigInt(error.retryAfter), nanos: 0 } } });
    metadata.set(PUSHBACK, String(error.retryAfter * 1000));
    metadata.set('retry-after', String(error.retryAfter));
  } else if (status === 'RESOURCE_EXHAUSTED') {
    metadata.set(PUSHBACK, '-1');
  }
  if (status === 'UNAUTHENTICATED') metadata.set('www-authenticate', 'Bearer');
  return new ConnectError(error.message, codes[status], metadata, details);
}
