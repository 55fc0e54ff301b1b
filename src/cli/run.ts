/** Finds the command that the arguments name and runs it. */
import { calibrateCommand } from './calibrate.ts';
import { catalogCommands } from './catalogs.ts';
import { type Command, type Terminal, UsageError } from './command.ts';
import { conformanceCommand } from './conformance.ts';
import { keyCommands } from './keys.ts';
import { mockCommand } from './mock.ts';
import { modelCommands } from './models.ts';
import { keyMovingCommands } from './moving-keys.ts';

/** Every command of `umpire`. */
export const commands: readonly Command[] = [
  ...keyCommands,
  ...keyMovingCommands,
  ...catalogCommands,
  calibrateCommand,
  ...modelCommands,
  mockCommand,
  conformanceCommand,
];

/** Runs one command. Resolves to the exit status: 0 done, 1 failed, 2 bad arguments. */
export async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  if (args.length === 0 || args.includes('--help') || args.includes('-h') || args[0] === 'help') {
    printHelp(terminal.out);
    return 0;
  }
  const command = commands.find(({ name }) => name === args.slice(0, name.split(' ').length).join(' '));
  if (command === undefined) {
    terminal.err(`umpire: there is no command '${args.slice(0, 2).join(' ')}'`);
    printHelp(terminal.err);
    return 2;
  }
  const { name } = command;
  try {
    await command.run(args.slice(name.split(' ').length), terminal);
    return 0;
  } catch (error) {
    terminal.err(`umpire ${name}: ${error instanceof Error ? error.message : String(error)}`);
    if (!(error instanceof UsageError)) return 1;
    terminal.err(`usage: umpire ${name} ${command.usage}`);
    return 2;
  }
}

function printHelp(print: (line: string) => void): void {
  print('usage: umpire COMMAND, in the environment of the server (REDIS_URL or UMPIRE_DATA_DIR, …)');
  for (const { name, usage, summary } of commands) {
    print(`  umpire ${name} ${usage}`.trimEnd());
    print(`      ${summary}`);
  }
}
