/**
 * Where the engine writes what operators must know; pino's loggers fit. It is never given an input, an instruction or a
 * choice.
 */
export interface EngineLogger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
