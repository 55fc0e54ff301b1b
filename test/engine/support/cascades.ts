/** Packages of cascades that tests write. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Writes a cascade and returns its folder. */
export async function writeCascade(modelsDir: string, options: object, id = 'cascade'): Promise<string> {
  const folder = join(modelsDir, id, 'r1');
  await mkdir(folder, { recursive: true });
  const common = { schema: 1, id, revision: 'r1', family: 'cascade', owned_by: 'tests', status: 'ready' };
  await writeFile(join(folder, 'model.json'), JSON.stringify({ ...common, options }));
  return folder;
}
