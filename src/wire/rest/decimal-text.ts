/** Numbers from 0 to 1 as JSON text, with six decimals where they have no more: `0.000001`, which JavaScript would write as `1e-6`. */

const MILLION = 1_000_000;
const ZEROS = ['', '0', '00', '000', '0000', '00000'];

// With many choices most probabilities are small, and the small ones are few.
const small: (string | undefined)[] = new Array(10_000);

/** The text of a finite number. */
export function decimalText(value: number): string {
  const units = Math.round(value * MILLION);
  if (units / MILLION !== value || units < 0 || units >= MILLION) return String(value);
  return units < small.length ? (small[units] ??= sixDecimals(units)) : sixDecimals(units);
}

function sixDecimals(units: number): string {
  const digits = String(units);
  return `0.${ZEROS[6 - digits.length] ?? ''}${digits}`;
}
