/**
 * A small package whose decisions take long enough to be interrupted, and what tests of broken engines and models
 * ask of an engine.
 */
import type { Engine } from '../../src/engine/engine.ts';
import { slowEncoderGraph } from '../engine/support/packages.ts';

/** The package: one run of its graph is long enough to watch and short enough to wait for. */
export const SLOW = {
  id: 'slow',
  graph: slowEncoderGraph(4),
  options: { joint_weight: 0 },
  manifest: { limits: { input_tokens: 40, candidate_tokens: 12, choices: 30 } },
};

/** The status of a model's revision; undefined if it is not there. */
export const statusOf = (engine: Engine, id: string, revision = 'r1') =>
  engine.models().find((model) => model.id === id && model.revision === revision)?.status;
