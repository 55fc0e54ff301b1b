/**
 * Surveys a server of the dialect `system-one`: where it listens, which of the two bodies it reads, how many choices it
 * takes, and what it does with long texts.
 */
import { CallFailed } from '../../families/remote/call-failed.ts';
import { bodyOf, probabilitiesIn, type SystemOneVariant } from '../../families/system-one/messages.ts';
import type { Asking, Reply } from './asking.ts';
import { askFacts, modelOf, tokensOf } from './facts.ts';
import { NotSuchADialect, ownText, readReply, type Survey, type SurveyRequest } from './findings.ts';
import { type LongAnswer, SAYINGS, tryLongTexts } from './long-texts.ts';

/** Where requests go, and how they are written. */
interface Form {
  readonly path: string;
  readonly variant: SystemOneVariant;
}

const USUAL: readonly Form[] = [
  { path: '/v1/systemone', variant: 'systemone' },
  { path: '/v1/decisions', variant: 'decisions' },
];
/** The numbers of choices that are tried: what servers are known to take, and less. */
const CAPS = [300, 255, 128, 64, 52, 26, 24, 16, 8, 4, 2] as const;
/** Probabilities that differ by less are the same. */
const NEAR = 1e-3;

/** Surveys a server. Rejects with Error if it cannot be used in this dialect. */
export async function surveySystemOne(
  asking: Asking,
  { path, model: asked, canary, own }: SurveyRequest,
): Promise<Survey> {
  const facts = await askFacts(asking);
  const model = modelOf(facts, asked ?? ownText(own, 'model'));
  if (model === undefined) {
    const known = facts.models.length === 0 ? 'it does not list them' : `one of ${facts.models.join(', ')}`;
    throw new Error(`--model names the model at the server: ${known}`);
  }
  const send = (form: Form, state: string, choices: readonly string[]): Promise<Reply> =>
    asking.post(form.path, bodyOf({ model, state, instructions: canary.instruction, choices }, form.variant));
  const choices = canary.choices.toSorted();

  const form = await findForm(asking.address, formsAt(path), choices, (each) => send(each, canary.input, choices));
  const said = own.options;
  const cap = typeof said === 'number' ? said : await findCap((all) => send(form, canary.input, all));
  const maxTokens = tokensOf(facts, model);
  const longTexts = await tryLongTexts(async (text) => longAnswer(await send(form, text, SAYINGS), form), {
    known: maxTokens,
    tolerance: NEAR,
  });
  return {
    options: { dialect: 'system-one', variant: form.variant, model },
    path: form.path,
    longTexts,
    maxTokens,
    reads: 'all',
    cap,
    temperature: 1,
    lines: [...facts.lines, `POST ${form.path} in the variant "${form.variant}"`],
  };
}

/** The forms to try, the likelier first. */
function formsAt(path: string | undefined): readonly Form[] {
  if (path === undefined) return USUAL;
  const forms = USUAL.map(({ variant }) => ({ path, variant }));
  return path.includes('decisions') ? forms.toReversed() : forms;
}

/** The first form that is answered. */
async function findForm(
  address: string,
  forms: readonly Form[],
  choices: readonly string[],
  send: (form: Form) => Promise<Reply>,
): Promise<Form> {
  const attempts: string[] = [];
  for (const form of forms) {
    const read = readReply(await send(form), form.path, (body) => probabilitiesIn(body, choices, form.variant));
    if ('value' in read) return form;
    attempts.push(`"${form.variant}": ${read.problem}`);
  }
  throw new NotSuchADialect('system-one', address, attempts);
}

/** The most choices that are answered. */
async function findCap(send: (choices: readonly string[]) => Promise<Reply>): Promise<number> {
  for (const count of CAPS) {
    const reply = await send(Array.from({ length: count }, (_, i) => `choice ${i}`));
    if (reply.kind === 'answered') return count;
  }
  throw new Error('the server answers the canary decision, but no other question of the command');
}

function longAnswer(reply: Reply, { variant }: Form): LongAnswer {
  if (reply.kind === 'slow') return reply;
  if (reply.kind === 'refused') return { kind: 'refused', limit: reply.failure.tooLong?.limit };
  try {
    return { kind: 'numbers', numbers: [...probabilitiesIn(reply.body, SAYINGS, variant)] };
  } catch (error) {
    // The server cuts, but says so, which counts as a refusal.
    if (error instanceof CallFailed && error.tooLong !== undefined)
      return { kind: 'refused', limit: error.tooLong.limit };
    throw error;
  }
}
