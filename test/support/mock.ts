/** Mocks of the service for tests. */
import { createLogger } from '../../src/logger.ts';
import { type FaultSpec, parseFault } from '../../src/mock/faults.ts';
import { type Mock, type MockOptions, startMock } from '../../src/mock/start-mock.ts';

/** Starts one that serves `mock@r1`, without keys and faults, unless the options say otherwise. */
export const startTestMock = (options: Partial<MockOptions> = {}): Promise<Mock> =>
  startMock({
    env: { PORT: '0' },
    models: [{ id: 'mock', revision: 'r1', status: 'ready' }],
    limits: { inputTokens: 64, candidateTokens: 16, choices: 300 },
    keys: {},
    faults: [],
    seed: 1,
    logger: createLogger('silent', { write: () => {} }),
    ...options,
  });

/** What a mock is asked to do wrong, as its users write it. @throws Error with what is wrong with the spec. */
export function faultOf(text: string): FaultSpec {
  const parsed = parseFault(text);
  if ('problem' in parsed) throw new Error(parsed.problem);
  return parsed.value;
}
