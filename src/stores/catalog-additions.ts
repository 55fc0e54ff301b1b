/**
 * What the operator adds to a catalog, kept beside it and deleted with it: descriptions of its choices, which the model
 * reads together with them, and what was learned from labelled examples. Additions that are broken, of another length
 * or for other choices never take part in a decision.
 */
import { hash } from 'node:crypto';

/**
 * Weights on a text's vector: `rows` has a row of `width` eight-bit integers for each choice, in base64; each row is
 * multiplied by its number of `row_scales`.
 */
export interface LearnedWeights {
  readonly width: number;
  readonly row_scales: readonly number[];
  readonly rows: string;
}

/** Figures measured on examples that were held out. */
export interface LearnedFigures {
  readonly log_loss: number;
  readonly accuracy: number;
  readonly ece: number;
}

/**
 * The learned state, as JSON. A decision's probabilities are softmax(scale · ln p + bias + weights · vector), with all
 * lists in code-unit order of the choices.
 */
export interface LearnedRecord {
  /** The revision that it belongs to: `<model_id>@<revision>`. */
  readonly model: string;
  /** A digest of what the model read for the choices, see `basisOf`. */
  readonly basis: string;
  readonly rung: string;
  readonly scale: number;
  readonly bias: readonly number[];
  readonly weights?: LearnedWeights;
  /** How many examples of each choice were learned from. */
  readonly examples: readonly number[];
  readonly before: LearnedFigures;
  readonly after: LearnedFigures;
  /** ISO 8601, UTC. */
  readonly learned_at: string;
  /** A digest of all that takes part in decisions: 16 hex digits. */
  readonly digest: string;
}

/** What was added to a catalog. */
export interface CatalogAdditions {
  /** By choice; the model reads a choice without one as it is. */
  readonly descriptions?: Readonly<Record<string, string>>;
  readonly learned?: LearnedRecord;
}

/** What the model reads for a choice: the choice itself, or `choice: description`. */
export function textOfChoice(choice: string, descriptions: CatalogAdditions['descriptions']): string {
  const description =
    descriptions !== undefined && Object.hasOwn(descriptions, choice) ? descriptions[choice] : undefined;
  return description === undefined ? choice : `${choice}: ${description}`;
}

/**
 * A digest that differs between sets of choices and descriptions, and not between orders of the choices: 16 hex digits.
 */
export function basisOf(choices: readonly string[], descriptions: CatalogAdditions['descriptions']): string {
  const texts = choices.toSorted().map((choice) => textOfChoice(choice, descriptions));
  return hash('sha256', JSON.stringify(texts), 'hex').slice(0, 16);
}

/** The digest of a learned state, as in `LearnedRecord`. */
export function digestOf(
  state: Omit<LearnedRecord, 'digest' | 'learned_at' | 'examples' | 'before' | 'after'>,
): string {
  const { model, basis, rung, scale, bias, weights } = state;
  const { width, row_scales, rows } = weights ?? {};
  return hash('sha256', JSON.stringify([model, basis, rung, scale, bias, width, row_scales, rows]), 'hex').slice(0, 16);
}

/** What is wrong with the additions to a catalog with these choices and this model, or undefined. */
export function additionsProblem(value: unknown, choices: readonly string[], model: string): string | undefined {
  if (!isObject(value)) return 'additions are no object';
  const { descriptions, learned } = value as { descriptions?: unknown; learned?: unknown };
  if (descriptions !== undefined) {
    if (!isObject(descriptions)) return 'descriptions are no object';
    const sound = Object.entries(descriptions).every(
      ([choice, text]) => choices.includes(choice) && typeof text === 'string' && text !== '',
    );
    if (!sound) return 'descriptions are not of these choices';
    const texts = choices.map((choice) => textOfChoice(choice, descriptions as Record<string, string>));
    if (new Set(texts).size !== texts.length) return 'two choices read alike';
  }
  if (learned === undefined) return undefined;
  if (isObject(learned) && typeof learned.model === 'string' && !learned.model.startsWith(`${model}@`))
    return 'the learned state is for another model';
  return learnedProblem(learned, choices, descriptions as CatalogAdditions['descriptions']);
}

function learnedProblem(
  value: unknown,
  choices: readonly string[],
  descriptions: CatalogAdditions['descriptions'],
): string | undefined {
  if (!isObject(value)) return 'the learned state is no object';
  const { model, basis, rung, scale, bias, examples, weights, digest, before, after, learned_at } =
    value as Partial<LearnedRecord>;
  const numbers = (list: unknown): boolean =>
    Array.isArray(list) && list.length === choices.length && list.every((each) => Number.isFinite(each));
  const shaped =
    typeof model === 'string' &&
    typeof rung === 'string' &&
    typeof learned_at === 'string' &&
    Number.isFinite(scale) &&
    numbers(bias) &&
    numbers(examples) &&
    isObject(before) &&
    isObject(after);
  if (!shaped) return 'the learned state is broken';
  if (basis !== basisOf(choices, descriptions)) return 'the learned state is for other choices';
  if (weights !== undefined && !areWeights(weights, choices.length)) return 'the learned weights are of another length';
  if (digest !== digestOf(value as unknown as LearnedRecord)) return 'the learned state is not what was written';
  return undefined;
}

function areWeights(value: unknown, choices: number): boolean {
  if (!isObject(value)) return false;
  const { width, row_scales, rows } = value as Partial<LearnedWeights>;
  return (
    Number.isInteger(width) &&
    (width as number) > 0 &&
    Array.isArray(row_scales) &&
    row_scales.length === choices &&
    row_scales.every((each) => Number.isFinite(each)) &&
    typeof rows === 'string' &&
    Buffer.from(rows, 'base64').length === choices * (width as number)
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
