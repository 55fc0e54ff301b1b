/** The part of the log that stores and limits need; a pino logger has it. Secrets are never logged. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** A log that discards everything: for tests and the operator's command. */
export const SILENT_LOG: StoreLog = { info() {}, warn() {}, error() {} };
