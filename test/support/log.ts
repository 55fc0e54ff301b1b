/** A log that tests can read. */
import type { StoreLog } from '../../src/stores/stores.ts';

/** Lines so far: level, message and fields. */
export interface RecordedLog extends StoreLog {
  readonly lines: readonly { readonly level: string; readonly message: string; readonly fields: object }[];
}

/** An empty one. */
export function createRecordedLog(): RecordedLog {
  const lines: { level: string; message: string; fields: object }[] = [];
  const at = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, fields });
  };
  return { lines, info: at('info'), warn: at('warn'), error: at('error') };
}
