/**
 * The options of a package whose server takes fewer choices than a decision may have:
 *
 *     "shortlist": { "family", "limits", "options" }     as the manifest of a local model has them
 *
 * The files that these options name lie in the same package, and `files` lists them.
 */
import type { ModelLimits } from '../../engine.ts';
import type { Checker } from '../../packages/checker.ts';
import { FAMILY_NAMES, type FamilyName, isRemote } from '../../packages/family-names.ts';
import { limitsOf } from '../../packages/manifest.ts';

/** How many choices a server takes, and the field of a package's options that says so. */
export interface ChoiceCap {
  readonly field: string;
  readonly choices: number;
}

/** The model that picks the choices which the server decides among. */
export interface ShortlistOptions {
  /** How many choices are picked: as many as the server takes. */
  readonly cap: number;
  readonly family: FamilyName;
  readonly limits: ModelLimits;
  /** Checked by the family when it loads. */
  readonly options: unknown;
}

/** Reads the field `shortlist`, which may be left out. What is wrong becomes a problem. */
export function readShortlist(fields: Checker, cap: ChoiceCap | undefined): ShortlistOptions | undefined {
  if (fields.value('shortlist') === undefined) return undefined;
  const shortlist = fields.object('shortlist');
  if (cap === undefined) {
    shortlist.problem('needs batch.choices beside it, the most choices that the server takes');
    return undefined;
  }
  const local = FAMILY_NAMES.filter((name) => !isRemote(name));
  const named = shortlist.text('family');
  const family = local.find((name) => name === named);
  if (family === undefined) shortlist.problem(`must be one of ${local.join(', ')}`, 'family');
  const limits = limitsOf(shortlist.object('limits'));
  shortlist.object('options');
  const options = shortlist.value('options');
  shortlist.refuseOthers();
  return family === undefined ? undefined : { cap: cap.choices, family, limits, options };
}

/** What keeps a package with such a cap and shortlist from deciding among as many choices as its `limits` allow. */
export function choicesProblem(
  { choices }: Pick<ModelLimits, 'choices'>,
  cap: ChoiceCap | undefined,
  shortlist: ShortlistOptions | undefined,
): string | undefined {
  if (cap === undefined || choices <= cap.choices) return undefined;
  if (shortlist === undefined) {
    return `limits.choices is ${choices}, and the server takes ${cap.choices} (options.${cap.field}): lower it, or add a shortlist`;
  }
  const { choices: local } = shortlist.limits;
  return choices <= local ? undefined : `limits.choices is ${choices}, and that of options.shortlist ${local}`;
}
