/**
 * `umpire models pack`: makes a model package of an exported encoder. The arguments of all commands that make packages
 * are read here; a wrong one throws UsageError.
 */
import { readFile } from 'node:fs/promises';
import { DEFAULTS, packExport, USUAL_CANARY } from '../../engine/package-tools/pack.ts';
import { type Canary, Checker, canaryOf } from '../../engine/packages/manifest.ts';
import { SILENT_LOG } from '../../stores/stores.ts';
import { readArguments } from '../arguments.ts';
import { type Command, flag, option, type Terminal, UsageError } from '../command.ts';
import { modelsFolder } from '../learn/own-engine.ts';
import { printSpeed } from './models.ts';

const OPTIONS = {
  pooling: option(
    'mean|cls|none',
    "how the tokens' vectors become one vector; none if the graph does it",
    'what 1_Pooling/config.json says',
  ),
  output: option('NAME', "the graph's output", 'the usual one'),
  'input-tokens': option('N', 'the most tokens of instruction and input together', 'what the graph has positions for'),
  'candidate-tokens': option('N', 'the most tokens of a choice', `${DEFAULTS.candidateTokens}`),
  choices: option('N', 'the most choices', `${DEFAULTS.choices}`),
  temperature: option(
    'NUMBER',
    'what cosines are divided by; to be fitted on labelled decisions',
    `${DEFAULTS.temperature}`,
  ),
  'joint-weight': option(
    'NUMBER',
    'from 0, the input alone, to 1, instruction and input read together',
    `${DEFAULTS.jointWeight}`,
  ),
  canary: option(
    'FILE',
    'a decision in JSON with its right answer: input, instruction, choices, choice',
    `"${USUAL_CANARY.input}", ${USUAL_CANARY.choice}`,
  ),
  'owned-by': option('NAME', 'whose model it is', 'local'),
  default: flag('the plain name of the model means this revision, once it is loaded'),
} as const;

/** The command `umpire models pack`. */
export const PACK_COMMAND: Command = {
  name: 'models pack',
  usage: 'EXPORT MODEL@REVISION [OPTION]…',
  summary: 'makes a model package of a sentence encoder that was exported to ONNX',
  notes: [
    "EXPORT is a folder with model.onnx or onnx/model.onnx and tokenizer.json, and with config.json and 1_Pooling/config.json where they exist. The tokenizer's control tokens are taken out, so that nobody can write them in a text. The package is checked as by 'umpire models check' and then moved into the models folder, where a service that runs sees it.",
  ],
  positionals: [
    ['EXPORT', 'the folder of the export'],
    ['MODEL@REVISION', 'what the package is called'],
  ],
  options: OPTIONS,
  environment: ['UMPIRE_MODELS_DIR'],
  failure: 'the export cannot be served: nothing is left of it',
  async run(args, terminal: Terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, ['EXPORT', 'MODEL@REVISION']);
    const [exported = '', name = ''] = positionals;
    const { id, revision } = packageNameFrom(name);
    const pooling = values.pooling;
    if (pooling !== undefined && pooling !== 'mean' && pooling !== 'cls' && pooling !== 'none')
      throw new UsageError(`--pooling: '${pooling}' is none of mean, cls and none`);
    const packed = await packExport({
      exported,
      modelsDir: modelsFolder(terminal),
      id,
      revision,
      ownedBy: values['owned-by'] ?? 'local',
      isDefault: values.default === true,
      pooling,
      output: values.output,
      limits: {
        inputTokens: wholeFrom('--input-tokens', values['input-tokens']),
        candidateTokens: wholeFrom('--candidate-tokens', values['candidate-tokens']),
        choices: wholeFrom('--choices', values.choices),
      },
      temperature: numberFrom('--temperature', values.temperature),
      jointWeight: numberFrom('--joint-weight', values['joint-weight']),
      canary: values.canary === undefined ? undefined : await canaryFrom(values.canary),
      logger: { ...SILENT_LOG, debug: () => {} },
    });
    terminal.out(`${name} is in ${packed.folder}`);
    terminal.out(`  output ${packed.output}, pooling ${packed.pooling}`);
    const { inputTokens, candidateTokens, choices } = packed.limits;
    terminal.out(`  limits: ${inputTokens} input tokens, ${choices} choices of ${candidateTokens} tokens`);
    if (packed.removed.length > 0) terminal.out(`  taken out of the tokenizer: ${packed.removed.join(' ')}`);
    printSpeed(terminal, packed.speed);
  },
};

/** The two parts of a package's name, `MODEL@REVISION`. Throws UsageError for any other text. */
export function packageNameFrom(name: string): { readonly id: string; readonly revision: string } {
  const [id = '', revision = '', ...rest] = name.split('@');
  if (revision === '' || rest.length > 0) throw new UsageError(`'${name}' is not MODEL@REVISION`);
  return { id, revision };
}

/** The number that is the value of `option`; undefined without one. Throws UsageError. */
export function numberFrom(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = value.trim() === '' ? Number.NaN : Number(value);
  if (!Number.isFinite(number)) throw new UsageError(`${option}: '${value}' is not a number`);
  return number;
}

/** The whole number, at least 1, that is the value of `option`; undefined without one. Throws UsageError. */
export function wholeFrom(option: string, value: string | undefined): number | undefined {
  const number = numberFrom(option, value);
  if (number !== undefined && (!Number.isInteger(number) || number < 1))
    throw new UsageError(`${option}: '${value}' is not a whole number from 1`);
  return number;
}

/** The canary in a JSON file. Throws Error with all that is wrong with it. */
export async function canaryFrom(file: string): Promise<Canary> {
  const problems: string[] = [];
  const fields = new Checker(JSON.parse(await readFile(file, 'utf8')), '', problems);
  const canary = canaryOf(fields);
  fields.refuseOthers();
  if (problems.length > 0) throw new Error(`${file}: ${problems.join('; ')}`);
  return canary;
}
