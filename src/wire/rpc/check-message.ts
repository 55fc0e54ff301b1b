/** The rules of a request on a decoded message, in the contract's order of fields. */
import { type DescMessage, isFieldSet, type Message } from '@bufbuild/protobuf';
import { fieldRules } from '../../domain/field-rules.ts';

/** Checks one kind of message. @throws the first fault. */
export type MessageChecker = (message: Message) => void;

/** Compiles a checker. A field of the proto without presence of its own counts as present unless it is empty. */
export function compileMessageChecker(desc: DescMessage): MessageChecker {
  const rules = fieldRules(desc);
  const fields = desc.fields.map((field) => ({ field, rule: rules[field.name] ?? {} }));
  const byName = new Map(desc.fields.map((field) => [field.name, field]));
  return (message) => {
    const presence = {
      has: (name: string) => {
        const field = byName.get(name);
        return field !== undefined && isFieldSet(message, field);
      },
    };
    for (const { field, rule } of fields) {
      const missing = rule.presence?.(presence);
      if (missing !== undefined) throw missing;
      if (rule.value === undefined || !presence.has(field.name)) continue;
      const refused = rule.value((message as Message & Record<string, unknown>)[field.localName] as never);
      if (refused !== undefined) throw refused;
    }
  };
}
