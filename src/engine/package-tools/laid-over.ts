/** Merges JSON objects. */
import type { JsonObject } from '../families/remote/http/reading.ts';

/**
 * The fields of both objects. Of a field that both have, the value in `over` holds; two objects are merged in the same
 * way.
 */
export function laidOver(under: JsonObject, over: JsonObject): JsonObject {
  const merged = Object.entries(over).map(([field, value]) => {
    const below = Object.hasOwn(under, field) ? under[field] : undefined;
    return [field, isObject(below) && isObject(value) ? laidOver(below, value) : value] as const;
  });
  return { ...under, ...Object.fromEntries(merged) };
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
