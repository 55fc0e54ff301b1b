/**
 * Wrong requests of REST that a protobuf message can carry as well, so that the other protocols are held to
 * the same refusals.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import type { Refusal } from './expect.ts';
import { Skipped } from './outcome.ts';

/** One of them, with the error that it gets in every protocol. */
export interface WrongMessage {
  /** By the names of the proto. */
  readonly request: Readonly<Record<string, string | string[]>>;
  /** Of REST and Connect. */
  readonly status: number;
  readonly reason: string;
  readonly param?: string;
}

/**
 * Those of the bodies that are messages of the type: no unknown field, and nothing null, empty or of another type,
 * which a message cannot say.
 */
export function wrongMessages(
  { fields }: DescMessage,
  bodies: () => readonly unknown[],
  { status = 400, code, param }: Omit<Refusal, 'status'> & { readonly status?: number },
): readonly WrongMessage[] {
  const lists = new Map(fields.map(({ name, fieldKind }) => [name, fieldKind === 'list']));
  const says = ([name, value]: [string, unknown]): boolean =>
    lists.get(name) === Array.isArray(value) &&
    value !== '' &&
    [value].flat().length > 0 &&
    [value].flat().every((text) => typeof text === 'string' && text.isWellFormed());
  return possible(bodies)
    .filter((body): body is WrongMessage['request'] => Object.entries(body as object).every(says))
    .map((request) => ({
      request,
      status,
      reason: code.toUpperCase(),
      ...(typeof param === 'string' ? { param } : {}),
    }));
}

/** None where the deployment leaves no such case. */
function possible(bodies: () => readonly unknown[]): readonly unknown[] {
  try {
    return bodies();
  } catch (error) {
    if (error instanceof Skipped) return [];
    throw error;
  }
}
