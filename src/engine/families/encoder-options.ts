/** The options that are common to families with one graph, which reads tokens between [CLS] and [SEP]. */
import type { Checker } from '../packages/checker.ts';
import { readTemperature, type Temperature } from './temperature.ts';

/** The files and ids of such a package, and its temperature. */
export interface EncoderOptions {
  readonly graph: string;
  readonly tokenizer: string;
  readonly temperature: Temperature;
  readonly cls: number;
  readonly sep: number;
}

/** Reads these options; what is wrong becomes a problem. */
export function readEncoderOptions(fields: Checker): EncoderOptions {
  const special = fields.object('special_tokens');
  // Packages may name it, although nothing here needs it.
  special.value('unk');
  const options = {
    graph: fields.text('graph', /./u),
    tokenizer: fields.text('tokenizer', /./u),
    temperature: readTemperature(fields),
    cls: special.integer('cls', 0, 2 ** 31),
    sep: special.integer('sep', 0, 2 ** 31),
  };
  special.refuseOthers();
  return options;
}
