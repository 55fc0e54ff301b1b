/** `umpire models add`: makes a model package of a model at an inference server, or a cascade of models. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type AddRequest, addRemote } from '../../engine/package-tools/add-remote.ts';
import { SERVER_NAMES } from '../../engine/package-tools/presets.ts';
import { DIALECT_NAMES, isObject } from '../../engine/packages/manifest.ts';
import { SILENT_LOG } from '../../stores/stores.ts';
import { readArguments, urlFrom } from '../arguments.ts';
import { type Command, flag, option, type Terminal, UsageError } from '../command.ts';
import { readTextFile } from '../decide/lines.ts';
import { fittedLines, fittedTemperature, labelledExamples } from '../learn/evaluate.ts';
import { modelsFolder } from '../learn/own-engine.ts';
import { addCascade, CASCADE_OPTIONS } from './cascading.ts';
import { printSpeed } from './models.ts';
import { canaryFrom, numberFrom, packageNameFrom, wholeFrom } from './packing.ts';

const OPTIONS = {
  url: option(
    'URL',
    'where the server is: http or https, with its path if that is an unusual one; needed, but for a cascade',
  ),
  server: option(
    'SERVER',
    `which server it is: ${SERVER_NAMES.join(', ')}; of another one, --dialect and --options say how it is asked`,
  ),
  dialect: option(
    DIALECT_NAMES.join('|'),
    'what it speaks',
    'the first that docs/remote-models.md names for the server',
  ),
  model: option('NAME', "the model's name at the server, if it wants one"),
  'token-file': option('FILE', 'a file with the bearer token; the package holds its path alone'),
  'token-env': option('UMPIRE_TOKEN_…', 'a variable with the bearer token; the service needs it, too'),
  ca: option('FILE', 'PEM certificates to trust', 'those that Node trusts'),
  tokenizer: option(
    'FILE',
    "the model's tokenizer.json, to count tokens by; needed where the server cuts texts or takes ids",
  ),
  shortlist: option(
    'MODEL',
    'a local model that picks choices where there are more than the server takes; its files are copied',
  ),
  examples: option(
    'FILE',
    'labelled examples to fit the temperature to, or a cascade; their labels are the choices, of a cascade where they have no choices of their own',
  ),
  instruction: option('TEXT', 'the instruction of examples that have none'),
  temperature: option('NUMBER', 'what logits are divided by, instead of a fitted one'),
  canary: option(
    'FILE',
    'a decision in JSON with its right answer: input, instruction, choices, choice',
    'one in English',
  ),
  'input-tokens': option(
    'N',
    'the most tokens of instruction and input together; needed where the server cuts texts',
    '400, or 1024 for system-one and chat',
  ),
  'candidate-tokens': option(
    'N',
    'the most tokens of a choice; needed where the server cuts texts',
    '96, or 32 for system-one and chat',
  ),
  choices: option('N', 'the most choices', 'as many as the server or the shortlist takes'),
  options: option('FILE', "JSON that is laid over the package's options"),
  'owned-by': option('NAME', 'whose model it is', 'local'),
  default: flag('the plain name of the model means this revision, once it is loaded'),
  ...CASCADE_OPTIONS,
} as const;

type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values'];

/** `umpire models add`: writes a package by a preset, checks it against the server and installs it. */
export const ADD_COMMAND: Command = {
  name: 'models add',
  usage:
    'MODEL@REVISION (--cascade MODEL,MODEL… --examples FILE [--instruction TEXT] [--accuracy SHARE | --share-of-last SHARE] [--if-away answer|refuse] | --url URL (--server SERVER [--dialect DIALECT] | --dialect DIALECT --options FILE) [--model NAME] [--token-file FILE | --token-env VARIABLE] [--ca FILE] [--tokenizer FILE] [--shortlist MODEL] [--examples FILE [--instruction TEXT] | --temperature NUMBER] [--canary FILE] [--input-tokens N] [--candidate-tokens N] [--choices N] [--options FILE]) [--owned-by NAME] [--default]',
  summary: 'makes a model package of a model at a server, or of models in order',
  notes: [
    "--server says how the server is asked: on which path, in which shape, which switch gives raw scores, and whether it refuses a text that is too long or cuts it. The package is checked against the server as by 'umpire models check' and then moved into the models folder, where a service that runs sees it. docs/remote-models.md has a recipe for each server.",
    'A cascade asks the next model where the one before is not sure. The examples, JSON lines {"input": …, "instruction": …, "label": …, "choices": […]}, say from when each is sure enough, whether what they say is joined, and whether it pays at all: if not, nothing is added, unless a target is given. docs/cascades.md has more.',
  ],
  positionals: [['MODEL@REVISION', 'what the package is called']],
  options: OPTIONS,
  environment: ['UMPIRE_MODELS_DIR', 'UMPIRE_INFERENCE_SERVERS'],
  failure: 'the server cannot be used, or a cascade does not pay: nothing is left of the package',
  async run(args, terminal: Terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, ['MODEL@REVISION']);
    const name = packageNameFrom(positionals[0] ?? '');
    if (values.cascade !== undefined) {
      await addCascade({ ...name, modelsDir: modelsFolder(terminal) }, values, terminal);
      return;
    }
    const only = Object.keys(values).find((name) => name in CASCADE_OPTIONS);
    if (only !== undefined) throw new UsageError(`--${only} is for --cascade`);
    const { lines: fitted, fit } = await fitOf(values, name.id, terminal);
    const added = await addRemote({ ...name, ...(await requestFrom(values, terminal)), fit });
    terminal.out(`${name.id}@${name.revision} is in ${added.folder}`);
    for (const line of [...added.lines, ...fitted]) terminal.out(`  ${line}`);
    printSpeed(terminal, added.speed);
  },
};

