/** Where JSON is written to: text, and runs of bytes that need no encoding any more. */
export interface JsonSink {
  text(text: string): void;
  /** UTF-8. The bytes are the sink's from then on. */
  bytes(bytes: Buffer): void;
}

/** A sink whose content can be taken. A text without byte runs stays a text, which Node writes together with the headers. */
export function createJsonSink(): JsonSink & { take(): string | Buffer } {
  let pending = '';
  const chunks: Buffer[] = [];
  return {
    text(text) {
      pending += text;
    },
    bytes(bytes) {
      if (pending !== '') chunks.push(Buffer.from(pending));
      pending = '';
      chunks.push(bytes);
    },
    take() {
      if (chunks.length === 0) return pending;
      if (pending !== '') chunks.push(Buffer.from(pending));
      return Buffer.concat(chunks);
    },
  };
}
