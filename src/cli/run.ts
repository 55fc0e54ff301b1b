/** Finds the command that the arguments name and runs it. */
import { nearest } from '../domain/nearest.ts';
import { messageOf } from '../engine/errors.ts';
import { VERSION } from '../version.ts';
import { visible } from '../visible.ts';
import { BACKUP_COMMANDS } from './backup.ts';
import { BRIDGE_COMMAND } from './bridge.ts';
import { CATALOG_DESCRIPTION_COMMANDS } from './catalogs/catalog-descriptions.ts';
import { CATALOG_SHOW_COMMAND } from './catalogs/catalog-show.ts';
import { CATALOG_COMMANDS } from './catalogs/catalogs.ts';
import { type Command, Interrupted, type Terminal, UsageError } from './command.ts';
import { CONFORMANCE_COMMAND } from './conformance.ts';
import { ASK_COMMAND } from './decide/ask.ts';
import { DECIDE_COMMAND } from './decide/decide.ts';
import { overview, page, usageOf } from './help.ts';
import { KEY_COMMANDS } from './keys/keys.ts';
import { EVALUATE_COMMAND } from './learn/evaluate.ts';
import { LEARN_COMMAND } from './learn/learn.ts';
import { TEACH_COMMAND } from './learn/teach.ts';
import { MCP_COMMAND } from './mcp.ts';
import { MOCK_COMMAND } from './mock.ts';
import { ADD_COMMAND } from './models/adding.ts';
import { MODEL_COMMANDS } from './models/models.ts';
import { PACK_COMMAND } from './models/packing.ts';
import { REVIEW_COMMAND } from './review/review.ts';

/** Every command of `umpire`. */
export const COMMANDS: readonly Command[] = [
  ...KEY_COMMANDS,
  ...CATALOG_COMMANDS,
  CATALOG_SHOW_COMMAND,
  ...CATALOG_DESCRIPTION_COMMANDS,
  LEARN_COMMAND,
  TEACH_COMMAND,
  REVIEW_COMMAND,
  EVALUATE_COMMAND,
  ...BACKUP_COMMANDS,
  ...MODEL_COMMANDS,
  PACK_COMMAND,
  ADD_COMMAND,
  ASK_COMMAND,
  DECIDE_COMMAND,
  BRIDGE_COMMAND,
  MCP_COMMAND,
  MOCK_COMMAND,
  CONFORMANCE_COMMAND,
];

/** Runs one command. Resolves to the exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted. */
export async function runCommand(args: readonly string[], plain: Terminal): Promise<number> {
  // The one place where lines leave for the terminal: whatever callers chose of them, it cannot act there.
  const terminal: Terminal = {
    ...plain,
    out: (line) => plain.out(visible(line)),
    err: (line) => plain.err(visible(line)),
  };
  if (args[0] === '--version' || args[0] === 'version') {
    terminal.out(`umpire ${VERSION}, Node ${process.versions.node}`);
    return 0;
  }
  const asksHelp = args[0] === 'help' || args.includes('--help') || args.includes('-h');
  const words = args.filter((arg, place) => arg !== '--help' && arg !== '-h' && !(place === 0 && arg === 'help'));
  const command = COMMANDS.find(({ name }) => name === words.slice(0, name.split(' ').length).join(' '));
  if (command === undefined) {
    if (words.length > 0 && !(asksHelp && words[0]?.startsWith('-'))) return unknown(words, asksHelp, terminal);
    for (const line of overview(COMMANDS)) terminal.out(line);
    return 0;
  }
  if (asksHelp) {
    for (const line of page(command)) terminal.out(line);
    return 0;
  }
  const { name } = command;
  try {
    await command.run(args.slice(name.split(' ').length), terminal);
    return 0;
  } catch (error) {
    for (const line of `umpire ${name}: ${messageOf(error)}`.split('\n')) terminal.err(line);
    if (error instanceof Interrupted) return 130;
    if (!(error instanceof UsageError)) return 1;
    terminal.err(`usage: umpire ${name} ${usageOf(command)}`);
    terminal.err(`'umpire help ${name}' says what these are`);
    return 2;
  }
}

/** Answers words that are not a command: a group such as `keys` with its commands, other words with a similar one. */
function unknown(words: readonly string[], asksHelp: boolean, terminal: Terminal): number {
  const group = COMMANDS.filter(({ name }) => name.startsWith(`${words[0]} `));
  if (words.length === 1 && group.length > 0) {
    const print = asksHelp ? terminal.out : terminal.err;
    if (!asksHelp) print(`umpire: '${words[0]}' is not a command by itself; these are:`);
    for (const command of group) print(`  umpire ${command.name} ${usageOf(command)}`.trimEnd());
    return asksHelp ? 0 : 2;
  }
  const asked = words.slice(0, group.length > 0 ? 2 : 1).join(' ');
  const near = nearest(
    asked,
    COMMANDS.map(({ name }) => name),
  );
  const hint = near === undefined ? "'umpire help' lists them" : `did you mean 'umpire ${near}'?`;
  terminal.err(`umpire: there is no command '${asked}'; ${hint}`);
  return 2;
}
