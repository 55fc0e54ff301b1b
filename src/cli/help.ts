/**
 * The help pages: one that lists the commands, and one for each command. No line is wider than a terminal of 80
 * columns.
 */
import { SETTINGS } from '../config.ts';
import type { Command, Option } from './command.ts';

/** Columns of a help page: those of the narrowest usual terminal. */
const WIDTH = 80;

/** The environment variables that commands read and the server does not. */
const KEYS_OF_CALLERS: Readonly<Record<string, string>> = {
  UMPIRE_KEY: 'An API key',
  UMPIRE_OTHER_KEY: 'An API key of another owner',
};

/** The groups of the list of commands, each with a pattern of its commands' names. */
const GROUPS: readonly (readonly [title: string, prefix: RegExp])[] = [
  ['Keys', /^keys /],
  ['Catalogs', /^catalogs |^learn$|^teach$|^review$|^evaluate$/],
  ['The store', /^backup$|^restore$/],
  ['Models', /^models /],
  ['For those who call a service', /^ask$|^decide$|^bridge$|^mcp$|^mock$|^conformance$/],
];

/** The page that lists the commands. */
export function overview(commands: readonly Command[]): readonly string[] {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const groups = GROUPS.flatMap(([title, prefix]) => [
    '',
    title,
    ...commands
      .filter(({ name }) => prefix.test(name))
      .flatMap(({ name, summary }) => hanging(`  ${name.padEnd(width)}  `, summary)),
  ]);
  return [
    'usage: umpire COMMAND [ARGUMENT]…',
    '       umpire help COMMAND, or umpire COMMAND --help',
    '       umpire --version',
    ...groups,
    '',
    ...wrap(
      'Commands that use the store find it as the server does: by REDIS_URL, or UMPIRE_DATA_DIR. They work beside a running server or without one, and say on standard error which store it is.',
    ),
    'Exit status: 0 done, 1 failed, 2 bad arguments, 130 interrupted with Ctrl-C.',
  ];
}

/** The lines of the help for one command. */
export function page(command: Command): readonly string[] {
  const { name, summary, positionals = [], options, notes = [], environment, failure } = command;
  const section = (title: string, rows: readonly (readonly [string, string])[]): readonly string[] => {
    if (rows.length === 0) return [];
    const width = Math.min(26, Math.max(...rows.map(([left]) => left.length)));
    const lines = rows.flatMap(([left, right]) =>
      left.length > width
        ? [`  ${left}`, ...hanging(' '.repeat(width + 4), right)]
        : hanging(`  ${left.padEnd(width)}  `, right),
    );
    return ['', title, ...lines];
  };
  return [
    ...hanging(`usage: umpire ${name} `, usageOf(command)),
    '',
    ...wrap(`${summary[0]?.toUpperCase()}${summary.slice(1)}.`),
    ...notes.flatMap((note) => ['', ...wrap(note)]),
    ...section('Arguments', positionals),
    ...section('Options', Object.entries(options).map(optionRow)),
    ...section('Environment', environment.map(environmentRow)),
    '',
    'Exit status',
    ...hanging('  0 ', 'done'),
    ...hanging('  1 ', failure === undefined ? 'failed' : `${failure}, or failed`),
    ...hanging('  2 ', 'bad arguments'),
  ];
}

/** The arguments of a command: `[OPTION]…` in its usage stands for all options that this does not name. */
export function usageOf({ usage, options }: Command): string {
  const others = Object.entries(options).filter(([name]) => !new RegExp(`--${name}(?![\\w-])`).test(usage));
  const shown = others.map(([name, { value, multiple }]) => {
    return `[--${name}${value === undefined ? '' : ` ${value}`}]${multiple === true ? '…' : ''}`;
  });
  return usage.replace('[OPTION]…', shown.join(' '));
}

function optionRow([name, { value, meaning, otherwise, multiple }]: readonly [string, Option]): [string, string] {
  const more = [
    ...(otherwise === undefined ? [] : [`default: ${otherwise}`]),
    ...(multiple ? ['may be repeated'] : []),
  ];
  return [
    `--${name}${value === undefined ? '' : ` ${value}`}`,
    more.length === 0 ? meaning : `${meaning} (${more.join('; ')})`,
  ];
}

function environmentRow(name: string): [string, string] {
  const setting = SETTINGS.find((each) => each.name === name);
  const meaning = setting?.meaning ?? KEYS_OF_CALLERS[name];
  if (meaning === undefined) throw new Error(`there is no setting ${name}`);
  return [name, setting?.default ? `${meaning} (default: ${setting.default})` : meaning];
}

/** A text after a head, its further lines indented to begin below its first. */
function hanging(head: string, text: string): readonly string[] {
  const [first = '', ...rest] = wrap(text, WIDTH - head.length);
  return [`${head}${first}`.trimEnd(), ...rest.map((line) => `${' '.repeat(head.length)}${line}`)];
}

/** Lines that break at spaces; a word that is too long has a line of its own. */
function wrap(text: string, width = WIDTH): readonly string[] {
  return text.match(new RegExp(`\\S{${width},}|\\S.{0,${width - 1}}(?= |$)`, 'g')) ?? [''];
}
