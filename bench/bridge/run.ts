/**
 * What the bridge adds: its CPU time for a question, by itself and with nine others in a request, and a request of ten
 * questions compared with ten decisions side by side over REST: elapsed time, and CPU time of the service with its
 * engine. The model is minilm-l6, whose decisions are cheap. The kinds of requests take turns, `--rounds` (9) of
 * `--requests` (300) questions each; the medians of the rounds are shown.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cpuSeconds } from '../load/cpu.ts';
import { startService } from '../load/service.ts';
import { median } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';
import { type DecisionBody, LARGE, SMALL } from '../shell/requests.ts';

/** CPU milliseconds a question that the bridge may take. */
const BOUND = 1;
const TOGETHER = 10;
const MODEL = 'minilm-l6';

interface Kind {
  readonly name: string;
  readonly bridged: boolean;
  readonly body: DecisionBody;
  /** Questions in one request; for REST, requests at the same time. */
  readonly questions: number;
}

const KINDS: readonly Kind[] = [
  { name: 'REST, 5 choices', bridged: false, body: SMALL, questions: 1 },
  { name: 'bridge, 5 choices', bridged: true, body: SMALL, questions: 1 },
  { name: 'REST, 10 side by side', bridged: false, body: SMALL, questions: TOGETHER },
  { name: 'bridge, 10 questions', bridged: true, body: SMALL, questions: TOGETHER },
  { name: 'REST, 300 choices', bridged: false, body: LARGE, questions: 1 },
  { name: 'bridge, 300 choices', bridged: true, body: LARGE, questions: 1 },
];

/** Per question, milliseconds. */
interface Sample {
  readonly elapsed: number;
  readonly bridge: number;
  readonly service: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: TOGETHER });

function post(port: number, path: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    request({ port, host: '127.0.0.1', agent, method: 'POST', path, headers }, (answer) => {
      answer
        .resume()
        .once('end', () => (answer.statusCode === 200 ? resolve() : reject(new Error(`${answer.statusCode}`))));
    })
      .once('error', reject)
      .end(body);
  });
}

/** One request of a kind; the texts differ by `turn`, as those of callers do. */
async function ask({ bridged, body, questions }: Kind, ports: readonly [number, number], turn: number): Promise<void> {
  const asked = Array.from({ length: questions }, (_, i) => `${body.instruction} (${turn}, ${i})`);
  if (!bridged) {
    const bodies = asked.map((instruction) => JSON.stringify({ ...body, model: MODEL, instruction }));
    await Promise.all(bodies.map((each) => post(ports[0], '/v1/decisions', each)));
    return;
  }
  const criteria = Object.fromEntries(body.choices.map((choice) => [choice, null]));
  const named = asked.map((instructions, i) => [`q${i}`, { type: 'choice', instructions, criteria }]);
  const sent = { model: MODEL, state: body.input, questions: Object.fromEntries(named) };
  await post(ports[1], '/v1/systemone', JSON.stringify(sent));
}

/** Runs the benchmark. */
export async function run({ rounds = 9, requests = 300 }: Record<string, number>): Promise<void> {
  const service = await startService({ UMPIRE_MODELS: MODEL, UMPIRE_ENGINES: '1' });
  const args = ['bridge', '--url', `http://127.0.0.1:${service.port}`, '--port', '0'];
  const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));
  const bridge = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: bridge.stdout });
  const [first] = (await once(lines, 'line')) as [string];
  const ports = [service.port, Number(JSON.parse(first).port)] as const;
  const used = () =>
    [
      cpuSeconds(bridge.pid ?? 0),
      [service.pid, ...service.engines()].reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    ] as const;
  const samples = new Map<Kind, Sample[]>(KINDS.map((kind) => [kind, []]));
  for (let round = -2; round < rounds; round += 1) {
    for (const kind of KINDS) {
      const began = [performance.now(), ...used()] as const;
      const turns = Math.ceil(requests / kind.questions);
      for (let turn = 0; turn < turns; turn += 1) await ask(kind, ports, turn);
      const count = turns * kind.questions;
      const ended = used();
      const sample = {
        elapsed: (performance.now() - began[0]) / count,
        bridge: (1000 * (ended[0] - began[1])) / count,
        service: (1000 * (ended[1] - began[2])) / count,
      };
      // The first rounds warm up.
      if (round >= 0) samples.get(kind)?.push(sample);
    }
  }
  const of = (kind: Kind | undefined, what: keyof Sample): number =>
    median((samples.get(kind as Kind) ?? []).map((sample) => sample[what]));
  printTable(
    [
      'milliseconds a question',
      'elapsed',
      'CPU of the bridge',
      'at most',
      'CPU of the service',
      'elapsed, to REST',
      'CPU of the service, to REST',
    ],
    KINDS.map((kind, i) => {
      const rest = kind.bridged ? KINDS[i - 1] : undefined;
      const ratio = (what: keyof Sample): string =>
        rest === undefined ? '' : (of(kind, what) / of(rest, what)).toFixed(2);
      return [
        kind.name,
        of(kind, 'elapsed').toFixed(2),
        kind.bridged ? of(kind, 'bridge').toFixed(2) : '',
        kind.bridged ? `${BOUND}${of(kind, 'bridge') > BOUND ? ' missed' : ''}` : '',
        of(kind, 'service').toFixed(2),
        ratio('elapsed'),
        ratio('service'),
      ];
    }),
  );
  agent.destroy();
  bridge.kill('SIGTERM');
  await once(bridge, 'exit');
  await service.stop();
}
