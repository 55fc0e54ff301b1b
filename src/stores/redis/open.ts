/**
 * Which of Redis's three shapes the settings name, and how a connection to it is opened. Only the shape that is
 * used is loaded.
 */
import type { RedisSettings } from '../settings.ts';
import { addressOf, type OpenRedis, openNode } from './connection.ts';

/** How to open what the settings name. */
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
