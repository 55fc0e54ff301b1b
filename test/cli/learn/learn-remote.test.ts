/** Catalogs of models at servers learn: by vectors where the server gives them, by what they say otherwise. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type ServedDialect, startHttpModelServer } from '../../engine/support/http-models/server.ts';
import { modelsFolder } from '../../engine/support/packages.ts';
import {
  rerankOptions,
  servedEncoder,
  servedReranker,
  TEXT_EMBEDDING_OPTIONS,
  writeRemotePackage,
} from '../../engine/support/remote-packages.ts';
import { decide, send } from '../../support/http.ts';
import { startService } from '../../support/service.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { linesOf, runUmpire } from '../../support/terminal.ts';

const TOKEN = 'UMPIRE_TOKEN_LEARNING';
const SIXTY = Array.from({ length: 60 }, (_, i) => i);
/** Another choice than the one whose letters a text has: only examples can say so. */
const TAUGHT = SIXTY.map((i) => ({
  input: `${['abc', 'mno', 'xyz'][i % 3]} ${'defghijkl'.slice(i % 7)} ${i}`,
  label: ['mno', 'xyz', 'abc'][i % 3],
}));
/** The model says zzz to all; what is asked is mostly abc. */
const SKEWED = SIXTY.map((i) => ({
  input: `${'bcdef'.slice(i % 4)} ${i}`,
  label: i % 10 < 7 ? 'abc' : i % 10 < 9 ? 'zzz' : 'mno',
}));

const CASES: readonly (readonly [
  name: string,
  served: () => Promise<ServedDialect>,
  options: Readonly<Record<string, unknown>>,
  choices: readonly string[],
  examples: readonly { readonly input: string; readonly label: string | undefined }[],
  said: RegExp,
])[] = [
  [
    'an encoder',
    () => servedEncoder(),
    TEXT_EMBEDDING_OPTIONS,
    ['xyz', 'abc', 'mno'],
    TAUGHT,
    /learned weights for remote@r1/,
  ],
  [
    'a reranker',
    () => servedReranker('llama.cpp'),
    rerankOptions('llama.cpp'),
    ['xyz', 'abc', 'mno'],
    TAUGHT,
    /learned temperature for remote@r1/,
  ],
  [
    'a reranker, from examples as they come',
    () => servedReranker('vllm'),
    rerankOptions('vllm'),
    ['abc', 'mno', 'zzz'],
    SKEWED,
    / {2}bias .*: taken\n(?!.* {2}weights ).*learned bias for remote@r1/s,
  ],
];
for (const [name, served, options, choices, examples, said] of CASES) {
  test.serial(`${name}, whose token is in the environment`, async (t) => {
    t.timeout(180_000);
    process.env[TOKEN] = 'right-one';
    const server = await startHttpModelServer(t, await served());
    server.behaviour.token = 'right-one';
    const modelsDir = await modelsFolder(t);
    const canary = { input: 'zzz', instruction: 'abc', choices: ['a', 'zz'], choice: 'zz' };
    await writeRemotePackage(modelsDir, server.address, {
      options: { ...options, server: { token_env: TOKEN } },
      manifest: { canary },
    });
    const data = temporaryFolder();
    const env = { UMPIRE_DATA_DIR: data, UMPIRE_MODELS_DIR: modelsDir };
    const service = await startService(env);
    t.teardown(async () => {
      await service.stop();
      delete process.env[TOKEN];
    });
    const umpire = (...args: string[]) => runUmpire(args, { env });
    const key = linesOf((await umpire('keys', 'create', '--owner', 'acme')).out).at(-1) ?? '';
    const headers = { authorization: `Bearer ${key}` };
    const catalog = JSON.stringify({ id: 'letters', model: 'remote', choices });
    const made = await send(service.port, { path: '/v1/catalogs', headers, body: catalog });
    t.is(made.status, 201, made.text);
    const file = join(data, 'labels.jsonl');
    writeFileSync(file, examples.map((each) => `${JSON.stringify({ ...each, instruction: 'which' })}\n`).join(''));
    const taught = await umpire('learn', '--catalog', 'letters', '--owner', 'acme', file);
    t.regex(taught.out + taught.err, said);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const asked = { model: 'remote', input: examples[0]?.input, instruction: 'which', catalog: 'letters' };
    const decided = await decide(service.port, asked, headers);
    t.is(decided.status, 200);
    t.is(decided.headers['x-umpire-learned'] !== undefined, taught.status === 0);
  });
}
