/** `umpire models add`: a package of a model at a server. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type AddRequest, addRemote } from '../engine/package-tools/add-remote.ts';
import type { JsonObject } from '../engine/package-tools/laid-over.ts';
import { type AddableDialect, ADDABLE_DIALECTS } from '../engine/package-tools/survey/survey.ts';
import { silentLog } from '../stores/log.ts';
import { readArguments, urlFrom } from './arguments.ts';
import { canaryFrom, nameFrom, numberFrom, wholeFrom } from './packing.ts';
import { type Command, type Terminal, UsageError } from './command.ts';
import { fittedLines, fittedTemperature, labelledExamples } from './fitted-temperature.ts';
import { modelsFolder, printSpeed } from './models.ts';

const OPTIONS = {
  url: { type: 'string', value: 'URL', meaning: 'where the server is: http or https, with its path if that is an unusual one; needed' },
  dialect: { type: 'string', value: ADDABLE_DIALECTS.join('|'), meaning: 'what it speaks; needed' },
  model: { type: 'string', value: 'NAME', meaning: "the model's name at the server", otherwise: 'the only one that it lists' },
  'token-file': { type: 'string', value: 'FILE', meaning: 'a file with the bearer token; the package holds its path alone' },
  'token-env': { type: 'string', value: 'UMPIRE_TOKEN_…', meaning: 'a variable with the bearer token; the service needs it, too' },
  ca: { type: 'string', value: 'FILE', meaning: 'PEM certificates to trust', otherwise: 'those that Node trusts' },
  tokenizer: { type: 'string', value: 'FILE', meaning: "the model's tokenizer.json, to count tokens by; needed where the server cuts texts or takes ids" },
  shortlist: { type: 'string', value: 'MODEL', meaning: 'a local model that picks choices where there are more than the server takes; its files are copied' },
  examples: { type: 'string', value: 'FILE', meaning: 'labelled examples to fit the temperature to; their labels are the choices' },
  instruction: { type: 'string', value: 'TEXT', meaning: 'the instruction of examples that have none' },
  temperature: { type: 'string', value: 'NUMBER', meaning: 'what logits are divided by, instead of a fitted one' },
  canary: { type: 'string', value: 'FILE', meaning: 'a decision in JSON with its right answer: input, instruction, choices, choice', otherwise: 'one in English' },
  'input-tokens': { type: 'string', value: 'N', meaning: 'the most tokens of instruction and input together', otherwise: 'what the server leaves room for' },
  'candidate-tokens': { type: 'string', value: 'N', meaning: 'the most tokens of a choice', otherwise: '96 or less' },
  choices: { type: 'string', value: 'N', meaning: 'the most choices', otherwise: 'as many as the server or the shortlist takes' },
  options: { type: 'string', value: 'FILE', meaning: "JSON that is laid over the package's options" },
  'owned-by': { type: 'string', value: 'NAME', meaning: 'whose model it is', otherwise: 'local' },
  default: { type: 'boolean', meaning: 'the plain name of the model means this revision, once it is loaded' },
} as const;

type Values = ReturnType<typeof readArguments<typeof OPTIONS>>['values'];

/** The command. */
export const addCommand: Command = {
  name: 'models add',
  usage:
    'MODEL@REVISION --url URL --dialect DIALECT [--model NAME] [--token-file FILE | --token-env VARIABLE] [--ca FILE] [--tokenizer FILE] [--shortlist MODEL] [--examples FILE [--instruction TEXT] | --temperature NUMBER] [--canary FILE] [--input-tokens N] [--candidate-tokens N] [--choices N] [--options FILE] [--owned-by NAME] [--default]',
  summary: 'makes a model package of a model at a server',
  notes: [
    'The server is asked what it is, which switch gives raw scores, and whether it refuses a text that is too long or cuts it: some forty small requests, and some of up to 16,000 words. The package is checked as by \'umpire models check\' and then moved into the models folder, where a service that runs sees it. docs/remote-models.md has recipes for servers.',
  ],
  positionals: [['MODEL@REVISION', 'what the package is called']],
  options: OPTIONS,
  environment: ['UMPIRE_MODELS_DIR'],
  failure: 'the server cannot be used: nothing is left of the package',
  async run(args, terminal: Terminal) {
    const { values, positionals } = readArguments(args, OPTIONS, [1, 1]);
    const name = nameFrom(positionals[0] ?? '');
    const request = await requestFrom(values, name, terminal);
    const added = await addRemote(request);
    terminal.out(`${name.id}@${name.revision} is in ${added.folder}`);
    for (const line of added.lines) terminal.out(`  ${line}`);
    printSpeed(terminal, added.speed);
  },
};
