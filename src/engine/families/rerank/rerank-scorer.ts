/** Sends a query and its documents in requests within the bounds, and makes logits of the scores. */
import { allTogether, batchesWithin } from '../remote/batches.ts';
import type { HttpConnection } from '../remote/http/http-connection.ts';
import { createPace } from '../remote/pace.ts';
import type { RemoteServer } from '../remote/remote-server.ts';
import type { Scorer } from '../remote/scorer.ts';
import { fill, textsOf } from '../remote/templates.ts';
import { rerankBody, scoresIn } from './messages.ts';
import type { RerankOptions } from './options.ts';
import { doubtOf, logitsOf } from './scores.ts';

/** A scorer that sends one pair of query and document for each choice. */
export function createRerankScorer(
  server: Pick<RemoteServer<HttpConnection>, 'call'>,
  options: Pick<RerankOptions, 'shape' | 'model' | 'scores' | 'refuses' | 'query' | 'document' | 'bounds'>,
): Scorer {
  const { shape, scores: kind, bounds } = options;
  return {
    choiceReadsPremise: true,
    async logits(premise, choices, call) {
      const pace = createPace(call.signal);
      const query = JSON.stringify(fill(options.query, textsOf(premise)));
      const documents: string[] = [];
      for (const choice of choices) {
        documents.push(JSON.stringify(fill(options.document, textsOf(premise, choice))));
        await pace();
      }
      const bytesOf = (place: number): number => Buffer.byteLength(documents[place] as string);
      const room = Math.max(1, bounds.messageBytes - Buffer.byteLength(query));
      const batches = batchesWithin(documents.keys(), bytesOf, { rows: bounds.rows, messageBytes: room });
      const scores = new Float64Array(choices.length);
      await allTogether(batches, call, async (places, part) => {
        const body = rerankBody(
          query,
          places.map((place) => documents[place] as string),
          options,
        );
        const answer = await server.call(
          { rows: places.length, bytes: Buffer.byteLength(body) },
          part,
          async (connection, terms) => scoresIn(await connection.post(body, terms), shape, places.length),
        );
        for (const [i, place] of places.entries()) scores[place] = answer[i] as number;
      });
      return { logits: logitsOf(scores, kind), read: choices.length, doubt: doubtOf(scores, kind) };
    },
    async prepare() {},
  };
}
