/**
 * Space on the disk that is held back: given up when the disk is full, so that catalogs can still be deleted and keys
 * still be made and ended, and taken again once there is room.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';

/** More than the write-ahead log of any deletion or key command needs. */
const RESERVE_BYTES = 1024 * 1024;

/** Room on the disk that is held back, so that deletions still work when the disk is full. */
export interface Reserve {
  /** Holds the space back, if it is not held back yet and there is room. */
  keep(): void;
  /** Gives it up. Whether there was any. */
  giveUp(): boolean;
}

/** The reserve of a database: a file beside it. */
export function createReserve(database: string): Reserve {
  const file = `${database}-reserve`;
  const giveUp = (): boolean => {
    if (!existsSync(file)) return false;
    rmSync(file, { force: true });
    return true;
  };
  return {
    giveUp,
    keep() {
      if (existsSync(file)) return;
      try {
        writeFileSync(file, Buffer.alloc(RESERVE_BYTES, 1), { mode: 0o600 });
      } catch {
        // No room for it: half a reserve must not take what is left.
        giveUp();
      }
    },
  };
}
