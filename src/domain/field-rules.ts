/**
 * What each field of a request must be, as the protos state it: the constraints of `buf.validate`, and in
 * `umpire.v1.fault` the error of a value that they do not allow. Both are compiled into checks when the process starts.
 * A request is checked before its handler sees it, whatever protocol it came by: over REST field by field while the
 * JSON is read, so that the first fault in the proto's order of fields is the one reported, over gRPC and Connect on
 * the decoded message.
 */
import { type DescField, type DescMessage, getOption, hasOption, toJson } from '@bufbuild/protobuf';
import {
  FieldRulesSchema,
  field as fieldOption,
  message as messageOption,
} from '../../gen/buf/validate/validate_pb.ts';
import { ErrorReasonSchema } from '../../gen/umpire/v1/error_reason_pb.ts';
import { type FieldFault, fault as faultOption, oneof_fault } from '../../gen/umpire/v1/field_fault_pb.ts';
import { DomainError, type ErrorReason } from './errors.ts';

/** Which fields of a request are present. Over REST a field counts as present whatever its value. */
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

/** The rules of one request message: proto field name to rule, in the proto's order, which is the contract's. */
export type RequestRules = Readonly<Record<string, FieldRule>>;

/** What `buf.validate` states of a string. Numbers are strings, as protobuf's JSON writes those of 64 bits. */
export interface TextConstraints {
  /** The fewest code points, in decimal. */
  readonly minLen?: string;
  readonly maxLen?: string;
  readonly pattern?: string;
  readonly const?: string;
  readonly in?: readonly string[];
  readonly notIn?: readonly string[];
}

/** What `buf.validate` states of a list. */
export interface ListConstraints {
  readonly minItems?: string;
  readonly maxItems?: string;
  readonly unique?: boolean;
  readonly items?: Constraints;
}

/** What `buf.validate` states of a field, in protobuf's JSON. */
export interface Constraints {
  readonly required?: boolean;
  readonly string?: TextConstraints;
  readonly repeated?: ListConstraints;
  readonly int32?: { readonly gte?: number; readonly lte?: number };
  readonly double?: { readonly gte?: number; readonly lte?: number };
  readonly map?: { readonly values?: Constraints };
}

/** The constraints that the proto states of a field. */
export function constraintsOf(field: DescField): Constraints {
  return hasOption(field, fieldOption) ? (toJson(FieldRulesSchema, getOption(field, fieldOption)) as Constraints) : {};
}

/** The fields of a message that exclude each other, by name; one of them is required. Empty if there are none. */
export function exclusiveFields(desc: DescMessage): readonly string[] {
  if (!hasOption(desc, messageOption)) return [];
  const { oneof, cel, celExpression } = getOption(desc, messageOption);
  const [first, ...more] = oneof;
  if (first?.required !== true || more.length + cel.length + celExpression.length > 0) {
    throw new Error(`${desc.typeName}: of a message's constraints one required oneof alone is supported`);
  }
  return first.fields;
}

/** Compiles the rules of a request. @throws Error naming a constraint that the protos state and this cannot check. */
export function fieldRules(desc: DescMessage): RequestRules {
  const exclusive = exclusiveFields(desc);
  return Object.fromEntries(
    desc.fields.map((field): [string, FieldRule] => {
      const rule = fieldRule(field);
      return [field.name, field.name === exclusive[0] ? { ...rule, presence: oneOf(desc, exclusive) } : rule];
    }),
  );
}

type Fail = (message: string) => DomainError;

function fieldRule(field: DescField): FieldRule {
  const { name } = field;
  const { required, string, repeated, ...others } = constraintsOf(field);
  onlyChecked(field, others);
  const told = hasOption(field, faultOption) ? getOption(field, faultOption) : undefined;
  const fail = faultOf(told, name);
  const text = string === undefined ? undefined : textCheck(field, string, fail, told?.message);
  const list = repeated === undefined ? undefined : listChecks(field, repeated, fail);
  return {
    ...(required === true
      ? {
          presence: (fields) =>
            fields.has(name) ? undefined : new DomainError('MISSING_FIELD', `${name} is required`, { param: name }),
        }
      : {}),
    ...(told?.anyType === true ? { wrongType: reasonOf(told) } : {}),
    ...(text === undefined ? {} : { value: text }),
    ...list,
  };
}

