/**
 * `model.json`, the manifest of a model package `<models>/<id>/<revision>/`:
 *
 *     { "schema": 1, "id", "revision", "family", "owned_by", "status": "ready" | "disabled", "default": boolean,
 *       "limits": { "input_tokens", "candidate_tokens", "choices" },
 *       "files": { "<name>": { "sha256": "<64 hex digits>", "bytes": n } },     every file that the engine loads
 *       "options": { … the family's own … },
 *       "unread": { "bound": 0…1, "pull": 0…20 },     may be left out, see UnreadRule
 *       "canary": { "input", "instruction", "choices": [2 or more], "choice": "the expected winner" } }
 */
import type { ModelLimits } from '../engine.ts';
import { messageOf } from '../errors.ts';
import { type Checker, createChecker } from './checker.ts';
import { FAMILY_NAMES, type FamilyName, isRemote } from './family-names.ts';

/** Names of models and of their revisions. */
export const NAME_PATTERN = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const FILE_NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** A file that the engine loads: checked against size and SHA-256 before it is used. */
export interface PackageFile {
  readonly sha256: string;
  readonly bytes: number;
}

/** A decision whose answer is known: made after every load. */
export interface Canary {
  readonly input: string;
  readonly instruction: string;
  /** In code-unit order. */
  readonly choices: readonly string[];
  readonly choice: string;
}

/**
 * How much less sure a model is of a text that it has no words for: for a share of unread tokens beyond `bound` its
 * probabilities get the temperature exp(pull · (share − bound)).
 */
export interface UnreadRule {
  readonly bound: number;
  readonly pull: number;
}

/** A valid manifest. Structured-clonable: it travels to the engine processes as it is. */
export interface Manifest {
  readonly id: string;
  readonly revision: string;
  readonly family: FamilyName;
  readonly ownedBy: string;
  readonly disabled: boolean;
  readonly isDefault: boolean;
  readonly limits: ModelLimits;
  readonly files: ReadonlyMap<string, PackageFile>;
  /** Checked by the family when it loads. */
  readonly options: unknown;
  readonly unread: UnreadRule | undefined;
  readonly canary: Canary;
}

/**
 * Reads the text of a `model.json` that lies in the folder `<id>/<revision>`. Never throws: `problems` lists everything
 * that is wrong, and a manifest with any must not be used.
 */
export function readManifest(
  text: string,
  id: string,
  revision: string,
): { readonly value: Manifest; readonly problems: readonly string[] } {
  const problems: string[] = [];
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    problems.push(`is not JSON: ${messageOf(error)}`);
    document = {};
  }
  const broken = problems.length > 0;
  const fields = createChecker(document, '', problems);
  const family = familyOf(fields);
  const value: Manifest = {
    id: named(fields, 'id', id),
    revision: named(fields, 'revision', revision),
    family,
    ownedBy: fields.text('owned_by', /./u),
    disabled: fields.text('status', /^(ready|disabled)$/) === 'disabled',
    isDefault: fields.flag('default', false),
    limits: limitsOf(fields.object('limits')),
    files: filesOf(fields.object('files'), family),
    options: document === null || typeof document !== 'object' ? {} : (document as { options?: unknown }).options,
    unread: fields.value('unread') === undefined ? undefined : unreadOf(fields.object('unread')),
    canary: canaryOf(fields.object('canary')),
  };
  fields.integer('schema', 1, 1);
  fields.object('options');
  return { value, problems: broken ? problems.slice(0, 1) : problems };
}

function named(fields: Checker, field: string, folder: string): string {
  const found = fields.text(field, NAME_PATTERN);
  if (found !== '' && found !== folder) fields.problem(`is "${found}", but the folder is called "${folder}"`, field);
  return folder;
}

function familyOf(fields: Checker): FamilyName {
  const found = fields.text('family');
  const family = FAMILY_NAMES.find((name) => name === found);
  if (family === undefined) fields.problem(`must be one of ${FAMILY_NAMES.join(', ')}`, 'family');
  return family ?? 'bi-encoder';
}

/** Reads `limits`, of a manifest or of a model within a package. */
export function limitsOf(limits: Checker): ModelLimits {
  return {
    inputTokens: limits.integer('input_tokens', 1, 1_000_000),
    candidateTokens: limits.integer('candidate_tokens', 1, 100_000),
    choices: limits.integer('choices', 2, 300),
  };
}

function filesOf(files: Checker, family: FamilyName): ReadonlyMap<string, PackageFile> {
  // A package of a server may need no files: the server holds them.
  if (files.fields.length === 0 && !isRemote(family)) files.problem('must name the files that the engine loads');
  return new Map(
    files.fields.map((name) => {
      if (!FILE_NAME_PATTERN.test(name)) files.problem('is not a plain file name', name);
      const file = files.object(name);
      return [name, { sha256: file.text('sha256', /^[0-9a-f]{64}$/), bytes: file.integer('bytes', 1, 2 ** 40) }];
    }),
  );
}

function unreadOf(rule: Checker): UnreadRule {
  const found = { bound: rule.number('bound', 0, 1), pull: rule.number('pull', 0, 20) };
  rule.refuseOthers();
  return found;
}

function canaryOf(canary: Checker): Canary {
  const choices = [...canary.texts('choices', 2)].sort(byCodeUnits);
  const choice = canary.text('choice');
  if (choices.length > 0 && !choices.includes(choice)) canary.problem('must be one of the choices', 'choice');
  if (new Set(choices).size !== choices.length) canary.problem('must be unique', 'choices');
  return { input: canary.text('input', /./su), instruction: canary.text('instruction', /./su), choices, choice };
}

/** Orders strings by their UTF-16 code units. */
export function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
