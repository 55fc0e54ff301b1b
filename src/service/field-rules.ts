/**
 * What each field of a request must be, in the contract's order of fields. A rule is checked before the request's
 * handler sees it, whatever protocol it came by: over REST field by field while the JSON is read, so that the first
 * fault in the contract's order is the one reported, over gRPC and Connect on the decoded message.
 */
import { DomainError, type ErrorReason } from '../domain/errors.ts';

/** Which fields of a request are present. Over REST a key that is there counts, whatever its value. */
export interface Presence {
  /** `name` is the field's name in the proto. */
  has(name: string): boolean;
}

/** Checks of one field. Each returns the fault that it finds. */
export interface FieldRule {
  /** Judges the field's presence, before its value is looked at. */
  readonly presence?: (fields: Presence) => DomainError | undefined;
  /** The reason of a wrong JSON type, where it is not INVALID_TYPE. */
  readonly wrongType?: ErrorReason;
  /** Judges how many items a list has, before they are read. */
  readonly items?: (count: number) => DomainError | undefined;
  /** Judges a value of the right type, if the field is present. */
  readonly value?: (value: never) => DomainError | undefined;
}

/** The rules of one request message: proto field name to rule, in the contract's order. */
export type RequestRules = Readonly<Record<string, FieldRule>>;

/** The fault of a string that has a lone surrogate: no such text can be sent back as UTF-8. */
export function illFormed(name: string): DomainError {
  return new DomainError('INVALID_VALUE', `${name} holds a lone surrogate, which is not a Unicode character`, {
    param: name,
  });
}

/** A string that must be there and not be empty. */
export function requiredText(name: string): FieldRule {
  return {
    presence: (fields) =>
      fields.has(name) ? undefined : new DomainError('MISSING_FIELD', `${name} is required`, { param: name }),
    value: (value: string) => textFault(name, value),
  };
}

/** A string that may be left out and must otherwise not be empty. */
export function optionalText(name: string): FieldRule {
  return { value: (value: string) => textFault(name, value) };
}

function textFault(name: string, value: string): DomainError | undefined {
  if (value.length === 0) return new DomainError('INVALID_VALUE', `${name} must not be empty`, { param: name });
  return value.isWellFormed() ? undefined : illFormed(name);
}
