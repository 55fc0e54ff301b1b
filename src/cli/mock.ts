/** `umpire mock`: serves the contract without weights, for testing clients. */
import { isKey, mintKey } from '../domain/keys.ts';
import type { ModelLimits, ModelStatus } from '../engine/engine.ts';
import { readArguments, wholeWithin } from './arguments.ts';
import { type Command, option, repeatable, UsageError } from './command.ts';

/** A value of `--model`: id, revision and status. */
const NAME = /^([a-z0-9][a-z0-9._-]{0,63})(?:@([a-z0-9][a-z0-9._-]{0,63}))?(?:=(ready|unavailable|disabled))?$/;
/** Limits of models that are not shipped: those of the contract's example descriptor. */
const DEFAULT_LIMITS: ModelLimits = { inputTokens: 512, candidateTokens: 128, choices: 300 };

/** The models that Umpire is shipped with, by the names that clients ask for, with their limits. */
const SHIPPED: Readonly<Record<string, ModelLimits>> = {
  'umpire-mini@r11': { inputTokens: 4096, candidateTokens: 72, choices: 300 },
  'umpire-base@r4': { inputTokens: 2048, candidateTokens: 66, choices: 300 },
  'umpire-multi@r5': { inputTokens: 4096, candidateTokens: 76, choices: 300 },
  'minilm-l6@r2': { inputTokens: 500, candidateTokens: 96, choices: 300 },
};
/** The models of a mock that is given no `--model`. */
const DEFAULT_MODELS = Object.keys(SHIPPED);
const otherwise = (limit: number): string => `the shipped models' own; ${limit}`;

const OPTIONS = {
  port: option('PORT', 'where it listens; 0 takes a free port', 'PORT'),
  model: repeatable(
    'NAME',
    'a model as ID[@REVISION][=STATUS], STATUS ready, unavailable or disabled',
    DEFAULT_MODELS.join(' and '),
  ),
  fault: repeatable('SPEC:RATE', 'a fault and the share of requests that get it, such as 429:0.1', 'none'),
  seed: option('N', 'seed of the random faults', '1'),
  'input-tokens': option('N', "the models' limit", otherwise(DEFAULT_LIMITS.inputTokens)),
  'candidate-tokens': option('N', "the models' limit", otherwise(DEFAULT_LIMITS.candidateTokens)),
  choices: option('N', "the models' limit", String(DEFAULT_LIMITS.choices)),
} as const;

/** The command `umpire mock`. */
export const MOCK_COMMAND: Command = {
  name: 'mock',
  usage: '[OPTION]…',
  summary: 'serves the exact contract without weights, with faults on request',
  notes: [
    'It runs until it is stopped, and prints its address and, as the last line, its key: UMPIRE_KEY or a new one. The settings of the server apply, too.',
  ],
  options: OPTIONS,
  environment: ['PORT', 'HOST', 'TLS_CERT', 'TLS_KEY', 'LOG_LEVEL', 'UMPIRE_KEY', 'UMPIRE_OTHER_KEY'],
  async run(args, terminal) {
    const { values } = readArguments(args, OPTIONS);
    const { startMock } = await import('../mock/start-mock.ts');
    const { parseFault } = await import('../mock/faults.ts');
    const { createLogger, LOG_LEVELS } = await import('../logger.ts');
    const count = (name: 'input-tokens' | 'candidate-tokens' | 'choices', usual: number, most: number): number =>
      wholeWithin(`--${name}`, values[name] ?? String(usual), 2, most);
    const limitsOf = ({ inputTokens, candidateTokens, choices }: ModelLimits): ModelLimits => ({
      inputTokens: count('input-tokens', inputTokens, 1_000_000),
      candidateTokens: count('candidate-tokens', candidateTokens, 1_000_000),
      choices: count('choices', choices, 300),
    });
    const { LOG_LEVEL, UMPIRE_KEY, UMPIRE_OTHER_KEY, ...env } = terminal.env;
    const key = UMPIRE_KEY || mintKey();
    const keys = UMPIRE_OTHER_KEY ? { mock: key, other: UMPIRE_OTHER_KEY } : { mock: key };
    if (!Object.values(keys).every(isKey)) {
      throw new UsageError('UMPIRE_KEY: must be what `umpire keys create` or an earlier mock printed');
    }
    const models = (values.model ?? DEFAULT_MODELS).map(modelFrom).map((model) => {
      const shipped = SHIPPED[`${model.id}@${model.revision}`];
      return shipped === undefined ? model : { ...model, limits: limitsOf(shipped) };
    });
    const faults = (values.fault ?? []).map((fault) => {
      const at = fault.lastIndexOf(':');
      const spec = parseFault(fault.slice(0, Math.max(at, 0)));
      const rate = fault.slice(at + 1);
      if (!/^(0(\.\d{1,6})?|1(\.0{1,6})?)$/.test(rate))
        throw new UsageError(`--fault ${fault}: must end in a rate from 0 to 1, such as 429:0.1`);
      if ('problem' in spec) throw new UsageError(`--fault ${fault}: ${spec.problem}`);
      return { spec: spec.value, rate: Number(rate) };
    });
    const level = LOG_LEVELS.find((level) => level === LOG_LEVEL) ?? 'warn';
    const logger = createLogger(level, { write: (line) => terminal.err(line.trimEnd()) });
    // Signals are listened for before the port is open, since whoever sees it open may send one at once.
    const interrupted = terminal.interrupted();
    const mock = await startMock({
      env: { ...env, ...(values.port === undefined ? {} : { PORT: values.port }) },
      models,
      limits: limitsOf(DEFAULT_LIMITS),
      keys,
      faults,
      seed: wholeWithin('--seed', values.seed ?? '1', 0, 1_000_000_000),
      logger,
    });
    const names = models.map(
      ({ id, revision, status }) => `${id}@${revision}${status === 'ready' ? '' : ` (${status})`}`,
    );
    terminal.out(`a mock of Umpire listens on ${mock.url} and serves ${names.join(', ')}. Its key:`);
    terminal.out(key);
    await interrupted;
    await mock.stop();
  },
};

function modelFrom(text: string) {
  const [, id, named, status = 'ready'] = NAME.exec(text) ?? [];
  // A shipped model without a revision means the one that is shipped.
  const revision = named ?? DEFAULT_MODELS.find((name) => name.startsWith(`${id}@`))?.slice(`${id}@`.length) ?? 'r1';
  if (id === undefined) throw new UsageError(`--model ${text}: must be such as mock, mock@r2 or mock=unavailable`);
  return { id, revision, status: status as ModelStatus };
}
