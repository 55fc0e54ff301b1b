/** When an engine process gives memory back, when it is replaced for its size, and what the system says of it. */

import { spawn } from 'node:child_process';
import test from 'ava';
import { MemoryWarning } from '../../../src/engine/pool/engine-group.ts';
import { processUsage, Recycling } from '../../../src/engine/processes/recycling.ts';
import { eventually } from '../support/engine.ts';

const OLD = { lived: 1e9, released: true };
const LARGE = { ...OLD, resident: 200, loaded: 60 };

test('an engine whose models fit is replaced above the limit, another one a quarter above its models', (t) => {
  const cases: readonly (readonly [resident: number, loaded: number | undefined, due: boolean])[] = [
    [100, 60, false],
    [101, 60, true],
    [101, 100, true],
    [125, 101, false],
    [127, 101, true],
    [150, 120, false],
    [151, 120, true],
    // Not known: its models changed while it worked.
    [101, undefined, true],
  ];
  for (const [resident, loaded, due] of cases) {
    t.is(
      new Recycling(100, 30).due({ ...OLD, resident, loaded }, 0),
      due ? 'replacement' : 'nothing',
      `${resident} of ${loaded}`,
    );
  }
});

test('a young engine is not replaced', (t) => {
  const recycling = new Recycling(100, 30);
  t.is(recycling.due({ ...LARGE, lived: 29 }, 1000), 'nothing');
  t.is(recycling.due({ ...LARGE, lived: 30 }, 1001), 'replacement');
});

test('an engine gives memory back first, not too often, and is replaced if it is still too large', (t) => {
  const recycling = new Recycling(100, 30);
  const working = { ...LARGE, released: false };
  t.is(recycling.due(working, 0), 'release');
  t.is(recycling.due(working, 1000), 'nothing');
  t.is(recycling.due({ ...LARGE, resident: 100 }, 1001), 'nothing');
  t.is(recycling.due(working, 4999), 'nothing');
  t.is(recycling.due(working, 5000), 'release');
  t.is(recycling.due(LARGE, 5001), 'replacement');
});

test('replacements that do not help become rare, and one that helps ends that', (t) => {
  const recycling = new Recycling(100, 30);
  let last = 0;
  const waits: number[] = [];
  t.is(recycling.due(LARGE, 0), 'replacement');
  for (let now = 0; waits.length < 7; now++) {
    if (recycling.due(LARGE, now) === 'nothing') continue;
    waits.push(now - last);
    last = now;
  }
  t.deepEqual(waits, [30, 60, 120, 240, 480, 480, 480]);
  t.is(recycling.due(LARGE, last + 2000), 'replacement');
  t.is(recycling.due(LARGE, last + 2029), 'nothing');
  t.is(recycling.due(LARGE, last + 2030), 'replacement');
});

test('a process that works is runnable and uses time, a stopped one is not', async (t) => {
  const busy = spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' });
  const pid = busy.pid ?? 0;
  t.teardown(() => busy.kill('SIGKILL'));
  await eventually(() => (processUsage(pid)?.cpu ?? 0) > 100);
  t.true(processUsage(pid)?.runnable);
  busy.kill('SIGSTOP');
  await eventually(() => processUsage(pid)?.runnable === false);
  const stopped = processUsage(pid)?.cpu;
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.is(processUsage(pid)?.cpu, stopped);
  t.is(processUsage(2 ** 22 + 1), undefined);
});

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
