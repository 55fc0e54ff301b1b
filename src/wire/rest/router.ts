/** Finds the route of a method and a path. */
import { matchPath } from './path-template.ts';
import type { Route } from './routes.ts';

/** What a method and a path lead to. */
export type Match =
  | { readonly kind: 'route'; readonly route: Route; readonly variables: ReadonlyMap<string, string> }
  | { readonly kind: 'method_not_allowed'; readonly allow: string }
  /** `hint`: what the path seems to mean. */
  | { readonly kind: 'not_found'; readonly hint: string };

const NO_VARIABLES: ReadonlyMap<string, string> = new Map();

/** A router over routes. HEAD leads where GET does. */
export function createRouter(routes: readonly Route[]): (method: string, path: string) => Match {
  const literal = new Map<string, Match>();
  /** Only the templates are repeated, never what a caller wrote. */
  const hintOf = (path: string): string => {
    if (/^\/health[^/]*\/?$/.test(path)) return 'health is at /health/live and /health/ready; ';
    const near = routes.find(({ template }) => path.endsWith('/') && matchPath(template, path.slice(0, -1)) !== null);
    return near === undefined ? '' : `${near.template.text} has no slash at its end; `;
  };
  for (const route of routes) {
    if (route.template.segments.every((segment) => 'literal' in segment)) {
      const match: Match = { kind: 'route', route, variables: NO_VARIABLES };
      literal.set(`${route.method} ${route.template.text}`, match);
      if (route.method === 'GET') literal.set(`HEAD ${route.template.text}`, match);
    }
  }
  return (method, path) => {
    const known = literal.get(`${method} ${path}`);
    if (known !== undefined) return known;
    const wanted = method === 'HEAD' ? 'GET' : method;
    const allowed = new Set<string>();
    for (const route of routes) {
      const variables = matchPath(route.template, path);
      if (variables === null) continue;
      if (route.method === wanted) return { kind: 'route', route, variables };
      allowed.add(route.method);
      if (route.method === 'GET') allowed.add('HEAD');
    }
    return allowed.size === 0
      ? { kind: 'not_found', hint: hintOf(path) }
      : { kind: 'method_not_allowed', allow: [...allowed].sort().join(', ') };
  };
}
