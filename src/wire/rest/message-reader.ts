/**
 * From a JSON body to a request message, by the message's descriptor: names as in the proto (snake_case, no camelCase
 * alias), no unknown property, no null, no coercion. The first property that is unknown, given twice or nests too deep
 * is reported before any other fault. Of the other faults, the first in the proto's order of fields, which is the
 * contract's, is reported; each field is judged by its presence, its type, its number of items and its own rule.
 */
import { create, type DescField, type DescMessage, type Message } from '@bufbuild/protobuf';
import { type FieldRule, fieldRules } from '../../domain/field-rules.ts';
import { BodyScan, checkedValue, type JsonField, jsonKind } from '../http/request-json.ts';
import type { BodyValue } from '../http/strict-json.ts';

interface FieldReader extends JsonField {
  readonly localName: string;
}

const NO_BODY: ReadonlyMap<string, BodyValue> = new Map();

/** Reads the requests of one kind of message. */
export class MessageReader {
  readonly #desc: DescMessage;
  readonly #fields: readonly FieldReader[];
  readonly #scan: BodyScan;

  /** A body must not name the fields `inPath`. @throws Error naming a field whose kind requests do not have. */
  constructor(desc: DescMessage, inPath: ReadonlySet<string> = new Set()) {
    const rules = fieldRules(desc);
    this.#desc = desc;
    this.#fields = desc.fields.map((field) => compileField(desc, field, rules[field.name] ?? {}));
    this.#scan = new BodyScan(this.#fields.filter(({ name }) => !inPath.has(name)));
  }

  /**
   * Reads a body into a message; undefined for a request without one. `bound` holds the fields that the path gave.
   * @throws DomainError.
   */
  read(body: Uint8Array | undefined, bound: ReadonlyMap<string, string>): Message {
    const values = body === undefined ? NO_BODY : this.#scan.values(body);
    const message = create(this.#desc) as Message & Record<string, unknown>;
    const presence = { has: (name: string) => bound.has(name) || values.has(name) };
    for (const field of this.#fields) {
      const { name, localName, rule } = field;
      const fault = rule.presence?.(presence);
      if (fault !== undefined) throw fault;
      if (!presence.has(name)) continue;
      const value = bound.get(name) ?? checkedValue(field, values.get(name)).read();
      const refused = rule.value?.(value as never);
      if (refused !== undefined) throw refused;
      message[localName] = value;
    }
    return message;
  }
}

function compileField(desc: DescMessage, field: DescField, rule: FieldRule): FieldReader {
  const { name, localName } = field;
  const kind = jsonKind(field);
  if (kind === undefined) throw new Error(`${desc.typeName}.${name}: requests hold strings and lists of strings only`);
  return { name, localName, rule, kind };
}
