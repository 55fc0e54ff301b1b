/** What the mock is asked to do wrong, for tests that write it as its users do. */
import { type FaultSpec, parseFault } from '../../src/mock/faults.ts';

/** Reads a spec. @throws Error with what is wrong with it. */
export function faultOf(text: string): FaultSpec {
  const parsed = parseFault(text);
  if ('problem' in parsed) throw new Error(parsed.problem);
  return parsed.value;
}
