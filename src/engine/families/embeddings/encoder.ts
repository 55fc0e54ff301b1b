/** Gets vectors of texts, in requests within the bounds. */
import { allTogether, batchesWithin } from '../remote/batches.ts';
import type { JobCall } from '../remote/calls.ts';
import type { HttpConnection } from '../remote/http/http-connection.ts';
import { createPace } from '../remote/pace.ts';
import type { RemoteServer } from '../remote/remote-server.ts';
import { fill, textsOf } from '../remote/templates.ts';
import type { RemoteEncoder } from '../remote/vector-scorer.ts';
import { embeddingsBody, vectorsIn } from './messages.ts';
import type { EmbeddingsOptions, Encoding } from './options.ts';

/** An encoder that makes the texts by the package's templates. */
export function createTextEncoder(
  server: Pick<RemoteServer<HttpConnection>, 'call'>,
  options: Omit<EmbeddingsOptions, 'server'>,
): RemoteEncoder {
  const { bounds, jointWeight } = options;
  const premiseTemplates = [
    { template: options.input, weight: 1 - jointWeight },
    { template: options.joint ?? options.input, weight: jointWeight },
  ].filter(({ weight }) => weight > 0);

  /** `texts` are strings written as JSON. */
  const encode = async (texts: readonly string[], encoding: Encoding, call: JobCall) => {
    const bytesOf = (place: number): number => Buffer.byteLength(texts[place] as string);
    const vectors = new Array<Float64Array>(texts.length);
    await allTogether(batchesWithin(texts.keys(), bytesOf, bounds), call, async (places, part) => {
      const body = embeddingsBody(
        places.map((place) => texts[place] as string),
        encoding,
      );
      const size = { rows: places.length, bytes: Buffer.byteLength(body) };
      const found = await server.call(size, part, async (connection, terms) =>
        vectorsIn(await connection.post(body, terms), places.length, encoding),
      );
      for (const [i, place] of places.entries()) vectors[place] = found[i] as Float64Array;
    });
    return vectors;
  };

  return {
    async choices(choices, call) {
      const pace = createPace(call.signal);
      const texts: string[] = [];
      for (const choice of choices) {
        texts.push(JSON.stringify(fill(options.choice, { choice })));
        await pace();
      }
      return await encode(texts, options.ofChoices, call);
    },
    premise: (premise, call) =>
      encode(
        premiseTemplates.map(({ template }) => JSON.stringify(fill(template, textsOf(premise)))),
        options.ofInputs,
        call,
      ),
  };
}
