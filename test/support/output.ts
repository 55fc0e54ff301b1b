/** What programs that tests start write. */
import type { Readable } from 'node:stream';

/** All that the streams of a program have said so far. */
export function outputOf(...streams: readonly Readable[]): () => string {
  let output = '';
  for (const stream of streams) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  return () => output;
}
