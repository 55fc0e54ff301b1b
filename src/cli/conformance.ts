/** `umpire conformance`: tests a deployment against the contract's promises, from outside. */
import { readFile } from 'node:fs/promises';
import type { Outcome } from '../../conformance/run.ts';
import { readArguments, urlFrom } from './arguments.ts';
import { type Command, flag, option, repeatable, type Terminal, UsageError } from './command.ts';

const OPTIONS = {
  url: option('URL', 'where the service is, such as https://decide.example; needed'),
  grpc: option('URL', 'where it speaks HTTP/2, if elsewhere', 'as --url'),
  model: option('ID', 'the model to decide with', 'the first that is ready'),
  ca: option('FILE', 'a certificate authority of your own, PEM'),
  insecure: flag('accepts any certificate'),
  skip: repeatable('PREFIX', 'leaves out checks whose names begin so'),
  json: flag('every check with its outcome, as one line of JSON'),
  list: flag('shows what each check promises and tries nothing; with --json for programs'),
} as const;

/** The command `umpire conformance`. */
export const CONFORMANCE_COMMAND: Command = {
  name: 'conformance',
  usage: '--url URL [--ca FILE | --insecure] [OPTION]…',
  summary: 'tries what the contract promises on a deployment, also through proxies',
  options: OPTIONS,
  environment: ['UMPIRE_KEY', 'UMPIRE_OTHER_KEY'],
  failure: 'a promise is broken',
  async run(args, terminal) {
    const { values } = readArguments(args, OPTIONS);
    const { CHECKS } = await import('../../conformance/checks.ts');
    if (values.list === true) {
      const list = CHECKS.map(({ id, section, promise, tried }) => ({ id, section, promise, tried }));
      if (values.json === true) terminal.out(JSON.stringify(list));
      else
        for (const { id, section, promise, tried } of list)
          terminal.out(`${id} (${section}): ${promise}. Tried: ${tried}`);
      return;
    }
    const { createCaller } = await import('../../conformance/caller.ts');
    const { createKit } = await import('../../conformance/kit.ts');
    const { runChecks } = await import('../../conformance/run.ts');
    if (values.url === undefined) throw new UsageError('--url URL is needed');
    const url = urlFrom('--url', values.url);
    const caller = createCaller({
      url,
      http2Url: values.grpc === undefined ? undefined : urlFrom('--grpc', values.grpc),
      ca: values.ca === undefined ? undefined : await readFile(values.ca, 'utf8'),
      insecure: values.insecure === true,
    });
    const { UMPIRE_KEY: key, UMPIRE_OTHER_KEY: otherKey } = terminal.env;
    const kit = createKit({ caller, key: key || undefined, otherKey: otherKey || undefined, model: values.model });
    try {
      // If nobody answers at all, this fails with one line, and not each of a hundred checks with its own.
      await caller.http1({ path: '/health/live', once: true });
      if (values.model !== undefined) await kit.model();
      const report = values.json === true ? () => {} : (outcome: Outcome) => show(outcome, terminal);
      const outcomes = await runChecks(CHECKS, kit, { skip: values.skip ?? [], report });
      if (values.json === true) terminal.out(JSON.stringify({ url: url.href, checks: outcomes.map(plain) }));
      const count = (kind: Outcome['kind']): number => outcomes.filter((outcome) => outcome.kind === kind).length;
      const sum = `${count('passed')} passed, ${count('failed')} failed, ${count('skipped')} skipped`;
      if (count('failed') > 0) throw new Error(sum);
      if (values.json !== true) terminal.out(sum);
    } finally {
      caller.close();
    }
  },
};

function show(outcome: Outcome, { out }: Terminal): void {
  if (outcome.kind === 'passed') return;
  const { id, section, promise, tried } = outcome.check;
  if (outcome.kind === 'skipped') {
    out(`skipped: ${id}: ${outcome.reason}`);
    return;
  }
  out(`failed: ${id} (${section}): ${promise}`);
  out(`    tried: ${tried}`);
  for (const line of outcome.reason.split('\n')) out(`    ${line}`);
}

function plain({ kind, check, ...more }: Outcome): object {
  const { id, section, promise, tried } = check;
  return { id, section, promise, tried, outcome: kind, ...more };
}
