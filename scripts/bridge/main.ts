/** Runs what check-bridge.sh describes. PORT, API_KEY and TOOLS are of the service and of what was installed. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  complain,
  difference,
  freePort,
  say,
  until,
  withFolder,
  withUmpire,
  writeLocalPackage,
  writeRemotePackage,
} from '../remote/umpire.ts';
import { runRecipes } from './recipes.ts';

const { PORT = '', TOOLS = '' } = process.env;
// The service with Umpire's own client has other models.
delete process.env.UMPIRE_MODELS;
const run = promisify(execFile);

interface Report {
  readonly summary?: object;
  readonly results: readonly { readonly id: string; readonly level: string; readonly status: string }[];
}

/** What the bridge does not do, and why not. */
const UNMET: Readonly<Record<string, string>> = {
  'request.unknown-fields': 'a field that is ignored is a question that was not answered',
};

async function jevcompat(folder: string, port: number, name: string): Promise<void> {
  const file = join(folder, `${name}.json`);
  const said = await run(join(TOOLS, 'python/bin/jevcompat'), [
    'test',
    `http://127.0.0.1:${port}`,
    '--json',
    file,
  ]).catch(({ stdout, message }: { readonly stdout?: string; readonly message: string }) => {
    complain(`${name}: ${message}`);
    return { stdout: stdout ?? '' };
  });
  const { results } = JSON.parse(readFileSync(file, 'utf8')) as Report;
  for (const { id, status } of results) {
    if (status === 'fail' && UNMET[id] === undefined) complain(`${name}: ${id}`);
  }
  say(`${name}: ${said.stdout.trim().split('\n').at(-1)}`);
}

/** Umpire's own client of both forms asks the bridge, and gets what the service itself decides. */
async function ownClient(folder: string, bridge: number): Promise<void> {
  const models = join(folder, 'models');
  mkdirSync(models);
  await writeLocalPackage(models);
  const asked = {
    input: 'I was charged twice',
    instruction: 'Which team?',
    choices: ['billing', 'shipping', '10', '9'],
  };
  const common = { cuts: 'refuses', bytes_per_token: 4, temperature: 1, model: 'umpire-mini', options: 8 };
  for (const variant of ['systemone', 'decisions']) {
    await writeRemotePackage(models, {
      id: variant,
      limits: { input_tokens: 64, candidate_tokens: 16, choices: 8 },
      canary: { ...asked, choice: 'billing' },
      options: { ...common, dialect: 'system-one', variant, server: { address: `127.0.0.1:${bridge}` } },
    });
  }
  const own = (await (
    await fetch(`http://127.0.0.1:${PORT}/v1/decisions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'umpire-mini', ...asked }),
    })
  ).json()) as { readonly output: { readonly probabilities: Readonly<Record<string, number>> } };
  await withUmpire(models, ['systemone', 'decisions'], async (umpire) => {
    for (const variant of ['systemone', 'decisions']) {
      const got = await umpire.decide(variant, asked);
      const apart = difference(got.probabilities, own.output.probabilities);
      say(`Umpire's own client, ${variant}: ${got.outcome}, ${apart.toFixed(7)} from the service's own answer`);
      // Both round to six decimals, one after the other.
      if (!(apart < 1e-5)) complain(`${variant}: another answer: ${got.message}`);
    }
  });
}

await withFolder(async (folder) => {
  const [bridge, mcp, litellm, proxy] = [await freePort(), await freePort(), await freePort(), await freePort()];
  await runRecipes(folder, TOOLS, { 8080: Number(PORT), 8090: bridge, 8091: mcp, 4000: litellm }, async () => {
    await jevcompat(folder, bridge, 'jevcompat');
    const between = execFile(join(TOOLS, 'python/bin/jevcompat'), [
      'proxy',
      `http://127.0.0.1:${bridge}`,
      '--port',
      `${proxy}`,
    ]);
    try {
      await until(() =>
        fetch(`http://127.0.0.1:${proxy}/v1/models`).then(
          ({ ok }) => ok,
          () => false,
        ),
      );
      await jevcompat(folder, proxy, 'jevcompat behind its own proxy');
      const answer = await fetch(`http://127.0.0.1:${proxy}/v1/systemone`, {
        method: 'POST',
        body: '{"model":"umpire-mini","state":"a","questions":{"q":{"type":"noul","instructions":"b"}}}',
      });
      const fixes = answer.headers.get('x-jevcompat-fixes');
      say(`the proxy fixes: ${fixes}`);
      if (fixes !== 'none') complain('the proxy had something to fix');
    } finally {
      between.kill('SIGTERM');
    }
    await ownClient(folder, bridge);
  });
});
