/** `umpire models …`: what is in the folder of model packages. */
import type { Command } from './command.ts';

/** The commands. */
export const modelCommands: readonly Command[] = [];
