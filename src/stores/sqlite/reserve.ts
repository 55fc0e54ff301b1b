/**
 * Space on the disk that is reserved: given up when the disk is full, so that catalogs can still be deleted and keys
 * still be created and ended, and reserved again once there is room.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs';

/** Bytes of the reserve: more than the write-ahead log of any deletion or key command needs. */
const RESERVE_BYTES = 1024 * 1024;

/** The reserved space of one database. */
export interface Reserve {
  /** Reserves the space, if it is not reserved yet and there is room. */
  keep(): void;
  /** Gives the space up. Returns whether there was any. */
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
        // There is not enough room, and half a reserve must not take what is left.
        giveUp();
      }
    },
  };
}
