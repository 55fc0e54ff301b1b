/** Scans the names of keys in Redis, for the operator's commands. */
import type { RedisConnection, RedisNodeConnection } from './connection.ts';

/** Every name that matches the pattern, from all servers; of one server, each name once. */
export async function* scanNames(connection: RedisConnection, pattern: string): AsyncGenerator<string> {
  for (const node of await connection.nodes()) yield* scanNode(node, pattern);
}

async function* scanNode(node: RedisNodeConnection, pattern: string): AsyncGenerator<string> {
  const seen = new Set<string>();
  let cursor = '0';
  do {
    const reply = await node.send(['SCAN', cursor, 'MATCH', pattern, 'COUNT', '1000']);
    const [next, names] = reply as [string, readonly string[]];
    for (const name of names) {
      // SCAN may return a name more than once.
      if (!seen.has(name)) yield name;
      seen.add(name);
    }
    cursor = next;
  } while (cursor !== '0');
}