function oneOf(desc: DescMessage, names: readonly string[]): NonNullable<FieldRule['presence']> {
  const fail = faultOf(hasOption(desc, oneof_fault) ? getOption(desc, oneof_fault) : undefined, names[0] as string);
  return (fields) =>
    names.filter((name) => fields.has(name)).length === 1 ? undefined : fail(`send exactly one of ${names.join(', ')}`);
}

function textCheck(
  field: DescField,
  { minLen, maxLen, pattern, in: values, notIn = [], ...others }: TextConstraints,
  fail: Fail,
  message: string | undefined,
): (value: string) => DomainError | undefined {
  const { name } = field;
  onlyChecked(field, others);
  const [least, most] = [Number(minLen ?? 0), Number(maxLen ?? Number.POSITIVE_INFINITY)];
  const form = pattern === undefined ? undefined : new RegExp(pattern, 'u');
  if ((form !== undefined || notIn.length > 0) && !message) {
    throw new Error(`${field.parent.typeName}.${name}: a pattern needs a message that says it in words`);
  }
  return (value) => {
    if (values !== undefined && !values.includes(value)) {
      return fail(`${name} must be ${values.map((each) => `'${each}'`).join(' or ')}`);
    }
    if (codePoints(value, least) < least) {
      return fail(least === 1 ? `${name} must not be empty` : `${name} must be at least ${least} characters`);
    }
    // Such a text cannot be sent back as UTF-8.
    if (!value.isWellFormed()) return fail(`${name} holds a lone surrogate, which is not a Unicode character`);
    if (form?.test(value) === false || notIn.includes(value)) return fail('');
    return codePoints(value, most) > most ? fail(`${name} must be at most ${most} characters`) : undefined;
  };
}

/** A text's length in code points, or in code units where these tell as well whether it is more than `bound`. */
function codePoints(text: string, bound: number): number {
  return text.length <= bound || text.length > 2 * bound ? text.length : [...text].length;
}

/** The checks of a list. Their messages name places, never texts. */
function listChecks(
  field: DescField,
  { minItems = '0', maxItems = 'Infinity', unique, items: item = {}, ...others }: ListConstraints,
  fail: Fail,
): Pick<Required<FieldRule>, 'items' | 'value'> {
  const { name } = field;
  const { string: { minLen, ...otherText } = {}, ...otherItems } = item;
  onlyChecked(field, { ...others, ...otherItems, ...otherText });
  if (minLen !== undefined && minLen !== '1') onlyChecked(field, { minLen });
  const [least, most] = [Number(minItems), Number(maxItems)];
  const items = (count: number): DomainError | undefined => {
    if (count >= least && count <= most) return undefined;
    // Whoever asks whether something is so has the other answer still to name.
    const hint = count === 1 && least === 2 ? "; add its opposite, such as 'none of these'" : '';
    return fail(`${name} must hold ${least} to ${most} items, not ${count}${hint}`);
  };
  const value = (values: readonly string[]): DomainError | undefined => {
    const wrongCount = items(values.length);
    if (wrongCount !== undefined) return wrongCount;
    const seen = new Set<string>();
    for (const [place, each] of values.entries()) {
      if (each === '' && minLen !== undefined) return fail(`${name}[${place}] is empty`);
      if (!each.isWellFormed()) return fail(`${name}[${place}] is not well-formed text: it holds a lone surrogate`);
      if (unique === true && seen.add(each).size === place) {
        return fail(`${name}[${place}] repeats ${name}[${values.indexOf(each)}]`);
      }
    }
    return undefined;
  };
  return { items, value };
}

/** The error that the protos state, with its own message or the one that is made from the constraint. */
function faultOf(told: FieldFault | undefined, param: string): Fail {
  const reason = reasonOf(told);
  return (message) => new DomainError(reason, told?.message || message, { param });
}

function reasonOf(told: FieldFault | undefined): ErrorReason {
  return told?.reason ? (ErrorReasonSchema.value[told.reason]?.localName as ErrorReason) : 'INVALID_VALUE';
}

function onlyChecked(field: DescField, others: object): void {
  const [unknown] = Object.keys(others);
  if (unknown === undefined) return;
  throw new Error(`${field.parent.typeName}.${field.name}: requests have no check for the constraint '${unknown}'`);
}
