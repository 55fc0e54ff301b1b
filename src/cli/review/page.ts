/** The page of `umpire review`: the text at hand, its choices with their keys, and what is being typed. */
import { messageOf } from '../../engine/errors.ts';
import { visible } from '../../visible.ts';
import type { Key, Page } from '../command.ts';
import { decisionOf, linesOfText, meantBy, type Offered, offeredFor, offerOf, progressOf } from './answers.ts';
import type { Deck } from './deck.ts';

/** What the keys of the page do. */
const KEYS = 'Enter as decided  / find  - skip  < undo  + note  > more text  . end';
/** Lines of the question that are shown, at most, and of the text, at least. */
const [MOST_QUESTION, LEAST_TEXT] = [3, 4];
/** Rows below which what the keys do is cut to a line. */
const FEW_ROWS = 16;

/** What is being typed: a choice's name or a note. */
interface Typing {
  readonly what: 'find' | 'note';
  readonly text: string;
}

/** A page for one deck. `choices`: in code-unit order. */
export class ReviewPage implements Page {
  readonly #deck: Deck;
  readonly #choices: readonly string[];
  #typing: Typing | undefined;
  #note = '';
  #said = '';
  /** The first line of the text that is shown, and the one after the last; 0 after the end of the text. */
  #from = 0;
  #next = 0;
  /** The choices that are shown: the keys of others answer nothing. */
  #offered: readonly Offered[] = [];
  /** While the terminal pastes: a key that somebody pressed in another window answers nothing here. */
  #pasting = false;

  constructor(deck: Deck, choices: readonly string[]) {
    this.#deck = deck;
    this.#choices = choices;
  }

