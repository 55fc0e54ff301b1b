/**
 * The dialect `system-one`: an HTTP server decides itself, and returns a probability for each choice. It is asked in
 * one order of the choices or several. The logarithms of the probabilities are logits like others: they are divided by
 * the package's temperature and normalised. The options are in messages.ts.
 */
import type { Family, FamilyParts } from '../family.ts';
import { allTogether } from '../remote/calls.ts';
import { type HttpConnection, openHttpConnection } from '../remote/http/http-connection.ts';
import { fill, textsOf } from '../remote/options.ts';
import { createRemoteFamily } from '../remote/remote-family.ts';
import type { RemoteServer } from '../remote/remote-server.ts';
import type { Scorer } from '../remote/scorer.ts';
import { bodyOf, logitsOf, probabilitiesIn, readSystemOneOptions, type SystemOneOptions } from './messages.ts';

/**
 * A scorer that makes one request for each order. A choice's logit is the mean of the logarithms of its probabilities.
 */
function createSystemOneScorer(
  server: Pick<RemoteServer<HttpConnection>, 'call'>,
  options: Pick<SystemOneOptions, 'variant' | 'model' | 'permutations' | 'state' | 'instructions'>,
): Scorer {
  const { variant, model } = options;
  return {
    choiceReadsPremise: false,
    async logits(premise, choices, call) {
      const names = choices.map(({ text }) => text);
      const texts = textsOf(premise);
      const question = { model, state: fill(options.state, texts), instructions: fill(options.instructions, texts) };
      const answers = await allTogether(turnsOf(names.length, options.permutations), call, (turn, part) => {
        const turned = [...names.slice(turn), ...names.slice(0, turn)];
        const body = bodyOf({ ...question, choices: turned }, variant);
        return server.call({ rows: names.length, bytes: Buffer.byteLength(body) }, part, async (connection, terms) =>
          probabilitiesIn(await connection.post(body, terms), names, variant),
        );
      });
      const logits = new Float64Array(names.length);
      for (const answer of answers.map(logitsOf)) {
        for (const [i, logit] of answer.entries()) logits[i] = (logits[i] as number) + logit / answers.length;
      }
      return { logits, read: names.length };
    },
    async prepare() {},
  };
}

/**
 * How far the order of `count` choices is rotated for each of `permutations` requests, evenly; fewer where rotations
 * would be the same.
 */
export function turnsOf(count: number, permutations: number): readonly number[] {
  const turns = Array.from({ length: permutations }, (_, i) => Math.floor((i * count) / permutations));
  return [...new Set(turns)];
}

/** Loads a package of this dialect. Throws InvalidOptions, or what loading its files throws. */
export async function loadSystemOne(parts: FamilyParts): Promise<Family> {
  const options = readSystemOneOptions(parts.options);
  return await createRemoteFamily(parts, options, {
    open: () => openHttpConnection(options, parts.folder),
    keepsChoices: false,
    scorer: (tools) => createSystemOneScorer(tools.server, options),
  });
}
