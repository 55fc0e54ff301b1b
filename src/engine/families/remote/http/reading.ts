/** Reads the parts of an answer. All functions throw CallFailed `malformed` for a value that has another form. */
import { malformed } from '../call-failed.ts';

/** A JSON object with fields that have not been checked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A value as an object. */
export function objectOf(value: unknown): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed('the answer is no object');
  return value as JsonObject;
}

/** A value as a list; `name` is for the message. */
export function listIn(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(`the answer has no list of ${name}`);
  return value;
}

/** A value as a finite number; `name` is for the message. */
export function finiteNumber(value: unknown, name: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw malformed(`a ${name} is no finite number`);
  return value;
}

/**
 * What `read` makes of each item, in the order of the items' `index`, from 0 to `count` - 1, since servers sort by
 * score. Each index must be there once.
 */
export function inOrder<T>(items: readonly unknown[], count: number, read: (item: JsonObject) => T): readonly T[] {
  if (items.length !== count) throw malformed(`the answer has ${items.length} results, not ${count}`);
  const found = new Map<number, T>();
  for (const item of items.map(objectOf)) {
    const { index } = item;
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
      throw malformed('a result has no index within the request');
    }
    if (found.has(index)) throw malformed(`the answer has the index ${index} twice`);
    found.set(index, read(item));
  }
  return Array.from({ length: count }, (_, i) => found.get(i) as T);
}
