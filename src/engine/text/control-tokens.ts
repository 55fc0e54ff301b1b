/**
 * Control tokens (`[SEP]`, `</s>`, `<|endoftext|>`) are placed by a family and by nobody else: where a tokenizer finds
 * them in a text, callers could write them. A tokenizer finds what it lists under `added_tokens`, and some kinds also
 * whatever stands in their vocabulary.
 */

/** The parts of a `tokenizer.json` that matter here. */
export interface TokenizerDefinition {
  readonly added_tokens?: readonly AddedToken[];
  readonly model?: {
    readonly vocab?: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
    readonly unk_token?: string | null;
    readonly unk_id?: number | null;
  };
}

/** An entry of `added_tokens`. */
export interface AddedToken {
  readonly id?: number;
  readonly content?: string;
  readonly special?: boolean;
}

/**
 * How control tokens are written: in angle or square brackets. Numbers in brackets, such as the marks of notes, are
 * ordinary text.
 */
const CONTROL = /^(<[^<>\s]{1,64}>|\[(?![0-9_]*\])[A-Z0-9_]{2,64}\])$/;
const MOST_NAMED = 5;

/** Whether an added token is a control token: it says so, or it is written like one. */
export function isControl({ content = '', special = false }: AddedToken): boolean {
  return special || CONTROL.test(content);
}

/**
 * The entries of the vocabulary that are written like control tokens, with their ids; not the unknown token, which any
 * odd character becomes.
 */
export function controlEntries({ model }: TokenizerDefinition): readonly (readonly [content: string, id: number])[] {
  const vocabulary = model?.vocab ?? {};
  const entries = Array.isArray(vocabulary)
    ? (vocabulary as readonly (readonly [string, number])[]).map(([content], id) => [content, id] as const)
    : Object.entries(vocabulary as Readonly<Record<string, number>>);
  return entries.filter(
    ([content, id]) => CONTROL.test(content) && content !== model?.unk_token && id !== model?.unk_id,
  );
}

/**
 * What is wrong with a tokenizer that finds control tokens in texts; undefined if it finds none. `ids` reads a text
 * with it.
 */
export function controlProblem(
  definition: TokenizerDefinition,
  ids: (text: string) => readonly number[],
): string | undefined {
  const added = (definition.added_tokens ?? []).filter(isControl).map(({ content = '' }) => content);
  const found =
    added.length > 0
      ? added
      : controlEntries(definition).flatMap(([content, id]) => (ids(content).includes(id) ? [content] : []));
  if (found.length === 0) return undefined;
  const named = found
    .slice(0, MOST_NAMED)
    .map((content) => `"${content}"`)
    .join(', ');
  const more = found.length > MOST_NAMED ? ` and ${found.length - MOST_NAMED} more` : '';
  return `the tokenizer reads control tokens in a text, so that callers could write them: ${named}${more}; 'umpire models pack' takes them out`;
}
