/** The file of `evaluate --costs`, and what costs least: lines for a terminal, and thresholds for `decide --sure`. */
import { type Cheapest, type Costs, cheapest, type Spread } from '../../learning/costs.ts';
import { type JudgedAnswer, LEAST_ABOVE } from '../../learning/quality.ts';
import { readTextFile } from '../decide/lines.ts';

/** Reads `{"person": 2, "wrong": 10, "mistakes": [{"label": …, "choice": …, "cost": 50}]}`. @throws Error. */
export async function costsIn(file: string, choices: readonly string[]): Promise<Costs> {
  const wrong = (problem: string): Error => new Error(`${file}: ${problem}`);
  const value: unknown = await readTextFile(file).then((text) => {
    try {
      return JSON.parse(text);
    } catch {
      throw wrong('is not JSON');
    }
  });
  const known = (object: unknown, names: readonly string[], place: string): Record<string, unknown> => {
    if (typeof object !== 'object' || object === null || Array.isArray(object))
      throw wrong(`${place} is not an object`);
    const other = Object.keys(object).find((name) => !names.includes(name));
    if (other !== undefined) throw wrong(`${place} has ${JSON.stringify(other)}; it may have ${names.join(', ')}`);
    return object as Record<string, unknown>;
  };
  const cost = (amount: unknown, place: string): number => {
    if (typeof amount !== 'number' || !(amount >= 0)) throw wrong(`${place} must be a number that is not negative`);
    return amount;
  };
  const costs = known(value, ['person', 'wrong', 'mistakes'], 'the file');
  const { mistakes = [] } = costs;
  if (!Array.isArray(mistakes)) throw wrong('mistakes must be a list');
  return {
    person: cost(costs.person, 'person'),
    wrong: cost(costs.wrong, 'wrong'),
    mistakes: mistakes.map((each: unknown, index) => {
      const place = `mistakes[${index}]`;
      const { cost: amount, ...names } = known(each, ['label', 'choice', 'cost'], place);
      for (const name of Object.values(names))
        if (!choices.includes(name as string))
          throw wrong(`${place}: ${JSON.stringify(name)} is not one of the choices`);
      return { ...(names as { label?: string; choice?: string }), cost: cost(amount, `${place}.cost`) };
    }),
  };
}

/** What costs least, also as lines for a terminal and as fields of `--json`; nothing without costs. @throws Error. */
export function costFigures(
  answers: readonly JudgedAnswer[],
  choices: readonly string[],
  costs: Costs | undefined,
): { readonly lines: readonly string[]; readonly plain: object; readonly found: Cheapest | undefined } {
  if (costs === undefined) return { lines: [], plain: {}, found: undefined };
  if (answers.length < LEAST_ABOVE)
    throw new Error(
      `${answers.length} examples are too few for --costs: ${LEAST_ABOVE} are the least, hundreds are better`,
    );
  const found = cheapest(answers, choices, costs);
  const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);
  const { value, low, high } = found.cost;
  return {
    found,
    lines: costLines(found),
    plain: {
      costs: { cost: value, low, high, acting_on_all: found.actingOnAll, asking_always: found.askingAlways },
      // Null where a person always decides.
      sure: Object.fromEntries([...found.thresholds].map(([choice, each]) => [choice, finite(each.value)])),
    },
  };
}

function costLines({ thresholds, cost, actingOnAll, askingAlways }: Cheapest): readonly string[] {
  const said = (value: number): string => (Number.isFinite(value) ? value.toFixed(3) : 'never');
  const row = ({ value, low, high }: Spread, choice: string): string =>
    `${said(value).padEnd(17)}${`${said(low)} to ${said(high)}`.padEnd(18)}${JSON.stringify(choice)}`;
  return [
    '',
    'what costs least:',
    'act at or above  95 % interval     on the answer',
    ...[...thresholds].map(([choice, each]) => row(each, choice)),
    `cost of a text: ${cost.value.toFixed(3)} (95 % interval ${cost.low.toFixed(3)} to ${cost.high.toFixed(3)}); ${actingOnAll.toFixed(3)} if every answer is acted on, ${askingAlways.toFixed(3)} if none is`,
  ];
}
