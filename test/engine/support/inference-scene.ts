/** An engine with one model, `remote`, whose server a test has in its hands. */
import type { ExecutionContext } from 'ava';
import { startEngine, type TestEngine } from './engine.ts';
import { writeInferencePackage } from './inference-packages.ts';
import { type InferenceServer, type ServedModel, startInferenceServer } from './inference-server.ts';
import { encoderGraph, modelsFolder } from './packages.ts';

/** The engine and the server. */
export interface Scene {
  readonly engine: TestEngine;
  readonly server: InferenceServer;
  readonly modelsDir: string;
  /** The model's status. */
  status(): string | undefined;
}

/** Starts both, with these options of the package; they end with the test. */
export async function startScene(
  t: ExecutionContext<unknown>,
  options: Readonly<Record<string, unknown>> = {},
  {
    until = 'ready',
    served = {},
  }: { readonly until?: 'ready' | 'started'; readonly served?: Partial<ServedModel> } = {},
): Promise<Scene> {
  const server = await startInferenceServer(t, { graph: encoderGraph(), output: 'embedding', ...served });
  const modelsDir = await modelsFolder(t);
  await writeInferencePackage(modelsDir, server.address, { options });
  const engine = await startEngine(t, { modelsDir, largestRequestMs: 600_000 }, until);
  return { engine, server, modelsDir, status: () => engine.models()[0]?.status };
}

/** What was logged under a message, as JSON. */
export function problemsIn({ log }: TestEngine, message: string): string {
  return JSON.stringify(log.filter((line) => line.message === message).map(({ fields }) => fields));
}
