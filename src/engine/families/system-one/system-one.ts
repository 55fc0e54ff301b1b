/**
 * The dialect `system-one`: an HTTP server decides itself, and returns a probability for each choice. Their logarithms
 * are logits like others: they are divided by the package's temperature and normalised. The options are in options.ts.
 */
import type { Family, FamilyParts } from '../family.ts';
import { openHttpConnection } from '../remote/http/http-connection.ts';
import { createRemoteFamily } from '../remote/remote-family.ts';
import { readSystemOneOptions } from './options.ts';
import { createSystemOneScorer } from './scorer.ts';

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadSystemOne(parts: FamilyParts): Promise<Family> {
  const options = readSystemOneOptions(parts.options);
  return await createRemoteFamily(parts, options, {
    open: () => openHttpConnection(options, parts.folder),
    keepsChoices: false,
    scorer: (tools) => createSystemOneScorer(tools.server, options),
  });
}
