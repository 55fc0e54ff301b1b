/**
 * Reads the tokens of JSON (RFC 8259) one after the other, without making values of them: strings, numbers, words and
 * what stands between them. It never goes back, so a text is gone through once, whatever is in it.
 */

const [QUOTE, BACKSLASH, MINUS, PLUS, POINT, ZERO, NINE] = [0x22, 0x5c, 0x2d, 0x2b, 0x2e, 0x30, 0x39];
const [SPACE, TAB, LINE_FEED, RETURN] = [0x20, 0x09, 0x0a, 0x0d];
const LETTER_U = 0x75;
/** 1 for each character that makes a whole escape with the backslash before it. */
const SIMPLE_ESCAPES = new Uint8Array(128);
for (const character of '"\\/bfnrt') SIMPLE_ESCAPES[character.charCodeAt(0)] = 1;
const WORDS = ['true', 'false', 'null'];

/** The text is not JSON. */
export class NotJson extends Error {
  override readonly name = 'NotJson';
  /** Where, in UTF-16 units; undefined if the text only ended too early. */
  readonly position: number | undefined;
  constructor(position: number | undefined) {
    super('the text is not JSON');
    this.position = position;
  }
}

/** A string in a text: from its opening quote to just after its closing one. */
export interface StringSpan {
  readonly start: number;
  readonly end: number;
  /** Whether it has escapes. */
  readonly escaped: boolean;
}

/** A place in a text. Every method throws NotJson where it does not find what it should read. */
export class JsonCursor {
  readonly text: string;
  at = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The unit here; NaN at the end. */
  get unit(): number {
    return this.text.charCodeAt(this.at);
  }

  get ended(): boolean {
    return this.at >= this.text.length;
  }

  /** Skips white space, and returns the unit after it; NaN at the end. */
  skipSpace(): number {
    const { text } = this;
    let { at } = this;
    for (;;) {
      const unit = text.charCodeAt(at);
      if (unit !== SPACE && unit !== LINE_FEED && unit !== RETURN && unit !== TAB) {
        this.at = at;
        return unit;
      }
      at += 1;
    }
  }

  /** Skips this unit. */
  take(unit: number): void {
    if (this.unit !== unit) this.fail();
    this.at += 1;
  }

  /** Skips a string. */
  takeString(): StringSpan {
    const { text, at: start } = this;
    this.take(QUOTE);
    let escaped = false;
    let at = this.at;
    for (;;) {
      const unit = text.charCodeAt(at);
      if (unit === QUOTE) break;
      if (unit === BACKSLASH) {
        escaped = true;
        at = SIMPLE_ESCAPES[text.charCodeAt(at + 1)] === 1 ? at + 2 : this.#afterCode(at);
      } else if (unit >= SPACE) at += 1;
      else this.fail(at);
    }
    this.at = at + 1;
    return { start, end: this.at, escaped };
  }

  /** Skips a number, `true`, `false` or `null`. */
  takeScalar(): void {
    const { unit } = this;
    if (unit === MINUS || isDigit(unit)) {
      this.#takeNumber();
      return;
    }
    const word = WORDS.find((each) => this.text.startsWith(each, this.at));
    if (word === undefined) this.fail();
    else this.at += word.length;
  }

  /** @throws NotJson for this place or another one. */
  fail(at = this.at): never {
    throw new NotJson(at < this.text.length ? at : undefined);
  }

  #afterCode(at: number): number {
    if (this.text.charCodeAt(at + 1) !== LETTER_U) this.fail(at + 1);
    for (let place = at + 2; place < at + 6; place += 1) if (!isHex(this.text.charCodeAt(place))) this.fail(place);
    return at + 6;
  }

  #takeNumber(): void {
    if (this.unit === MINUS) this.at += 1;
    if (this.unit === ZERO) this.at += 1;
    else this.#takeDigits();
    if (this.unit === POINT) {
      this.at += 1;
      this.#takeDigits();
    }
    if ((this.unit | 0x20) === 0x65) {
      this.at += 1;
      if (this.unit === PLUS || this.unit === MINUS) this.at += 1;
      this.#takeDigits();
    }
  }

  /** Skips digits, of which there must be at least one. */
  #takeDigits(): void {
    if (!isDigit(this.unit)) this.fail();
    const { text } = this;
    let { at } = this;
    while (isDigit(text.charCodeAt(at))) at += 1;
    this.at = at;
  }
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit <= NINE;
}

function isHex(unit: number): boolean {
  const lower = unit | 0x20;
  return isDigit(unit) || (lower >= 0x61 && lower <= 0x66);
}

/** The text of a string, its escapes resolved. */
export function stringOf(text: string, { start, end, escaped }: StringSpan): string {
  return escaped ? (JSON.parse(text.slice(start, end)) as string) : text.slice(start + 1, end - 1);
}
