/** Tells the operator that the models do not fit into an engine process: once for all the processes of a group. */
import type { EngineSettings } from '../options.ts';

const MIB = 2 ** 20;

/**
 * Takes note of the resident bytes of an engine that has just loaded its models. Warns if they are above the limit, and
 * again only after all engines were below it.
 */
export function createMemoryWarning({
  engineMemoryBytes,
  logger,
}: Pick<EngineSettings, 'engineMemoryBytes' | 'logger'>): (engine: string, loaded: number) => void {
  const above = new Set<string>();
  return (engine, loaded) => {
    if (loaded <= engineMemoryBytes) {
      above.delete(engine);
      return;
    }
    const isNews = above.size === 0;
    above.add(engine);
    if (!isNews) return;
    const [takes, limit] = [Math.ceil(loaded / MIB), Math.floor(engineMemoryBytes / MIB)];
    logger.warn(
      { engine, resident: loaded, limit: engineMemoryBytes },
      `the models alone take ${takes} MiB, more than the ${limit} MiB of UMPIRE_ENGINE_MEMORY: ` +
        'raise it, or serve fewer models with UMPIRE_MODELS',
    );
  };
}
