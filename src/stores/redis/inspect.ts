/**
 * Reads the settings of Redis, once a connection is open, and warns where with these catalogs and API keys could be
 * lost.
 */
import type { StoreLog } from '../stores.ts';
import type { RedisConnection } from './connection.ts';

/** The settings of a server that decide whether data can be lost; undefined where the server does not tell them. */
export interface RedisDurability {
  readonly evictionPolicy: string | undefined;
  readonly appendOnly: boolean | undefined;
  readonly appendFsync: string | undefined;
  /** The `save` setting; empty means no snapshots. */
  readonly snapshots: string | undefined;
}

/** A warning, with a remedy, for each way in which data could be lost. */
export function durabilityWarnings(found: RedisDurability): readonly string[] {
  const warnings: string[] = [];
  if (found.evictionPolicy?.startsWith('allkeys-') === true) {
    warnings.push(
      `Redis evicts keys when its memory is full (maxmemory-policy ${found.evictionPolicy}): catalogs and API keys could be lost. Set it to noeviction.`,
    );
  }
  if (found.appendOnly === false && found.snapshots === '') {
    warnings.push(
      'Redis keeps nothing on disk: catalogs and API keys are lost when it restarts. Set appendonly to yes.',
    );
  } else if (found.appendOnly === false) {
    warnings.push(
      'Redis only takes snapshots: a crash loses the catalogs and API keys of the last minutes. Set appendonly to yes.',
    );
  } else if (found.appendOnly === true && found.appendFsync === 'no') {
    warnings.push(
      'Redis leaves it to the system when to write to disk: a crash can lose recent catalogs. Set appendfsync to everysec or always.',
    );
  }
  return warnings;
}

/**
 * Inspects every server and logs the warnings. Never rejects; a server that does not tell its settings gets no warning.
 */
export async function inspectDurability(connection: RedisConnection, log: StoreLog): Promise<void> {
  try {
    const warnings = new Set<string>();
    for (const node of await connection.nodes()) {
      const [memory, persistence, append, save] = await Promise.all([
        node.send(['INFO', 'memory']).catch(() => ''),
        node.send(['INFO', 'persistence']).catch(() => ''),
        // Hosted servers often refuse CONFIG; INFO has the most important part.
        node.send(['CONFIG', 'GET', 'appendfsync']).catch(() => undefined),
        node.send(['CONFIG', 'GET', 'save']).catch(() => undefined),
      ]);
      const aof = field(persistence, 'aof_enabled');
      for (const warning of durabilityWarnings({
        evictionPolicy: field(memory, 'maxmemory_policy'),
        appendOnly: aof === undefined ? undefined : aof === '1',
        appendFsync: setting(append, 'appendfsync'),
        snapshots: setting(save, 'save'),
      })) {
        warnings.add(warning);
      }
    }
    for (const warning of warnings) log.warn({ store: 'redis' }, warning);
  } catch (error) {
    log.info({ store: 'redis', err: error }, 'the settings of Redis could not be looked at');
  }
}

function field(info: unknown, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(String(info))?.[1];
}

/**
 * A value in the reply to CONFIG GET: a map, an object, or a list of names and values in turn, depending on the client.
 */
function setting(reply: unknown, name: string): string | undefined {
  if (reply instanceof Map) return reply.get(name);
  if (Array.isArray(reply)) return reply[0] === name ? String(reply[1]) : undefined;
  return (reply as Record<string, string> | undefined)?.[name];
}
