/**
 * Path templates of `google.api.http`, the part of the grammar that Umpire's routes use:
 *
 *     Template = "/" Segment { "/" Segment } ;
 *     Segment  = LITERAL | "{" FIELD "}" ;
 *
 * A variable is one whole segment and never empty. Wildcards, sub-templates, nested fields and verbs are refused when
 * the template is parsed.
 */

/** A template, ready to be compared with paths. */
export interface PathTemplate {
  readonly text: string;
  /** Literals and variables in order; a variable is the proto name of the field that it fills. */
  readonly segments: readonly ({ readonly literal: string } | { readonly field: string })[];
}

const LITERAL = /^[A-Za-z0-9._~-]+$/;
const VARIABLE = /^\{([a-z][a-z0-9_]*)\}$/;

/** Parses a template. @throws Error naming the template and the segment that is not supported. */
export function parsePathTemplate(text: string): PathTemplate {
  if (!text.startsWith('/')) throw new Error(`path template '${text}' must begin with '/'`);
  const segments = text
    .slice(1)
    .split('/')
    .map((segment) => {
      const field = VARIABLE.exec(segment)?.[1];
      if (field !== undefined) return { field };
      if (LITERAL.test(segment)) return { literal: segment };
      throw new Error(`path template '${text}': segment '${segment}' is not supported`);
    });
  return { text, segments };
}

/**
 * The variables of a path that the template matches, percent-decoded; null if it does not match or an escape is not
 * valid UTF-8. Literals are compared as they stand: `%76` is not `v`.
 */
export function matchPath(template: PathTemplate, path: string): ReadonlyMap<string, string> | null {
  const parts = path.split('/');
  if (parts.length !== template.segments.length + 1 || parts[0] !== '') return null;
  const variables = new Map<string, string>();
  for (const [index, segment] of template.segments.entries()) {
    const part = parts[index + 1] as string;
    if ('literal' in segment) {
      if (segment.literal !== part) return null;
    } else {
      const value = percentDecoded(part);
      if (value === null || value === '') return null;
      variables.set(segment.field, value);
    }
  }
  return variables;
}

function percentDecoded(text: string): string | null {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
