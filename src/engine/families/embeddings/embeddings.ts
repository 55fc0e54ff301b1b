/**
 * The dialect `embeddings`: an HTTP server encodes texts one by one, as OpenAI's `/v1/embeddings` does. A choice's
 * logit is the cosine of its vector and the premise's, as in a bi-encoder. The options are in options.ts.
 */
import type { Family, FamilyParts } from '../family.ts';
import { openHttpConnection } from '../remote/http/http-connection.ts';
import { createRemoteFamily } from '../remote/remote-family.ts';
import { createVectorScorer } from '../remote/vector-scorer.ts';
import { createTextEncoder } from './encoder.ts';
import { readEmbeddingsOptions } from './options.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadEmbeddings(parts: FamilyParts): Promise<Family> {
  const options = readEmbeddingsOptions(parts.options);
  return await createRemoteFamily(parts, options, {
    open: () => openHttpConnection(options, parts.folder),
    keepsChoices: true,
    scorer: (tools) => createVectorScorer(createTextEncoder(tools.server, options), options.jointWeight, tools.keeps),
  });
}
