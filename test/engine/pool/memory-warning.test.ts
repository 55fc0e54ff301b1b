/** What the operator is told of models that do not fit into an engine. */
import test from 'ava';
import { MemoryWarning } from '../../../src/engine/pool/engine-group.ts';

const MIB = 2 ** 20;

test('models that do not fit are told of once for all engines, and again after they fitted', (t) => {
  const told: string[] = [];
  const ignore = () => {};
  const logger = { debug: ignore, info: ignore, error: ignore, warn: (_: object, text: string) => told.push(text) };
  const warning = new MemoryWarning({ engineMemoryBytes: 450 * MIB, logger });
  const note = (engine: string, loaded: number): void => warning.note(engine, loaded);
  note('engine-0', 450 * MIB);
  t.deepEqual(told, []);
  for (const engine of ['engine-0', 'engine-1', 'engine-0']) note(engine, 501.5 * MIB);
  t.deepEqual(told, [
    'the models alone take 502 MiB, more than the 450 MiB of UMPIRE_ENGINE_MEMORY: raise it, or serve fewer models with UMPIRE_MODELS',
  ]);
  note('engine-0', 300 * MIB);
  note('engine-0', 500 * MIB);
  t.is(told.length, 1, 'the other one did not fit all the time');
  for (const size of [300, 500]) for (const engine of ['engine-0', 'engine-1']) note(engine, size * MIB);
  t.is(told.length, 2);
});
