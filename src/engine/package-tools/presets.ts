/**
 * How known servers are asked: by dialect, what a package's options say of each server. What is said here was read in
 * the servers' documents and sources, and holds as far as a package with it passes its check: the canary, the largest
 * requests, and texts that would be cut.
 */
import type { ModelLimits } from '../engine.ts';
import { DIALECT_NAMES, type DialectName, type JsonObject } from '../packages/manifest.ts';

/** By dialect, what is particular to a server; the first is meant where none is named. */
type Preset = { readonly [K in DialectName]?: JsonObject };

const REFUSES = { cuts: 'refuses' } as const;
const CUTS = { cuts: 'silently' } as const;
const DOCUMENTS = { shape: 'documents' } as const;
/** Scores of which the logit is taken here: if a server returns others, the check says so. */
const PROBABILITIES = { ...DOCUMENTS, scores: 'probability' } as const;
/** Newer models refuse the older name of the field. */
const OPENAI_CHAT = { ...REFUSES, max_tokens_field: 'max_completion_tokens' } as const;
/** An encoder or a cross-encoder as exporters name its tensors. */
const EXPORTED: JsonObject = {
  inputs: ['ids', 'mask'].map((holds) => ({
    name: holds === 'ids' ? 'input_ids' : 'attention_mask',
    datatype: 'INT64',
    shape: [-1, -1],
    holds,
  })),
  output: { name: 'logits', datatype: 'FP32', shape: [-1, 1] },
  returns: 'logit',
};

const PRESETS = {
  tei: {
    rerank: { ...REFUSES, shape: 'texts', scores: 'logit', raw: 'raw_scores', truncate: 'refuse' },
    embeddings: CUTS,
  },
  infinity: {
    rerank: { ...CUTS, ...DOCUMENTS, scores: 'logit', raw: 'raw_scores', server: { path: '/rerank' } },
    embeddings: { ...CUTS, server: { path: '/embeddings' } },
  },
  vllm: {
    rerank: { ...REFUSES, ...DOCUMENTS, scores: 'logit', raw: 'use_activation' },
    embeddings: REFUSES,
    'system-one': REFUSES,
    chat: REFUSES,
  },
  'llama.cpp': {
    rerank: { ...REFUSES, ...DOCUMENTS, scores: 'logit', raw: 'none' },
    embeddings: REFUSES,
    'system-one': REFUSES,
    chat: REFUSES,
  },
  ollama: { 'system-one': REFUSES, embeddings: CUTS, chat: CUTS },
  sglang: { rerank: { ...REFUSES, ...PROBABILITIES }, 'system-one': REFUSES, chat: REFUSES },
  localai: { rerank: { ...REFUSES, ...PROBABILITIES }, 'system-one': REFUSES, embeddings: REFUSES, chat: REFUSES },
  cohere: { rerank: { ...CUTS, ...PROBABILITIES, server: { path: '/v2/rerank' } } },
  jina: { rerank: { ...CUTS, ...PROBABILITIES }, embeddings: REFUSES },
  openai: { 'system-one': { ...REFUSES, variant: 'decisions', options: 255 }, embeddings: REFUSES, chat: OPENAI_CHAT },
  azure: {
    chat: {
      ...OPENAI_CHAT,
      server: { path: '/openai/v1/chat/completions', health: '/openai/v1/models', token_header: 'api-key' },
    },
  },
  litellm: { chat: REFUSES },
  triton: { 'open-inference': EXPORTED },
  kserve: { 'open-inference': EXPORTED },
  mlserver: { 'open-inference': EXPORTED },
} as const satisfies Readonly<Record<string, Preset>>;

/** A server that has a preset. */
export type ServerName = keyof typeof PRESETS;

/** All of them. */
export const SERVER_NAMES = Object.keys(PRESETS) as readonly ServerName[];

/** What holds for every server of a dialect, until somebody says otherwise. */
interface Usual {
  readonly options: JsonObject;
  readonly limits: Pick<ModelLimits, 'inputTokens' | 'candidateTokens'>;
}

const OF_512 = { inputTokens: 400, candidateTokens: 96 } as const;

const USUAL: Readonly<Record<DialectName, Usual>> = {
  rerank: {
    options: { templates: { query: '{instruction}\n{input}', document: '{choice}' }, temperature: 1 },
    limits: OF_512,
  },
  embeddings: {
    options: {
      templates: { choice: '{choice}', input: '{input}', joint: '{instruction}\n{input}' },
      joint_weight: 0.2,
      temperature: 0.05,
    },
    limits: OF_512,
  },
  // Most decision servers take as many choices.
  'system-one': { options: { options: 26, temperature: 1 }, limits: { inputTokens: 1024, candidateTokens: 32 } },
  'open-inference': { options: { temperature: 1 }, limits: OF_512 },
  chat: {
    options: {
      options: 20,
      templates: {
        system:
          'You decide between options. Answer with the letter of the option that fits best, and with nothing else.',
        // Behind the text: a small language model forgets choices that stand before it.
        user: 'Text: {input}\n\n{instruction}\n\n{choices}\n\nLetter of the option that fits best:',
        choice: '{letter}. {choice}',
      },
      temperature: 1,
    },
    limits: { inputTokens: 1024, candidateTokens: 32 },
  },
};

/** How a server is asked in a dialect. */
export interface Asked extends Usual {
  readonly dialect: DialectName;
  /** What of the options is particular to the server. */
  readonly preset: JsonObject;
}

/**
 * How a server is asked. Without a name nothing is particular, and without a dialect it is the first that the server
 * speaks. Throws Error where neither says how, or both do not fit together.
 */
export function askedAs(server: ServerName | undefined, named: DialectName | undefined): Asked {
  const spoken: Preset = server === undefined ? {} : PRESETS[server];
  const dialects = server === undefined ? DIALECT_NAMES : (Object.keys(spoken) as DialectName[]);
  const dialect = named ?? (server === undefined ? undefined : dialects[0]);
  if (dialect === undefined) throw new Error('--server SERVER or --dialect DIALECT is needed');
  if (!dialects.includes(dialect)) {
    throw new Error(
      `--dialect: ${server} is known to speak ${dialects.join(', ')}; without --server, --options says how`,
    );
  }
  return { dialect, preset: spoken[dialect] ?? {}, ...USUAL[dialect] };
}
