/**
 * A map of probabilities as JSON bytes. Each number is written with six decimals, so for one list of keys the bytes differ from answer to answer
 * only in the digits: the list's template is copied and the digits are filled in.
 */
import type { MapEntries } from '../../service/map-entries.ts';

interface Template {
  readonly bytes: Buffer;
  /** Where each number's first decimal stands. */
  readonly places: Uint32Array;
}

const MILLION = 1_000_000;
const ZERO = 0x30;

// The keys of a list of choices that was recognised are the same array with every request.
const templates = new WeakMap<readonly string[], Template>();

/** The JSON object, or undefined if a value is not a number below 1 of at most six decimals. */
export function probabilityMap({ keys, values }: MapEntries): Buffer | undefined {
  let template = templates.get(keys);
  if (template === undefined) {
    template = createTemplate(keys);
    templates.set(keys, template);
  }
  const bytes = Buffer.from(template.bytes);
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] as number;
    let units = Math.round(value * MILLION);
    if (units / MILLION !== value || units < 0 || units >= MILLION) return undefined;
    const place = template.places[index] as number;
    for (let digit = 5; digit >= 0; digit -= 1) {
      const rest = Math.trunc(units / 10);
      bytes[place + digit] = ZERO + units - rest * 10;
      units = rest;
    }
  }
  return bytes;
}

function createTemplate(keys: readonly string[]): Template {
  const places = new Uint32Array(keys.length);
  const pieces: Buffer[] = [];
  let length = 0;
  for (const [index, key] of keys.entries()) {
    const piece = Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(key)}:0.000000`);
    length += piece.length;
    places[index] = length - 6;
    pieces.push(piece);
  }
  pieces.push(Buffer.from(keys.length === 0 ? '{}' : '}'));
  return { bytes: Buffer.concat(pieces), places };
}
