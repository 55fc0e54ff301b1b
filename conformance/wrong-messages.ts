/**
 * Wrong requests of REST that a protobuf message can express, too. With them the other protocols are held to the same
 * errors.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import type { Refusal } from './expect.ts';
import { Skipped } from './outcome.ts';

/** A wrong request that a message can express, with the error that it gets in every protocol. */
export interface WrongMessage {
  /** The message, by the proto's names of its fields. */
  readonly request: Readonly<Record<string, string | string[]>>;
  /** The HTTP status of REST and Connect. */
  readonly status: number;
  readonly reason: string;
  readonly param?: string;
}

/**
 * The bodies that can be messages of the type: without unknown fields, and without values that are null, empty or of
 * another type, which a message cannot express.
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

/** The bodies; none if the deployment has no such case. */
function possible(bodies: () => readonly unknown[]): readonly unknown[] {
  try {
    return bodies();
  } catch (error) {
    if (error instanceof Skipped) return [];
    throw error;
  }
}
