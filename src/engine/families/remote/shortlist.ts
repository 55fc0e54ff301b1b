/**
 * More choices than a server takes: a local model scores all of them, the server decides among the best, and the others
 * keep what the local model gave them. With the local probabilities p, the set S of the best and the server's
 * probabilities q over S,
 *
 *     P(i) = q(i) · Σ p(j) over j in S,   i in S
 *     P(i) = p(i),                        i not in S
 *
 * No choice outside S exceeds the likeliest within: p(i) is at most the mean of p over S, and max q at least 1/|S|.
 */
import type { ModelLimits } from '../../engine.ts';
import { type Checker, FAMILY_NAMES, type FamilyName, isLocal, limitsOf } from '../../packages/manifest.ts';
import { sharedOut } from '../../tempered.ts';
import { tokensOfChoices } from '../choice-encoder.ts';
import {
  type Family,
  type FamilyParts,
  type FamilyScores,
  InputTooLong,
  JobStopped,
  type Premise,
  type RunControl,
} from '../family.ts';
import { readPremise } from '../premise.ts';
import { highest } from '../vectors.ts';
import { Semaphore } from './calls.ts';
import type { ShortlistProfile } from './profile.ts';

/**
 * A family in which `decider` decides: among all choices, or among the best of a local model if there are more than the
 * server takes. The text's vector is then the local model's, unless the server gives one. Rejects with what loading the
 * local model throws, after disposing of the decider.
 */
export async function loadShortlisted(decider: Family, options: ShortlistOptions, parts: FamilyParts): Promise<Family> {
  try {
    const local = await parts.local(options.family, options.options, options.limits);
    return createShortlisted(decider, local, options, parts);
  } catch (error) {
    await decider.dispose();
    throw error;
  }
}

function createShortlisted(
  decider: Family,
  local: Family,
  { cap, family, limits }: ShortlistOptions,
  parts: Pick<FamilyParts, 'limits'>,
): Family {
  // A local family takes one job at a time, while jobs for a server run at the same time.
  const turn = new Semaphore({ requests: 1, bytes: Number.POSITIVE_INFINITY });
  const inTurn = async <T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> => {
    const leave = await turn.enter(0, signal ?? new AbortController().signal).catch(() => {
      throw new JobStopped();
    });
    try {
      return await work();
    } finally {
      leave();
    }
  };
  // The server reads only the best choices, yet whether a choice is too long must not depend on the text: all are
  // checked.
  const checkChoices = (choices: readonly string[], control: RunControl) =>
    tokensOfChoices(decider.tokenizer, choices, parts.limits.candidateTokens, control);

  const scoreAll = async (
    { inputText: input, instructionText: instruction }: Premise,
    choices: readonly string[],
    control: RunControl,
  ): Promise<FamilyScores> => {
    const reading = await readPremise(local.tokenizer, { input, instruction }, limits.inputTokens, control);
    if (reading.kind !== 'read') throw new InputTooLong(reading);
    await checkChoices(choices, control);
    return await inTurn(control.signal, () => local.score(reading.premise, choices, localControl(control)));
  };

  return {
    tokenizer: decider.tokenizer,
    ...(decider.server !== undefined && { server: decider.server }),
    async score(premise, choices, control) {
      if (choices.length <= cap) return await decider.score(premise, choices, control);
      const local = await scoreAll(premise, choices, control);
      const places = highest(local.probabilities, cap);
      control.checkpoint();
      const decided = await decider.score(
        premise,
        places.map((place) => choices[place] as string),
        control,
      );
      const { vector = local.vector, doubt } = decided;
      return {
        probabilities: sharedOut(local.probabilities, places, decided.probabilities),
        encoded: local.encoded,
        choiceTokens: Math.max(local.choiceTokens ?? 0, decided.choiceTokens ?? 0),
        ...(vector && { vector }),
        ...(doubt !== undefined && { doubt }),
      };
    },
    async prepare(choices, control, all) {
      if (all <= cap) return await decider.prepare(choices, control, all);
      await checkChoices(choices, control);
      await inTurn(control.signal, () => local.prepare(choices, localControl(control), all));
    },
    async profile(): Promise<ShortlistProfile> {
      const ofLocal = await inTurn(undefined, () => local.profile());
      const ofDecider = await decider.profile();
      return {
        premise: ofDecider.premise,
        choice: ofLocal.choice,
        choiceReadsPremise: ofLocal.choiceReadsPremise,
        choicesCached: ofLocal.choicesCached || ofDecider.choicesCached,
        shortlisted: { cap, family, local: ofLocal, decider: ofDecider },
      };
    },
    async dispose() {
      await decider.dispose();
      await inTurn(undefined, () => local.dispose());
    },
  };
}

/** Gives the local model a cache of its own: the server may return other vectors of the same choices. */
function localControl(control: RunControl): RunControl {
  return { ...control, vectors: control.vectors.ofStage('shortlist') };
}

// The options of a package whose server takes fewer choices than a decision may have:
//
//     "shortlist": { "family", "limits", "options" }     as the manifest of a local model has them
//
// The files that these options name lie in the same package, and `files` lists them.

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
  if (!fields.has('shortlist')) return undefined;
  const shortlist = fields.object('shortlist');
  if (cap === undefined) {
    shortlist.problem('needs batch.choices beside it, the most choices that the server takes');
    return undefined;
  }
  const family = shortlist.oneOf('family', FAMILY_NAMES.filter(isLocal));
  const limits = limitsOf(shortlist.object('limits'));
  shortlist.object('options');
  const options = shortlist.value('options');
  shortlist.refuseOthers();
  return { cap: cap.choices, family, limits, options };
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