async function requestFrom(values: Values, terminal: Terminal): Promise<Omit<AddRequest, 'id' | 'revision' | 'fit'>> {
  if (values.url === undefined) throw new UsageError('--url URL is needed');
  const url = urlFrom('--url', values.url);
  const server = oneOf('--server', SERVER_NAMES, values.server);
  const dialect = oneOf('--dialect', DIALECT_NAMES, values.dialect);
  if (server === undefined && dialect === undefined)
    throw new UsageError('--server SERVER or --dialect DIALECT is needed');
  const limits = {
    inputTokens: wholeFrom('--input-tokens', values['input-tokens']),
    candidateTokens: wholeFrom('--candidate-tokens', values['candidate-tokens']),
    choices: wholeFrom('--choices', values.choices),
  };
  return {
    modelsDir: modelsFolder(terminal),
    server,
    dialect,
    at: serverFrom(url, values),
    model: values.model,
    tokenizer: values.tokenizer,
    shortlist: values.shortlist,
    limits,
    temperature: numberFrom('--temperature', values.temperature),
    canary: values.canary === undefined ? undefined : await canaryFrom(values.canary),
    own: values.options === undefined ? {} : await ownFrom(values.options),
    ownedBy: values['owned-by'] ?? 'local',
    isDefault: values.default === true,
    logger: { ...SILENT_LOG, debug: () => {} },
  };
}

/** The value of an option, if it has one. Throws UsageError for a value that is not among the names. */
function oneOf<T extends string>(option: string, names: readonly T[], value: string | undefined): T | undefined {
  const found = names.find((name) => name === value);
  if (found === undefined && value !== undefined) throw new UsageError(`${option} must be one of ${names.join(', ')}`);
  return found;
}

/** The package's `options.server`: the address, the path if it is said, and where certificates and token are. */
function serverFrom(url: URL, values: Values): AddRequest['at'] {
  if (url.username !== '' || url.password !== '') {
    throw new UsageError('--url: no credentials; --token-file or --token-env names a token');
  }
  const { ca, 'token-file': file, 'token-env': variable } = values;
  if (file !== undefined && variable !== undefined) throw new UsageError('--token-file or --token-env, not both');
  const isTls = url.protocol === 'https:';
  if (ca !== undefined && !isTls) throw new UsageError('--ca: is for https');
  const port = url.port === '' ? (isTls ? 443 : 80) : url.port;
  return {
    address: `${url.hostname}:${port}`,
    ...(url.pathname === '/' && url.search === '' ? {} : { path: url.pathname + url.search }),
    ...(isTls ? { tls: ca === undefined ? {} : { ca: resolve(ca) } } : {}),
    ...(file === undefined ? {} : { token_file: resolve(file) }),
    ...(variable === undefined ? {} : { token_env: variable }),
  };
}

/** Reads the file that `--options` names. @throws Error if it is not a JSON object. */
async function ownFrom(file: string): Promise<AddRequest['own']> {
  const own: unknown = JSON.parse(await readFile(file, 'utf8'));
  if (!isObject(own)) throw new Error(`${file}: must be a JSON object`);
  return own;
}

/** How the temperature is fitted; `lines` is empty until `fit` has run, and then says what it found. */
async function fitOf(
  { examples: file, instruction, temperature }: Values,
  model: string,
  terminal: Terminal,
): Promise<{ readonly lines: readonly string[]; readonly fit: AddRequest['fit'] }> {
  const lines: string[] = [];
  if (file === undefined) {
    if (instruction !== undefined) throw new UsageError('--instruction: is for --examples');
    return { lines, fit: undefined };
  }
  if (temperature !== undefined) throw new UsageError('--examples or --temperature, not both');
  // The file is read before the server is asked, so that its problems are reported at once.
  const examples = labelledExamples(await readTextFile(file), instruction, terminal);
  return {
    lines,
    async fit(modelsDir, usual) {
      const fitted = await fittedTemperature(terminal, examples, { modelsDir, model, usual });
      lines.push(...fittedLines(fitted));
      return fitted.temperature;
    },
  };
}
