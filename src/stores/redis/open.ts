/**
 * Chooses how connections are opened, by which of Redis's three shapes the settings name. Only the code of that shape
 * is loaded.
 */
import type { RedisSettings } from '../settings.ts';
import { addressOf, type OpenRedis, openNode } from './connection.ts';

/** The function that opens connections to the Redis that the settings name. */
export async function openerOf(settings: RedisSettings): Promise<OpenRedis> {
  const { url, topology } = settings;
  switch (topology.kind) {
    case 'plain':
      return (onLost) => openNode(url, addressOf(url), onLost);
    case 'sentinel': {
      const { openSentinel } = await import('./sentinel.ts');
      return (onLost) => openSentinel(url, topology, onLost);
    }
    case 'cluster': {
      const { openCluster } = await import('./cluster.ts');
      return () => openCluster(url, topology.nodes);
    }
  }
}
