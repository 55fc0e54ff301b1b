/** The page of `umpire review`: the text at hand, its choices with their keys, and what is being typed. */
import { visible } from '../../visible.ts';
import type { Key, Page } from '../command.ts';
import { type Deck, type Offered, offerOf } from './deck.ts';

/** What the keys of the page do. */
const KEYS = 'Enter as decided  / find  - skip  < undo  + note  > more text  . end';
/** Lines of what is typed or said that are shown at most, the last ones. */
const MOST_FOOT = 5;
/** Columns between choices side by side. */
const GAP = 3;

/** A page for one deck. */
export class ReviewPage implements Page {
  readonly #deck: Deck;
  /** The name of a choice behind `/`, or a note behind `+`, as far as it is typed. */
  #typed = '';
  #said = '';
  /** The first line of the text that is shown, and of its next part: 0 after the last. */
  #from = 0;
  #next = 0;
  /** The choices that are shown: the keys of others answer nothing. */
  #shown: readonly Offered[] = [];

  constructor(deck: Deck) {
    this.#deck = deck;
  }

  lines(columns: number, rows: number): readonly string[] {
    const { text, progress, choices } = this.#deck;
    if (text === undefined) return [];
    const foot = wrapped(this.#typed === '' ? this.#said || KEYS : `${this.#typed}_`, columns).slice(-MOST_FOOT);
    const input = wrapped(text.instruction === '' ? text.input : `${text.instruction}\n\n${text.input}`, columns);
    // The five: progress, how much text is left, the decision, an empty line, and whether there are other choices.
    const free = Math.max(2, rows - foot.length - 5);
    const offers = this.#offers(columns, Math.floor((2 * free) / 3));
    // In a terminal that was made wider the text has fewer lines.
    const from = this.#from < input.length ? this.#from : 0;
    const end = from + free - offers.length;
    const rest = input.length - end;
    this.#next = rest > 0 ? end : 0;
    const body = [
      ...[progress, ...input.slice(from, end), rest > 0 ? `(${rest} more lines)` : '', text.decision, ''],
      ...[...offers, this.#shown.length < choices.length ? '(/ finds the other choices)' : ''],
    ];
    const lines = [...body.slice(0, Math.max(1, rows - foot.length)), ...foot].slice(0, rows);
    return lines.map((line) => cut(visible(line), columns));
  }

  press({ text, name }: Key): boolean {
    const isEnter = name === 'return' || name === 'enter';
    if (this.#typed !== '') {
      if (isEnter) this.#answer(this.#typed);
      else if (name === 'escape') this.#typed = '';
      else if (name === 'backspace') this.#typed = [...this.#typed].slice(0, -1).join('');
      else this.#typed += text.replaceAll(/\s/g, ' ');
    } else if (name === 'paste') return true;
    else if (text === '.' || name === 'ctrl-d') return false;
    else if (text === '/' || text === '+') this.#typed = text;
    else if (text === '>' || name === 'pagedown') this.#from = this.#next;
    else if (isEnter) this.#answer('');
    else if (text === '<' || name === 'backspace') this.#answer('<');
    else if (text === '-' || this.#shown.some(({ key }) => key === text)) this.#answer(text);
    return this.#deck.text !== undefined;
  }

  #answer(typed: string): void {
    this.#typed = '';
    this.#said = this.#deck.answer(typed);
    if (this.#said === '') this.#from = 0;
  }

  /** The choices, or those that are meant, side by side: as many as fit. */
  #offers(columns: number, rows: number): readonly string[] {
    const { choices } = this.#deck;
    const all = this.#typed.startsWith('/') ? this.#deck.find(this.#typed.slice(1)) : choices;
    const cells = all.map((each) => visible(offerOf(each)));
    const width = Math.max(0, ...cells.map(columnsOf)) + GAP;
    const side = Math.max(1, Math.floor((columns + GAP) / width));
    this.#shown = all.slice(0, side * rows);
    const lines: string[] = [];
    for (let place = 0; place < this.#shown.length; place += side) {
      const row = cells.slice(place, place + side).map((cell) => cell + ' '.repeat(width - columnsOf(cell)));
      lines.push(row.join('').trimEnd());
    }
    return lines;
  }
}

/** The lines of a text. */
export function linesIn(text: string): readonly string[] {
  return text.replaceAll('\t', '    ').split(/\r?\n/);
}

/** What may take two columns. A sign that takes none counts as one: its line only breaks early. */
const WIDE = /[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\ufaff\ufe30-\uff60\uffe0-\uffe6\u{1f000}-\u{3fffd}]/u;

function columnsOf(line: string): number {
  let columns = 0;
  for (const sign of line) columns += WIDE.test(sign) ? 2 : 1;
  return columns;
}

/** The beginning of a line that fits. */
function cut(line: string, most: number): string {
  let [columns, end] = [0, 0];
  for (const sign of line) {
    columns += columnsOf(sign);
    if (columns > most) break;
    end += sign.length;
  }
  return line.slice(0, end);
}

/** A text in lines that fit: broken between words, and within words that are too long. */
function wrapped(text: string, columns: number): readonly string[] {
  // A sign may take two columns, however few there are.
  const most = Math.max(2, columns);
  return linesIn(text).flatMap((line) => {
    const lines: string[] = [];
    let rest = visible(line);
    for (let whole = cut(rest, most); whole.length < rest.length; whole = cut(rest, most)) {
      const space = whole.lastIndexOf(' ');
      const end = space > 0 ? space : whole.length;
      lines.push(rest.slice(0, end));
      rest = rest.slice(end).trimStart();
    }
    return [...lines, rest];
  });
}
