/**
 * The dialect `rerank`: an HTTP server scores choices, its *documents* or *texts*, for a query. A choice's logit is
 * that of its pair with the query, as in a cross-encoder. The options are in options.ts.
 */
import type { Family, FamilyParts } from '../family.ts';
import { openHttpConnection } from '../remote/http/http-connection.ts';
import { createRemoteFamily } from '../remote/remote-family.ts';
import { readRerankOptions } from './options.ts';
import { createRerankScorer } from './rerank-scorer.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadRerank(parts: FamilyParts): Promise<Family> {
  const options = readRerankOptions(parts.options);
  return await createRemoteFamily(parts, options, {
    open: () => openHttpConnection(options, parts.folder),
    keepsChoices: false,
    scorer: (tools) => createRerankScorer(tools.server, options),
  });
}
