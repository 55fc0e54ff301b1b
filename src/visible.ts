/** Texts that callers chose, on their way to whoever reads them on a screen. */

/**
 * Characters that a reader does not see but that act: controls, of which terminals make commands; separators of lines;
 * those that turn the direction of a line or have no width.
 */
const ACTING = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u200b\u2060-\u2064\ufeff\u{e0000}-\u{e007f}]/gu;
/** What is outside of this is looked at more closely: most texts are not. */
const PLAIN = /^[\x20-\x7e]*$/;

/**
 * A line with characters that act written as `\u001b`. In JSON, where such characters stand in strings alone, that is
 * the same text, so lines for programs may be written by it, too.
 */
export function visible(line: string): string {
  if (PLAIN.test(line)) return line;
  return line.replaceAll(ACTING, (sign) => {
    // By code units, as JSON escapes those beyond the basic plane.
    const units = Array.from({ length: sign.length }, (_, place) => sign.charCodeAt(place));
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
  });
}
