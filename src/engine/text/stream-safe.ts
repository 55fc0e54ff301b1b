/**
 * The Stream-Safe Text Process of Unicode (UAX #15, section 13): U+034F is put after every 30 characters that a
 * normaliser would have to put into order. Ordering a run takes time that grows with its square, and real text has only
 * short runs. Nothing is taken away, and a text without longer runs stays as it is.
 */

/** The longest run that is left alone, by the standard. */
const LONGEST_RUN = 30;
const COMBINING_GRAPHEME_JOINER = '\u034f';

/** Below it there are no marks and, except for controls and the soft hyphen, no characters that a normaliser drops. */
const FIRST_MARK = 0x300;
/** It has the highest combining class: any other non-starter behind it changes places with it. */
const YPOGEGRAMMENI = '\u0345';

// What a character does to a run of non-starters. From FIRST_LENGTH on, the kind says how many non-starters the
// character counts as.
const UNKNOWN = 0;
const ENDS = 1;
/** A normaliser may take it out, and what is around it is then one run. */
const DROPPED = 2;
const FIRST_LENGTH = 2;

const KINDS = new Uint8Array(0x110000);

/** The text in Stream-Safe Text Format, in time linear in its length. */
export function streamSafe(text: string): string {
  let safe = '';
  let copied = 0;
  let run = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) as number;
    let kind = KINDS[code] as number;
    if (kind === UNKNOWN) {
      kind = kindOf(code);
      KINDS[code] = kind;
    }
    if (kind === ENDS) run = 0;
    else if (kind !== DROPPED) {
      run += kind - FIRST_LENGTH;
      if (run > LONGEST_RUN) {
        safe += text.slice(copied, at) + COMBINING_GRAPHEME_JOINER;
        copied = at;
        run = kind - FIRST_LENGTH;
      }
    }
    at += code > 0xffff ? 2 : 1;
  }
  return copied === 0 ? text : safe + text.slice(copied);
}

function kindOf(code: number): number {
  const character = String.fromCodePoint(code);
  if (/[\t\n\r]/.test(character)) return ENDS;
  if (/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\ufffd]/u.test(character)) return DROPPED;
  if (code < FIRST_MARK) return ENDS;
  // Counted in the compatibility decomposition, as in the standard, since it has the most non-starters. A character
  // that contains a starter ends a run.
  const parts = [...character.normalize('NFKD')];
  return parts.every(isNonStarter) ? FIRST_LENGTH + parts.length : ENDS;
}

function isNonStarter(character: string): boolean {
  const behind = YPOGEGRAMMENI + character;
  return character === YPOGEGRAMMENI || behind.normalize('NFD') !== behind;
}
