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

// '000' to '999': two look-ups write a number where six divisions would.
const THREE_DIGITS = Buffer.from(Array.from({ length: 1000 }, (_, number) => String(number).padStart(3, '0')).join(''));

function writeThree(bytes: Buffer, place: number, number: number): void {
  const from = 3 * number;
  bytes[place] = THREE_DIGITS[from] as number;
  bytes[place + 1] = THREE_DIGITS[from + 1] as number;
  bytes[place + 2] = THREE_DIGITS[from + 2] as number;
}

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
    const units = Math.round(value * MILLION);
    if (units / MILLION !== value || units < 0 || units >= MILLION) return undefined;
    const place = template.places[index] as number;
    const high = (units / 1000) | 0;
    writeThree(bytes, place, high);
    writeThree(bytes, place + 3, units - high * 1000);
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
