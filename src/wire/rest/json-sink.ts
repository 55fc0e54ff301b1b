/** Where JSON is written to: text, and runs of bytes that need no encoding any more. */
export interface JsonSink {
  text(text: string): void;
  run(run: ByteRun): void;
}

/** UTF-8 that is written straight to its place in the whole: a run of 300 numbers that were a buffer first would be copied once more. */
export interface ByteRun {
  readonly length: number;
  /** Fills `length` bytes of `target` from `start` on. */
  fill(target: Buffer, start: number): void;
}

/** A sink whose content can be taken. A text without runs stays a text, which Node writes together with the headers. */
export function createJsonSink(): JsonSink & { take(): string | Buffer } {
  let pending = '';
  const pieces: (string | ByteRun)[] = [];
  return {
    text(text) {
      pending += text;
    },
    run(run) {
      pieces.push(pending, run);
      pending = '';
    },
    take() {
      if (pieces.length === 0) return pending;
      pieces.push(pending);
      let length = 0;
      for (const piece of pieces) length += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
      const whole = Buffer.allocUnsafe(length);
      let at = 0;
      for (const piece of pieces) {
        if (typeof piece === 'string') {
          at += whole.write(piece, at);
        } else {
          piece.fill(whole, at);
          at += piece.length;
        }
      }
      return whole;
    },
  };
}
