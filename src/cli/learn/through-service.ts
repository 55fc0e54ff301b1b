/** Has a running service decide labelled examples, for those who have a key and no shell on the server. */
import type { JudgedAnswer } from '../../learning/quality.ts';
import type { CatalogRecord } from '../../stores/catalog-store.ts';
import { Interrupted, type Terminal } from '../command.ts';
import { createDecidingClient, nameOf } from '../decide/deciding-client.ts';
import { inOrder } from '../decide/lines.ts';
import { createInsistence, createPace } from '../decide/pace.ts';
import { type Example, type ExampleFile, type LineProblem, problemLines } from './examples.ts';

/** A service, and the key of whoever asks it. */
export interface Service {
  readonly base: URL;
  readonly key: string | undefined;
}

/** Requests in progress at one time, and milliseconds without an answer after which the command gives up. */
const [AT_ONCE, PATIENCE_MS] = [64, 120_000];

/** A catalog of the owner of the key. @throws Error if the service does not show it. */
export async function catalogAt({ base, key }: Service, id: string): Promise<CatalogRecord> {
  const url = new URL(`v1/catalogs/${encodeURIComponent(id)}`, base.href.endsWith('/') ? base : `${base.href}/`);
  const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const response = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(PATIENCE_MS) });
  const body = (await response.json().catch(() => ({}))) as Partial<CatalogRecord> & {
    readonly error?: { readonly code?: unknown; readonly message?: unknown };
  };
  const { code = `http_${response.status}`, message = 'what answers there is not Umpire' } = body.error ?? {};
  if (response.status !== 200) throw new Error(`${code}: ${message}`);
  const { model, choices, version = '', visibility = '' } = body;
  if (typeof model !== 'string' || !Array.isArray(choices)) throw new Error(String(message));
  return { id, model, choices, version, visibility, createdAt: '' };
}

/**
 * The answers to examples, in their order. `asked`: choices or a catalog. Throws Error with a line for each example
 * that was refused, or if the model changed meanwhile.
 */
export async function answersThrough(
  { base, key }: Service,
  asked:
    | { readonly model: string; readonly choices: readonly string[] }
    | { readonly model: string; readonly catalog: string },
  { examples, problems }: Pick<ExampleFile, 'examples' | 'problems'>,
  terminal: Terminal,
): Promise<{ readonly name: string; readonly answers: readonly JudgedAnswer[] }> {
  if (problems.length > 0) throw new Error(problemLines(problems).join('\n'));
  const stop = new AbortController();
  void terminal.interrupted().then(() => stop.abort(new Interrupted('interrupted')));
  const pace = createPace(AT_ONCE, stop.signal);
  const insist = createInsistence(createDecidingClient(base, key), pace, PATIENCE_MS, stop.signal);
  const settle = async ({ line, input, instruction, label }: Example, place: number) => {
    return { line, label, outcome: await insist({ ...asked, input, instruction }, place) };
  };
  const answers: JudgedAnswer[] = [];
  const refused: LineProblem[] = [];
  const names = new Set<string>();
  const ahead = { things: 2 * AT_ONCE, weight: Number.POSITIVE_INFINITY, weigh: () => 0 };
  async function* source(): AsyncGenerator<Example> {
    yield* examples;
  }
  try {
    for await (const { line, label, outcome } of inOrder(source(), settle, ahead)) {
      if (outcome.kind === 'refused') {
        refused.push({ line, problem: `${outcome.refusal.code}: ${outcome.refusal.message}` });
        continue;
      }
      const { choice, confidence, probabilities } = outcome.answer;
      names.add(nameOf(outcome.answer));
      answers.push({ label, choice, confidence, ofLabel: probabilities[label] ?? 0 });
    }
  } finally {
    stop.abort(new Interrupted('over'));
  }
  if (refused.length > 0) throw new Error(problemLines(refused).join('\n'));
  if (names.size > 1) throw new Error(`what decides changed while this ran (${[...names].join('; ')}): run it again`);
  return { name: [...names].join(), answers };
}
