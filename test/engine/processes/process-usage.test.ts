/** Whether a process works, waits or is stopped. */
import { spawn } from 'node:child_process';
import test from 'ava';
import { processUsage } from '../../../src/engine/processes/recycling.ts';
import { eventually } from '../support/engine.ts';

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