  lines(columns: number, rows: number): readonly string[] {
    const { text } = this.#deck;
    if (text === undefined) return [];
    const question = wrapped(text.instruction ?? '', columns).slice(0, MOST_QUESTION);
    const input = wrapped(text.input, columns);
    const head = [progressOf(this.#deck), ...question, ''];
    const typing = this.#typing;
    const foot = [
      ...(this.#note === '' ? [] : [`Note: ${visible(this.#note)}`]),
      ...(typing === undefined && this.#said === '' && rows < FEW_ROWS
        ? [KEYS]
        : wrapped(typing === undefined ? this.#said || KEYS : `${typing.what}: ${typing.text}_`, columns)),
    ];
    const free = Math.max(2, rows - head.length - foot.length - 4);
    const most = free - Math.min(input.length, LEAST_TEXT, free - 1);
    const { choices, others } = this.#choicesIn(columns, most);
    const part = input.slice(this.#from, this.#from + free - choices.length);
    const rest = input.length - this.#from - part.length;
    this.#next = rest > 0 ? this.#from + part.length : 0;
    const all = [
      ...[...head, ...part, rest > 0 ? `(${rest} more lines)` : '', decisionOf(text), ''],
      ...[...choices, others ? '(/ finds the other choices)' : '', ...foot],
    ];
    return all.slice(0, rows).map((line) => cut(line, columns));
  }

  press(key: Key): boolean {
    let goesOn = true;
    if (key.name === 'paste-start' || key.name === 'paste-end') this.#pasting = key.name === 'paste-start';
    else if (this.#typing !== undefined) this.#type(this.#typing, key);
    else if (!this.#pasting) goesOn = this.#command(key);
    return goesOn && this.#deck.text !== undefined;
  }

  /** The choices in columns side by side, as many as fit into some rows, and whether there are others. */
  #choicesIn(columns: number, rows: number) {
    const typing = this.#typing;
    const { text } = this.#deck;
    const offered = text === undefined ? [] : offeredFor(text, this.#choices);
    const offers = typing?.what === 'find' ? meantBy(typing.text, this.#choices).map(visible) : offered.map(offerOf);
    const width = Math.max(1, ...offers.map(columnsOf)) + 3;
    const side = Math.max(1, Math.floor((columns + 3) / width));
    const fit = offered.toSorted((a, b) => rankOf(b) - rankOf(a)).slice(0, side * rows);
    this.#offered = offered.filter((each) => fit.includes(each));
    const shown = typing?.what === 'find' ? offers.slice(0, side * rows) : this.#offered.map(offerOf);
    const height = Math.ceil(shown.length / side);
    const choices = Array.from({ length: height }, (_, row) => {
      const line = shown.filter((_, place) => place % height === row);
      return line
        .map((item) => item + ' '.repeat(width - columnsOf(item)))
        .join('')
        .trimEnd();
    });
    return { choices, others: this.#choices.length > shown.length };
    function rankOf({ choice, probability = -1 }: Offered): number {
      return choice === text?.choice ? 2 : probability;
    }
  }

  /** Returns false for the key that ends the page. */
  #command({ text: typed, name }: Key): boolean {
    const { text } = this.#deck;
    if (text === undefined || typed === '.' || name === 'ctrl-d') return false;
    this.#said = '';
    const offered = this.#offered.find(({ key }) => key === typed);
    if (offered !== undefined) this.#label(offered.choice);
    else if (name === 'return' || name === 'enter') this.#label(text.choice);
    else if (typed === '/') this.#typing = { what: 'find', text: '' };
    else if (typed === '+') this.#typing = { what: 'note', text: this.#note };
    else if (typed === '-') this.#go(() => this.#deck.skip());
    else if (typed === '<' || name === 'backspace') this.#go(() => this.#deck.undo());
    else if (typed === '>' || name === 'pagedown') this.#from = this.#next;
    return true;
  }

  #type({ what, text: typed }: Typing, { text, name }: Key): void {
    if (!this.#pasting && (name === 'return' || name === 'enter')) {
      this.#typing = undefined;
      const [meant] = meantBy(typed, this.#choices);
      if (what === 'note') this.#note = typed;
      else if (typed === '') return;
      else if (meant === undefined) this.#said = 'no choice is like that';
      else this.#label(meant);
    } else if (name === 'escape') this.#typing = undefined;
    else if (name === 'backspace') this.#typing = { what, text: [...typed].slice(0, -1).join('') };
    else this.#typing = { what, text: typed + text.replace(/\s/, ' ') };
  }

  #label(choice: string): void {
    this.#go(() => this.#deck.label(choice, this.#note));
  }

  /** Goes to another text. A file that cannot be written is said on the page, and nothing is lost. */
  #go(step: () => unknown): void {
    try {
      const said = step();
      if (typeof said === 'string') this.#said = said;
      else [this.#note, this.#from] = ['', 0];
    } catch (error) {
      this.#said = messageOf(error);
    }
  }
}

/** What takes no column, and what takes two. */
const NARROW = /^(?:\p{Mn}|\p{Me}|\u200c|\u200d)$/u;
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;

/** Columns that a character takes. */
function widthOf(sign: string): number {
  return NARROW.test(sign) ? 0 : WIDE.test(sign) ? 2 : 1;
}

function columnsOf(line: string): number {
  let columns = 0;
  for (const sign of line) columns += widthOf(sign);
  return columns;
}

/** The beginning of a line that fits. */
function cut(line: string, most: number): string {
  let [columns, kept] = [0, ''];
  for (const sign of line) {
    columns += widthOf(sign);
    if (columns > most) return kept;
    kept += sign;
  }
  return kept;
}

/** A text in lines that fit: broken between words, and within words that are too long. */
function wrapped(text: string, most: number): readonly string[] {
  return linesOfText(text).flatMap((line) => {
    const lines: string[] = [];
    let rest = line;
    for (let whole = cut(rest, most); whole.length < rest.length; whole = cut(rest, most)) {
      const space = whole.lastIndexOf(' ');
      // A sign that is wider than the screen takes a line, too.
      const end = space > 0 ? space : Math.max(whole.length, String.fromCodePoint(rest.codePointAt(0) ?? 0).length);
      lines.push(rest.slice(0, end));
      rest = rest.slice(end).trimStart();
    }
    return [...lines, rest];
  });
}
