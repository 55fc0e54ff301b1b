/** `umpire mock`: serves the contract without weights, for testing clients. */
import { isKey, mintKey } from '../domain/keys.ts';
import type { ModelStatus } from '../engine/engine.ts';
import { readArguments } from './arguments.ts';
import { type Command, UsageError } from './command.ts';

const NAME = /^([a-z0-9][a-z0-9._-]{0,63})(?:@([a-z0-9][a-z0-9._-]{0,63}))?(?:=(ready|unavailable|disabled))?$/;
/** What the contract's example descriptor and the shipped models have, about. */
const DEFAULT_LIMITS = { 'input-tokens': '512', 'candidate-tokens': '128', choices: '300' } as const;

/** The command. */
export const mockCommand: Command = {
  name: 'mock',
  usage:
    '[--port PORT] [--model ID[@REVISION][=STATUS]]… [--fault SPEC:RATE]… [--seed N] [--input-tokens N] [--candidate-tokens N] [--choices N]',
  summary:
    'serves the exact contract without weights, with faults on request, until it is stopped; its key is UMPIRE_KEY or a new one, which it prints',
  async run(args, terminal) {
    const text = { type: 'string' } as const;
    const { values } = readArguments(args, {
      port: text,
      model: { type: 'string', multiple: true },
      fault: { type: 'string', multiple: true },
      seed: text,
      'input-tokens': text,
      'candidate-tokens': text,
      choices: text,
    });
    const { startMock } = await import('../mock/start-mock.ts');
    const { parseFault } = await import('../mock/fault-spec.ts');
    const { createLogger, LOG_LEVELS } = await import('../logger.ts');
    const count = (name: keyof typeof DEFAULT_LIMITS, most: number): number =>
      whole(`--${name}`, values[name] ?? DEFAULT_LIMITS[name], 2, most);
    const { LOG_LEVEL, UMPIRE_KEY, UMPIRE_OTHER_KEY, ...env } = terminal.env;
    const key = UMPIRE_KEY || mintKey();
    const keys = UMPIRE_OTHER_KEY ? { mock: key, other: UMPIRE_OTHER_KEY } : { mock: key };
    if (!Object.values(keys).every(isKey)) {
      throw new UsageError('UMPIRE_KEY: must be what `umpire keys create` or an earlier mock printed');
    }
    const models = (values.model ?? ['mock']).map(modelFrom);
    const faults = (values.fault ?? []).map((fault) => {
      const at = fault.lastIndexOf(':');
      const spec = parseFault(fault.slice(0, Math.max(at, 0)));
      const rate = /^(0(\.\d{1,6})?|1(\.0{1,6})?)$/.test(fault.slice(at + 1))
        ? Number(fault.slice(at + 1))
        : Number.NaN;
      if (Number.isNaN(rate)) throw new UsageError(`--fault ${fault}: must end in a rate from 0 to 1, such as 429:0.1`);
      if (typeof spec === 'string') throw new UsageError(`--fault ${fault}: ${spec}`);
      return { spec, rate };
    });
    const level = LOG_LEVELS.find((level) => level === LOG_LEVEL) ?? 'warn';
    const logger = createLogger(level, { write: (line) => terminal.err(line.trimEnd()) });
    const mock = await startMock({
      env: { ...env, ...(values.port === undefined ? {} : { PORT: values.port }) },
      models,
      limits: {
        inputTokens: count('input-tokens', 1_000_000),
        candidateTokens: count('candidate-tokens', 1_000_000),
        choices: count('choices', 300),
      },
      keys,
      faults,
      seed: whole('--seed', values.seed ?? '1', 0, 1_000_000_000),
      logger,
    });
    const names = models.map(
      ({ id, revision, status }) => `${id}@${revision}${status === 'ready' ? '' : ` (${status})`}`,
    );
    terminal.out(`a mock of Umpire listens on ${mock.url} and serves ${names.join(', ')}. Its key:`);
    terminal.out(key);
    await terminal.interrupted();
    await mock.stop();
  },
};

function modelFrom(text: string) {
  const [, id, revision = 'r1', status = 'ready'] = NAME.exec(text) ?? [];
  if (id === undefined) throw new UsageError(`--model ${text}: must be such as mock, mock@r2 or mock=unavailable`);
  return { id, revision, status: status as ModelStatus };
}

function whole(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new UsageError(`${name}: must be a whole number from ${least} to ${most}`);
}
