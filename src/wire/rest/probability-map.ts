/**
 * A map of probabilities as JSON bytes. Each number is written with six decimals, so for one list of keys the bytes differ from answer to answer
 * only in the digits: the list's template is copied and the digits are filled in.
 */
import type { MapEntries } from '../../service/map-entries.ts';
import type { ByteRun } from './json-sink.ts';

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
export function probabilityMap({ keys, values }: MapEntries): ByteRun | undefined {
  const units = new Uint32Array(values.length);
  for (let index = 0; index < values.length; index += 1) {
    const value = values[index] as number;
    const unit = Math.round(value * MILLION);
    if (unit / MILLION !== value || unit < 0 || unit >= MILLION) return undefined;
    units[index] = unit;
  }
  const { bytes, places } = templateOf(keys);
  return {
    length: bytes.length,
    fill(target, start) {
      target.set(bytes, start);
      for (let index = 0; index < units.length; index += 1) {
        const place = start + (places[index] as number);
        const unit = units[index] as number;
        const high = (unit / 1000) | 0;
        writeThree(target, place, high);
        writeThree(target, place + 3, unit - high * 1000);
      }
    },
  };
}

function templateOf(keys: readonly string[]): Template {
  let template = templates.get(keys);
  if (template === undefined) {
    template = createTemplate(keys);
    templates.set(keys, template);
  }
  return template;
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
