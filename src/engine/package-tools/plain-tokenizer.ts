/**
 * Makes a published tokenizer into one that a package may have: the same tokens for a text, and none that callers could
 * write to control the model.
 */
import { controlEntries, isControl, type TokenizerDefinition } from '../text/control-tokens.ts';
import { createTokenizer, readTokenizer } from '../text/tokenizer.ts';

/** The parts of a published `tokenizer.json` that change. */
interface PublishedTokenizer extends TokenizerDefinition {
  readonly post_processor?: PostProcessor | null;
}

interface PostProcessor {
  readonly type?: string;
  readonly processors?: readonly PostProcessor[];
  readonly cls?: readonly [string, number];
  readonly sep?: readonly [string, number];
  readonly single?: readonly { readonly SpecialToken?: { readonly id?: string } }[];
  readonly special_tokens?: Readonly<Record<string, { readonly ids?: readonly number[] }>>;
}

/** What a package needs of a tokenizer to count tokens. */
export interface BareTokenizer {
  /** The text of `tokenizer.json`. */
  readonly text: string;
  /** The control tokens that were taken out. */
  readonly removed: readonly string[];
}

/** What a package needs of a tokenizer to make sequences. */
export interface PlainTokenizer extends BareTokenizer {
  /** The tokens that frame a sequence. */
  readonly cls: number;
  readonly sep: number;
}

/** As `bareTokenizer`, and finds the tokens that frame a sequence, which must exist. */
export function plainTokenizer(published: string): PlainTokenizer {
  const { post_processor: processor } = JSON.parse(published) as PublishedTokenizer;
  return { ...frameOf(processor ?? undefined), ...bareTokenizer(published) };
}

/**
 * Takes control tokens, truncation, padding and the template out of a `tokenizer.json`. Throws an Error that says what
 * keeps it from being used.
 */
export function bareTokenizer(published: string): BareTokenizer {
  const definition = JSON.parse(published) as PublishedTokenizer;
  const added = definition.added_tokens ?? [];
  const bare = {
    ...definition,
    added_tokens: added.filter((token) => !isControl(token)),
    truncation: null,
    padding: null,
    post_processor: null,
  };
  const plain = withoutMatches(bare);
  // Throws if a text can still hold a control token.
  createTokenizer(plain);
  const removed = added.filter(isControl).map(({ content = '' }) => content);
  return { text: JSON.stringify(plain), removed };
}

/**
 * Renames the control tokens of a vocabulary that the tokenizer finds in texts, as some kinds do: ids stay, and no
 * well-formed text holds the new names.
 */
function withoutMatches<T extends TokenizerDefinition>(definition: T): T {
  const { ids } = readTokenizer(definition);
  const matched = new Map(controlEntries(definition).filter(([content, id]) => ids(content).includes(id)));
  if (matched.size === 0) return definition;
  const renamed = (content: string, id: number): string => (matched.has(content) ? `\ud800${id}` : content);
  const vocabulary = definition.model?.vocab ?? {};
  const vocab = Array.isArray(vocabulary)
    ? vocabulary.map(([content, ...rest]: readonly [string, number], id) => [renamed(content, id), ...rest])
    : Object.fromEntries(
        Object.entries(vocabulary as Readonly<Record<string, number>>).map(([content, id]) => [
          renamed(content, id),
          id,
        ]),
      );
  return { ...definition, model: { ...definition.model, vocab } };
}

/** The ids of the tokens that the tokenizer puts around a sequence. */
function frameOf(processor: PostProcessor | undefined): { readonly cls: number; readonly sep: number } {
  for (const each of [processor, ...(processor?.processors ?? [])]) {
    if (each?.cls !== undefined && each.sep !== undefined) return { cls: each.cls[1], sep: each.sep[1] };
    const special = (place: 0 | -1): number | undefined => {
      const name = each?.single?.at(place)?.SpecialToken?.id;
      return name === undefined ? undefined : each?.special_tokens?.[name]?.ids?.[0];
    };
    const [cls, sep] = [special(0), special(-1)];
    if (cls !== undefined && sep !== undefined) return { cls, sep };
  }
  throw new Error('tokenizer.json has no template with a token before and one after a sequence, as encoders have');
}
