/** What a PromQL expression asks for, read with Prometheus' own grammar. */
import { parser } from '@prometheus-io/lezer-promql';

/** One condition on a label. */
export interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

/** One metric that is asked for. */
export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

export interface Question {
  readonly selectors: readonly Selector[];
  /** Labels that the expression groups or joins by. */
  readonly groupedBy: readonly string[];
}

/** Reads an expression. @throws SyntaxError with the place. */
export function readPromql(expression: string): Question {
  const selectors: { metric: string; matchers: Matcher[] }[] = [];
  const groupedBy: string[] = [];
  parser.parse(expression).iterate({
    enter({ name, from, to, node }) {
      const text = expression.slice(from, to);
      if (node.type.isError) throw new SyntaxError(`no PromQL at ${from}: ${expression}`);
      if (name === 'VectorSelector') {
        const metric = node.getChild('Identifier');
        if (metric === null) throw new SyntaxError(`a selector without a metric: ${text}`);
        selectors.push({ metric: expression.slice(metric.from, metric.to), matchers: [] });
      }
      if (name === 'UnquotedLabelMatcher') {
        const [, label = '', operator = '', value = ''] = /^(\w+)\s*(=~|!~|!=|=)\s*"(.*)"$/s.exec(text) ?? [];
        selectors.at(-1)?.matchers.push({ label, operator, value });
      }
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') groupedBy.push(text);
    },
  });
  return { selectors, groupedBy };
}
