/** `umpire conformance`: tries the contract's promises on any deployment, from outside. */
import { readFile } from 'node:fs/promises';
import type { Outcome } from '../conformance/run.ts';
import { readArguments } from './arguments.ts';
import { type Command, type Terminal, UsageError } from './command.ts';

/** The command. */
export const conformanceCommand: Command = {
  name: 'conformance',
  usage: '--url URL [--grpc URL] [--model ID] [--ca FILE | --insecure] [--skip PREFIX]… [--json] [--list]',
  summary: 'tries what the contract promises on a deployment, also through proxies; status 1 if a promise is broken',
  async run(args, terminal) {
    const text = { type: 'string' } as const;
    const { values } = readArguments(args, {
      url: text,
      grpc: text,
      model: text,
      ca: text,
      insecure: { type: 'boolean' },
      skip: { type: 'string', multiple: true },
      json: { type: 'boolean' },
      list: { type: 'boolean' },
    });
    const { checks } = await import('../conformance/checks.ts');
    if (values.list === true) {
      for (const { id, section, promise, tried } of checks)
        terminal.out(`${id} (${section}): ${promise}. Tried: ${tried}`);
      return;
    }
    const { createCaller } = await import('../conformance/caller.ts');
    const { createKit } = await import('../conformance/kit.ts');
    const { runChecks } = await import('../conformance/run.ts');
    const url = urlFrom('--url', values.url ?? '');
    const caller = createCaller({
      url,
      http2Url: values.grpc === undefined ? undefined : urlFrom('--grpc', values.grpc),
      ca: values.ca === undefined ? undefined : await readFile(values.ca, 'utf8'),
      insecure: values.insecure === true,
    });
    const { UMPIRE_KEY: key, UMPIRE_OTHER_KEY: otherKey } = terminal.env;
    const kit = createKit({ caller, key: key || undefined, otherKey: otherKey || undefined, model: values.model });
    try {
      // Where nobody answers at all, one line says so, not a hundred.
      await caller.http1({ path: '/health/live', once: true });
      if (values.model !== undefined) await kit.model();
      const report = values.json === true ? () => {} : (outcome: Outcome) => show(outcome, terminal);
      const outcomes = await runChecks(checks, kit, { skip: values.skip ?? [], report });
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
  out(`    ${outcome.reason}`);
}

function plain(outcome: Outcome): object {
  const { id, section, promise, tried } = outcome.check;
  return {
    id,
    section,
    promise,
    tried,
    outcome: outcome.kind,
    ...('reason' in outcome ? { reason: outcome.reason } : {}),
  };
}

function urlFrom(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${name}: must be http://… or https://…`);
  return url;
}
