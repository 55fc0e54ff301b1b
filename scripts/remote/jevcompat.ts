/**
 * Runs Umpire against jevcompat's mock of a System One server, as jevcompat.sh describes. Its argument is the folder of
 * the installed programs.
 */
import { join } from 'node:path';
import { RealServer, withServer } from './real-server.ts';
import { calm, frozen, killed, slowed, wrongKey } from './troubles.ts';
import {
  type Asked,
  complain,
  difference,
  freePort,
  pause,
  root,
  say,
  type Umpire,
  until,
  withFolder,
  withUmpire,
  writeLocalPackage,
  writeRemotePackage,
} from './umpire.ts';

const [, , bin = ''] = process.argv;
const KEY = 'jev-key-of-a-script';
const program = join(root, 'scripts', 'remote', 'jevcompat_mock.py');

/**
 * Plain decisions, and decisions whose choices look like numbers, differ in case, are decomposed in Unicode, or are
 * many.
 */
const SAMPLE: readonly Asked[] = [
  { input: 'I was charged twice', instruction: 'Which team?', choices: ['billing', 'shipping', 'support'] },
  { input: 'Wie viele?', instruction: 'A number', choices: ['10', '9', '100', '1', 'eleven'] },
  { input: 'état', instruction: 'Which?', choices: ['Été', 'été', 'e\u0301te\u0301', '__proto__', 'constructor'] },
  { input: 'many', instruction: 'Which?', choices: Array.from({ length: 200 }, (_, i) => `Reason "${i}": late\n`) },
];

/** Asks the mock itself, with the options in the order in which the service asks. */
async function direct(port: number, { input, instruction, choices }: Asked): Promise<Readonly<Record<string, number>>> {
  const criteria = [...choices].sort().map((choice) => `${JSON.stringify(choice)}:null`);
  const response = await fetch(`http://127.0.0.1:${port}/v1/systemone`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEY}` },
    body: `{"model":"mock","state":${JSON.stringify(input)},"questions":{"q":{"type":"choice","instructions":${JSON.stringify(instruction)},"criteria":{${criteria}}}}}`,
  });
  const { answers } = (await response.json()) as {
    readonly answers: { readonly q: { readonly probabilities: Readonly<Record<string, number>> } };
  };
  return answers.q.probabilities;
}

/** How an answer compares with the one without a fault. */
function verdict(outcome: string, apart: number): string {
  if (outcome !== '200') return outcome;
  return apart < 2e-6 ? 'the same' : 'another answer';
}

/** Faults that change the mock's numbers within a valid response, which a client cannot detect. */
const UNSEEN: ReadonlySet<string> = new Set(['id-leaks', 'batch-leaks', 'order-leaks']);

/** Turns on each fault of the mock, one after another, and prints what callers get. */
async function faults(umpire: Umpire, server: RealServer, names: readonly string[]): Promise<void> {
  const tell = (on: readonly string[], busyEvery = 0): void =>
    server.tell(JSON.stringify({ faults: on, busy_every: busyEvery }));
  const ready = (): Promise<number> => until(async () => (await umpire.statusOf('jev')) === 'ready');
  const sound = await Promise.all(SAMPLE.map((asked) => umpire.decide('jev', asked)));
  const verdicts = new Map<string, string[]>();
  let slowestBack = 0;
  for (const name of names) {
    tell([name]);
    await pause(100);
    const got = new Set<string>();
    for (const [i, asked] of SAMPLE.entries()) {
      const { outcome, probabilities } = await umpire.decide('jev', asked);
      got.add(verdict(outcome, difference(probabilities, sound[i]?.probabilities ?? {})));
    }
    const all = [...got].sort().join('; ');
    if (!UNSEEN.has(name) && [...got].some((each) => !/^(the same|503 )/.test(each))) complain(`${name}: ${all}`);
    verdicts.set(all, [...(verdicts.get(all) ?? []), name]);
    tell([]);
    slowestBack = Math.max(slowestBack, await ready());
  }
  for (const [all, of] of verdicts) say(`faults: ${all}: ${of.length} (${of.join(', ')})`);
  say(`faults: ready again at the latest ${slowestBack.toFixed(2)} s after the fault was gone`);

  tell([], 2);
  const busy = new Map<string, number>();
  for (let i = 0; i < 40; i++) {
    const { outcome } = await umpire.decide('jev', SAMPLE[0] as Asked);
    busy.set(outcome, (busy.get(outcome) ?? 0) + 1);
  }
  tell([]);
  say(
    `every second request gets 429 with Retry-After: 0: ${[...busy].map(([name, count]) => `${count} × ${name}`).join(', ')}`,
  );
  await ready();
}

await withFolder(async (work) => {
  const port = await freePort();
  const server = new RealServer((key) => ({
    program: join(bin, 'python'),
    args: [program, String(port), key],
    health: `http://127.0.0.1:${port}/v1/models`,
  }));
  const models = join(work, 'models');
  await writeLocalPackage(models);
  const source = {
    id: 'jev',
    limits: { input_tokens: 1000, candidate_tokens: 64, choices: 255 },
    canary: { ...(SAMPLE[0] as Asked), choice: 'billing' },
    beside: { token: KEY },
    options: {
      dialect: 'system-one',
      server: { address: `127.0.0.1:${port}`, path: '/v1/systemone', token_file: 'token' },
      model: 'mock',
      cuts: 'refuses',
      options: 255,
      bytes_per_token: 4,
      temperature: 1,
    },
  };
  const folder = await writeRemotePackage(models, source);
  await withServer(server, KEY, async () => {
    await server.ready();
    await withUmpire(models, ['minilm-l6', 'jev'], async (umpire) => {
      let largest = 0;
      for (const asked of SAMPLE) {
        const got = await umpire.decide('jev', asked);
        if (got.outcome !== '200') complain(`${got.outcome}: ${got.message}`);
        largest = Math.max(largest, difference(got.probabilities, await direct(port, asked)));
      }
      say(`decisions: ${SAMPLE.length} compared with the mock's, largest difference ${largest.toFixed(7)}`);
      if (largest > 1e-3) complain('decisions are not those of the mock');
      await faults(umpire, server, JSON.parse(server.said().split('\n')[0] ?? '[]'));
      const scene = { umpire, server, model: 'jev', asked: SAMPLE[0] as Asked, key: KEY };
      await calm(scene);
      await killed(scene);
      await frozen(scene);
      await slowed(scene);
      await wrongKey(scene, folder, 'token');
    });
  });
});
