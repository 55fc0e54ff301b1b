/** The options of a `two-stage` package, as `training/two_stage.md` specifies them. */
import type { Checker } from '../../packages/manifest.ts';
import { FEATURE_NAMES, type FeatureName, type StackRule } from './stack.ts';
import { FRAME_TOKENS, type SpecialTokens } from './stages.ts';

/** How a text that does not fit one window is cut and read. Lengths are in tokens. */
export interface WindowOptions {
  readonly premise: number;
  readonly carriedInstruction: number;
  /** A segment is a sentence: it ends with a stop once it has `least` tokens, and at the latest with `segment`. */
  readonly segment: number;
  readonly least: number;
  /** Ids of the tokens that end a sentence. */
  readonly stops: readonly number[];
  /** The file of the finder, which says which segments matter. */
  readonly finder: string;
  /** Segments that stage B reads. */
  readonly read: number;
  /** How much more relevant a text's first window is than its segments are on average. */
  readonly firstLead: number;
  readonly kappaConfidence: number;
  readonly kappaRelevance: number;
}

/** The options of a package of this family, as they were read. */
export interface TwoStageOptions {
  readonly stageA: string;
  readonly stageB: string;
  /** All files that stage B's graph names, if its weights are coded; none if the runtime can read them itself. */
  readonly stageBWeights: readonly string[];
  readonly tokenizer: string;
  readonly symbols: string;
  readonly special: SpecialTokens;
  /** The most choices that stage B reads. */
  readonly best: number;
  /** The most tokens of one run of stage B. */
  readonly packTokens: number;
  readonly stack: StackRule;
  readonly windows: WindowOptions;
}

/** Reads the options; what is wrong becomes a problem. */
export function readTwoStageOptions(fields: Checker): TwoStageOptions {
  const graphs = fields.object('graphs');
  const special = fields.object('special_tokens');
  const stack = fields.object('stack');
  const windows = fields.object('windows');
  const features = stack.texts('features', 1);
  for (const name of features) if (!isFeature(name)) stack.problem(`has the unknown feature "${name}"`, 'features');
  const lean = stack.number('lean', 0, 10);
  const [a0 = 0, a1 = 0] = stack.numbers('a_temperature', 2);
  const options = {
    stageA: graphs.text('stage_a', /./u),
    stageB: graphs.text('stage_b', /./u),
    stageBWeights: graphs.has('stage_b_weights') ? graphs.texts('stage_b_weights', 1) : [],
    tokenizer: fields.text('tokenizer', /./u),
    symbols: fields.text('symbols', /./u),
    special: {
      cls: special.integer('cls', 0, 2 ** 31),
      sep: special.integer('sep', 0, 2 ** 31),
      mask: special.integer('mask', 0, 2 ** 31),
      unk: special.integer('unk', 0, 2 ** 31),
    },
    best: fields.integer('best', 2, 300),
    packTokens: fields.integer('pack_tokens', 8, 100_000),
    stack: {
      features: features.filter(isFeature),
      alpha: stack.numbers('alpha', features.length),
      beta: stack.numbers('beta', features.length),
      aTemperature: [a0, a1] as const,
      lean,
      verdicts: features.includes('verdicts') ? stack.texts('verdicts', 1) : [],
      negation: features.includes('verdicts') ? stack.text('negation') : '',
      residuals: features.includes('residual') || lean > 0 ? stack.texts('residuals', 1) : [],
      steps: features.includes('steps') ? stack.texts('steps', 1) : [],
    },
    windows: {
      premise: windows.integer('premise_tokens', 8, 100_000),
      carriedInstruction: windows.integer('carried_instruction_tokens', 0, 100_000),
      segment: windows.integer('segment_tokens', 1, 100_000),
      least: windows.integer('least_tokens', 1, 100_000),
      stops: windows.numbers('stop_tokens'),
      finder: windows.text('finder', /./u),
      read: windows.integer('read', 1, 1000),
      firstLead: windows.number('first_lead', -1e6, 1e6),
      kappaConfidence: windows.number('kappa_confidence', -1e6, 1e6),
      kappaRelevance: windows.number('kappa_relevance', -1e6, 1e6),
    },
  };
  const { premise, carriedInstruction, segment, least } = options.windows;
  if (carriedInstruction + segment + FRAME_TOKENS > premise)
    windows.problem('has segments that do not fit the premise', 'segment_tokens');
  if (least > segment) windows.problem('is more than a segment has', 'least_tokens');
  // These may be set without the features that read them.
  for (const name of ['verdicts', 'negation', 'residuals']) stack.value(name);
  for (const each of [graphs, special, stack, windows]) each.refuseOthers();
  return options;
}

function isFeature(name: string): name is FeatureName {
  return FEATURE_NAMES.some((known) => known === name);
}
