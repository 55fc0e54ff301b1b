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

/** The model that picks the choices which the server decides among. */
export interface ShortlistOptions {
  /** The most choices that the server takes at a time. */
  readonly cap: number;
  readonly family: FamilyName;
  readonly limits: ModelLimits;
  /** Checked by the family when it loads. */
  readonly options: unknown;
}

/**
 * Reads the field `shortlist`; undefined if the server takes all that the package's `limits` allow. `cap`: the most
 * choices that it takes, as the field `capField` has it; undefined if it takes any number.
 */
export function readShortlist(
  fields: Checker,
  capField: string,
  cap: number | undefined,
  { choices }: Pick<ModelLimits, 'choices'>,
): ShortlistOptions | undefined {
  if (fields.value('shortlist') === undefined) {
    if (cap !== undefined && cap < choices) {
      fields.problem(
        `is ${cap}, less than the ${choices} of limits.choices: lower those, or add a shortlist`,
        capField,
      );
    }
    return undefined;
  }
  if (cap === undefined) {
    fields.problem(`needs ${capField}, the most choices that the server takes`, 'shortlist');
    return undefined;
  }
  const shortlist = fields.object('shortlist');
  const local = FAMILY_NAMES.filter((name) => !isRemote(name));
  const named = shortlist.text('family');
  const family = local.find((name) => name === named);
  if (family === undefined) shortlist.problem(`must be one of ${local.join(', ')}`, 'family');
  const limits = limitsOf(shortlist.object('limits'));
  if (limits.choices < choices) {
    shortlist.problem(`has ${limits.choices} choices, less than the ${choices} of the package's own`, 'limits');
  }
  shortlist.object('options');
  const options = shortlist.value('options');
  shortlist.refuseOthers();
  return family === undefined ? undefined : { cap, family, limits, options };
}
