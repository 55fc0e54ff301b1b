/**
 * Compares Umpire with a plain server around `@huggingface/transformers`, with the same model file, texts and choices.
 * Both have 16 callers, in turns.
 */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageFolder } from '../baseline/bare.ts';
import type { LoadResult } from '../load/generator.ts';
import { runLoad } from '../load/run-load.ts';
import { startService } from '../load/service.ts';
import { median, quantile } from '../report/statistics.ts';
import { printTable } from '../report/table.ts';

/** The version of the peer that is installed. */
const VERSION = '4.3.1';

/**
 * Runs the benchmark and prints its table. `--seconds N` of a round, `--rounds N`, `--callers N`, `--tokens N`,
 * `--choices N`. The first time it installs the peer into a temporary folder.
 */
export async function run(options: Record<string, number>): Promise<void> {
  const { seconds = 8, rounds = 2, callers = 16, tokens = 58, choices = 8 } = options;
  const folder = installPeer();
  const service = await startService();
  const peers = await Promise.all(['cached', 'plain'].map((mode) => startPeer(folder, mode)));
  const targets = [
    { name: 'Umpire over REST', port: service.port },
    { name: `transformers.js ${VERSION}, choices cached`, port: peers[0]?.port ?? 0 },
    { name: `transformers.js ${VERSION}, choices encoded each time`, port: peers[1]?.port ?? 0 },
  ];
  const results = targets.map((): LoadResult[] => []);
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [i, { port }] of targets.entries()) {
        const plan = { port, protocol: 'rest', shape: { callers }, warmUp: 1, seconds, tokens, choices } as const;
        results[i]?.push(await runLoad(plan));
      }
    }
  } finally {
    for (const { child } of peers) child.kill('SIGKILL');
    await service.stop();
  }
  const rate = (list: readonly LoadResult[]): number =>
    median(list.map(({ latencies }) => latencies.ok.length / seconds));
  const tail = (list: readonly LoadResult[]): number =>
    quantile(
      list.flatMap(({ latencies }) => latencies.ok),
      0.99,
    );
  const [umpire = []] = results;
  printTable(
    [
      `${callers} callers, ${tokens} + 6 tokens, ${choices} choices`,
      'decisions/s',
      'Umpire is',
      'p99 ms',
      'Umpire is',
      'failed',
    ],
    targets.map(({ name }, i) => {
      const own = results[i] ?? [];
      const failed = own.reduce((sum, each) => sum + each.failed, 0);
      const faster = `${(rate(umpire) / rate(own)).toFixed(2)} ×`;
      return [
        name,
        rate(own).toFixed(0),
        i === 0 ? '' : faster,
        tail(own).toFixed(0),
        i === 0 ? '' : `${(tail(umpire) / tail(own)).toFixed(2)} ×`,
        String(failed),
      ];
    }),
  );
}

function installPeer(): string {
  const folder = join(tmpdir(), `umpire-bench-peer-${VERSION}`);
  if (!existsSync(join(folder, 'node_modules', '@huggingface', 'transformers'))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const spec = `@huggingface/transformers@${VERSION}`;
    execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder, spec], {
      stdio: 'inherit',
    });
  }
  const model = join(folder, 'models', 'minilm-l6');
  mkdirSync(join(model, 'onnx'), { recursive: true });
  copyFileSync(join(packageFolder, 'model.onnx'), join(model, 'onnx', 'model.onnx'));
  copyFileSync(join(packageFolder, 'tokenizer.json'), join(model, 'tokenizer.json'));
  writeFileSync(join(model, 'config.json'), '{ "model_type": "bert" }');
  writeFileSync(join(model, 'tokenizer_config.json'), '{ "tokenizer_class": "BertTokenizer" }');
  return folder;
}

async function startPeer(folder: string, mode: string) {
  const child = fork(fileURLToPath(new URL('./server.ts', import.meta.url)), [folder, mode], { execArgv: [] });
  const [port] = (await once(child, 'message')) as [number];
  return { child, port };
}
