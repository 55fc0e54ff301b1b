/**
 * Logs what the bounds did, at most once a second: in a flood, a line for each event would add to what it costs.
 */
import type { Logger } from '../../logger.ts';
import type { HoldingTally } from './tally.ts';

const INTERVAL = 1000;

/** Logs by how much each count of `tally` has grown since the last line, if any has. */
export function createReports(logger: Logger, tally: HoldingTally): (now: number) => void {
  let last = flat(tally);
  let next = 0;
  return (now) => {
    if (now < next) return;
    const current = flat(tally);
    const grown = Object.entries(current).flatMap(([name, count]) => {
      const more = count - (last[name] as number);
      return more > 0 ? [[name, more] as const] : [];
    });
    last = current;
    if (grown.length === 0) return;
    next = now + INTERVAL;
    logger.warn(Object.fromEntries(grown), 'bounds were reached: connections or requests were given up or refused');
  };
}

/** The counts by their names, but for those that are no sign of trouble by themselves. */
function flat({
  refused,
  evicted,
  givenUp,
  beyondRate,
  blocked,
  watchesEnded,
}: HoldingTally): Readonly<Record<string, number>> {
  return {
    refusedByAddress: refused.address,
    refusedByRate: refused.rate,
    refusedFull: refused.full,
    evicted,
    unread: givenUp.unread,
    unfinished: givenUp.unfinished,
    displaced: givenUp.displaced,
    beyondRate,
    blocked,
    watchesDisplaced: watchesEnded.displaced,
  };
}
