/** A request that is not answered: by the bridge, or by the service behind it. */
import { DomainError, type DomainErrorDetails, type ErrorReason } from '../domain/errors.ts';

/** Where a value is in a body. */
export type Path = readonly (string | number)[];

interface Details extends Omit<DomainErrorDetails, 'param'> {
  readonly path?: Path | undefined;
}

/** Carries one of the service's own reasons, which each form of request words in its own way. */
export class Refused extends DomainError {
  /** The value at fault, if it is one; `param` is the same as a text, such as `questions[0].choices`. */
  readonly path: Path;

  /** `message` is sent to the caller: it never holds a key, nor a text of somebody else's. */
  constructor(reason: ErrorReason, message: string, { path = [], ...details }: Details = {}) {
    const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
    super(reason, message, { ...details, param: steps.join('').replace(/^\./, '') || null });
    this.path = path;
  }
}
