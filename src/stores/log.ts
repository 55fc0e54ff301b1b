/** The part of the log that stores and limits need; a pino logger is one. Nothing secret goes in. */
export interface StoreLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** For tests and the operator's command. */
export const SILENT_LOG: StoreLog = { info() {}, warn() {}, error() {} };
