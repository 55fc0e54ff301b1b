/**
 * The options of the dialect `system-one`, beside those of all dialects (remote/options.ts):
 *
 *     { "server": { "address", "tls", "token_file" or "token_env", "path", "health" },     see remote/server-options.ts
 *       "variant": "systemone": { state, questions: { … criteria } } → { answers: { … probabilities } }, as TypeSafe,
 *                  llama.cpp, Ollama, vLLM, SGLang and LocalAI have it; "path" is "/v1/systemone" unless it says
 *                  otherwise,
 *                  or "decisions": { input, questions: [{ … choices }] } → { answers: [{ … probabilities }] }, as
 *                  OpenAI has it; "path" is "/v1/decisions". May be left out: "systemone",
 *       "model": the model's name at the server,
 *       "options": the most choices that the server takes; 255 unless it says otherwise,
 *       "permutations": 1, 2 or 4: in how many orders the choices are asked. May be left out: 1,
 *       "cuts": "refuses" or "silently": what the server does with texts that are too long,
 *       "templates": { "state": what is sent of the input, "instructions": of the instruction }, both optional }
 *
 * With `"cuts": "silently"` the package must have a `tokenizer`, and its `limits` decide: what they allow, all choices
 * and the server's own prompt included, must be what the server reads.
 */
import { type Checker, createChecker, readOptions } from '../../packages/checker.ts';
import { type RemoteOptions, readCuts, readRemoteOptions } from '../remote/options.ts';
import { type HttpPaths, type HttpServerOptions, readHttpServer } from '../remote/server-options.ts';
import { readTemplate, type TextName } from '../remote/templates.ts';

/** The two forms of request and answer. */
export type SystemOneVariant = 'systemone' | 'decisions';

/** The options of a package of this dialect, as they were read. */
export interface SystemOneOptions extends RemoteOptions {
  readonly server: HttpServerOptions;
  readonly variant: SystemOneVariant;
  readonly model: string;
  /** In how many orders the choices are asked. */
  readonly permutations: number;
  readonly state: string;
  readonly instructions: string;
}

const PATHS: Readonly<Record<SystemOneVariant, HttpPaths>> = {
  systemone: { path: '/v1/systemone', health: '/v1/models' },
  decisions: { path: '/v1/decisions', health: '/v1/models' },
};

/** Choices that a server takes, where a package does not say: the number that both forms were specified with. */
const DEFAULT_CHOICES = 255;

/** Reads the options. Throws InvalidOptions with every problem. */
export function readSystemOneOptions(raw: unknown): SystemOneOptions {
  return readOptions(raw, optionsOf);
}

function optionsOf(fields: Checker): SystemOneOptions {
  const has = (field: string): boolean => fields.value(field) !== undefined;
  const variant =
    has('variant') && fields.text('variant', /^(systemone|decisions)$/) === 'decisions' ? 'decisions' : 'systemone';
  const choices = has('options') ? fields.integer('options', 2, 300) : DEFAULT_CHOICES;
  if (has('batch'))
    fields.problem('is for rows, and this dialect has none: options says how many choices go at a time', 'batch');
  const permutations = has('permutations') ? fields.integer('permutations', 1, 4) : 1;
  if (permutations === 3) fields.problem('must be 1, 2 or 4', 'permutations');
  const needsTokenizer = readCuts(fields) === 'silently';
  const templates = has('templates') ? fields.object('templates') : createChecker({}, 'options.templates', []);
  const options: SystemOneOptions = {
    ...readRemoteOptions(fields, { rows: choices, needsTokenizer, cap: { field: 'options', choices } }),
    server: readHttpServer(fields, PATHS[variant]),
    variant,
    model: fields.text('model', /./u),
    permutations,
    state: templateOf(templates, 'state', 'input', ['instruction', 'input']),
    instructions: templateOf(templates, 'instructions', 'instruction', ['input', 'instruction']),
  };
  templates.refuseOthers();
  return options;
}

/** A template that may be left out: then it is the named text, as it is. */
function templateOf(templates: Checker, field: string, text: TextName, names: readonly TextName[]): string {
  return templates.value(field) === undefined ? `{${text}}` : readTemplate(templates, field, names);
}
