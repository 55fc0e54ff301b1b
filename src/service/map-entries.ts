/**
 * A map field of a response as two arrays. An object of 300 properties takes longer to build than the rest of a
 * request; a writer that only walks the pairs can ask for them instead. Whoever needs the object finds it under the
 * field's name as always.
 */

/** Keys and their numbers, in order. */
export interface MapEntries {
  readonly keys: readonly string[];
  readonly values: Float64Array;
}

/** Where a message that has a map field offers its entries. */
export const mapEntries: unique symbol = Symbol('map entries');

/** A message with one map field that can be had in both forms. */
export interface WithMapEntries {
  readonly [mapEntries]: MapEntries;
}
