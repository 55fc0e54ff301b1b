/**
 * A request's JSON as every protocol accepts it: which properties it may have, what they may hold, and the faults of
 * those that are wrong.
 */
import { type DescField, ScalarType } from '@bufbuild/protobuf';
import { DomainError } from '../../domain/errors.ts';
import type { FieldRule } from '../../domain/field-rules.ts';
import { type BodyValue, type ObjectShape, type ScannedBody, scanBody } from './strict-json.ts';

/** A field of a request, by its name in the proto. */
export interface JsonField {
  readonly name: string;
  readonly kind: 'string' | 'strings';
  readonly rule: FieldRule;
}

const MAX_PARAM = 128;

const AN_OBJECT =
  "an object: write one text, such as 'billing: invoices and charges', or have a catalog's choices described";

/** What other APIs for the same purpose call what a decision has, by the name that it has here. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  input: ['inputs', 'text', 'texts', 'query', 'prompt', 'messages', 'state', 'document', 'content'],
  instruction: ['instructions', 'question', 'questions', 'system', 'task', 'hypothesis_template'],
  choices: [
    'options',
    'labels',
    'classes',
    'candidates',
    'candidate_labels',
    'guided_choice',
    'criteria',
    'parameters',
  ],
};

/** The kind of JSON value for a field of a request; undefined for a kind of field that requests do not have. */
export function jsonKind(field: DescField): JsonField['kind'] | undefined {
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING) return 'string';
  if (field.fieldKind === 'list' && field.listKind === 'scalar' && field.scalar === ScalarType.STRING) return 'strings';
  return undefined;
}

/** Scans bodies with these fields. */
export class BodyScan {
  readonly #fields: readonly JsonField[];
  readonly #shape: ObjectShape;

  /** `shape` has the properties that are accepted, by default the fields' own names. */
  constructor(
    fields: readonly JsonField[],
    shape: ObjectShape = new Map(fields.map(({ name, kind }) => [name, kind])),
  ) {
    this.#fields = fields;
    this.#shape = shape;
  }

  /**
   * The values of a body by property, unread. @throws DomainError for a body that is not JSON, a property that is
   * unknown or given twice, or a value that nests too deep.
   */
  values(bytes: Uint8Array): ReadonlyMap<string, BodyValue> {
    const body = scanBody(bytes, this.#shape);
    switch (body.kind) {
      case 'object':
        return body.values;
      case 'unknown':
        throw unknownField(
          body.name,
          this.#fields.map(({ name }) => name),
        );
      case 'duplicate':
        throw new DomainError('DUPLICATE_FIELD', `${body.name} is given more than once`, { param: body.name });
      case 'nested':
        throw wrongType(
          this.#fields.find(({ name }) => name === body.name),
          body,
        );
    }
  }
}

/** A value of its field's type. @throws DomainError for another type, or too few or too many items. */
export function checkedValue(field: JsonField, value: BodyValue | undefined): Exclude<BodyValue, { kind: 'other' }> {
  if (value === undefined || value.kind === 'other' || value.kind !== field.kind) throw wrongType(field);
  const fault = value.kind === 'strings' ? field.rule.items?.(value.items) : undefined;
  if (fault !== undefined) throw fault;
  return value;
}

/** The fault of a value of another type. `found`: what was found in its place. */
function wrongType(field: JsonField | undefined, found?: ScannedBody & { readonly kind: 'nested' }): DomainError {
  const { name = '', rule, kind } = field ?? {};
  const wanted = kind === 'strings' ? 'an array of strings' : 'a string';
  const place =
    found?.place === undefined ? '' : `; ${name}[${found.place}] is ${found.isObject ? AN_OBJECT : 'not a string'}`;
  return new DomainError(rule?.wrongType ?? 'INVALID_TYPE', `${name} must be ${wanted}${place}`, { param: name });
}

/**
 * The fault of a property that the request does not have. It names those that it has, since callers easily take them
 * from another API.
 */
function unknownField(name: string, fields: readonly string[]): DomainError {
  const shown = name.length > MAX_PARAM ? `${name.slice(0, MAX_PARAM)}…` : name;
  const known = fields.length === 0 ? 'none' : fields.join(', ');
  const here = fields.find((field) => ELSEWHERE[field]?.includes(name));
  const bridged = /^(state|questions)$/.test(name) ? ', or send such requests to the bridge (docs/bridge.md)' : '';
  const hint = here === undefined ? '' : `; what another API calls ${shown} belongs into ${here} here${bridged}`;
  const message = `${shown} is not a property of this request, which has ${known}${hint}`;
  return new DomainError('UNKNOWN_FIELD', message, { param: shown });
}
