/** JSON objects, one laid over the other. */
import type { JsonObject } from '../families/remote/http/reading.ts';

/** The fields of both; of a field that both have, what is laid over, objects again field by field. */
export function laidOver(under: JsonObject, over: JsonObject): JsonObject {
  const merged = Object.entries(over).map(([field, value]) => {
    const below = Object.hasOwn(under, field) ? under[field] : undefined;
    return [field, isObject(below) && isObject(value) ? laidOver(below, value) : value] as const;
  });
  return { ...under, ...Object.fromEntries(merged) };
}

/** Whether a value is an object of JSON. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
