/**
 * The REST routes, read from the `google.api.http` annotations at startup, and the route of a method and a path. An
 * annotation that is not supported stops the start with an error that names the RPC.
 */
import { type DescMessage, getOption, hasOption } from '@bufbuild/protobuf';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import type { Procedure } from '../../service/procedure.ts';
import { compileMessageReader, type MessageReader } from './message-reader.ts';
import { compileMessageWriter } from './message-writer.ts';
import { matchPath, type PathTemplate, parsePathTemplate } from './path-template.ts';

/** The HTTP methods that an annotation can bind an RPC to. */
export type RestMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An RPC's binding to an HTTP method and a path template, compiled. */
export interface Route {
  readonly method: RestMethod;
  readonly template: PathTemplate;
  readonly procedure: Procedure;
  readonly hasBody: boolean;
  readonly read: MessageReader;
  /** The JSON of a response; null where it has no content. */
  readonly write: (response: object) => string | null;
  /** The message that is written; undefined where there is no content. */
  readonly responseBody: DescMessage | undefined;
  readonly successStatus: 200 | 201 | 204;
  /** The path of a resource that the route creates. */
  readonly location: (response: object) => string | undefined;
}

/** The routes of the procedures. @throws Error listing every annotation that cannot be served. */
export function createRoutes(procedures: readonly Procedure[]): readonly Route[] {
  const problems: string[] = [];
  const routes: Route[] = [];
  for (const procedure of procedures) {
    try {
      routes.push(createRoute(procedure, procedures));
    } catch (error) {
      problems.push(`${procedure.method.parent.typeName}.${procedure.method.name}: ${(error as Error).message}`);
    }
  }
  const seen = new Set<string>();
  for (const route of routes) {
    const key = `${route.method} ${route.template.text.replaceAll(/\{[^}]*\}/g, '{}')}`;
    if (seen.has(key)) problems.push(`${key} is bound twice`);
    seen.add(key);
  }
  if (problems.length > 0) throw new Error(`REST routes:\n  ${problems.join('\n  ')}`);
  return routes;
}

/** Method and template of an RPC's annotation. */
function bindingOf(procedure: Procedure): { readonly method: RestMethod; readonly path: string } {
  if (!hasOption(procedure.method, http)) throw new Error('has no google.api.http annotation');
  const rule = getOption(procedure.method, http);
  if (rule.additionalBindings.length > 0) throw new Error('additional_bindings are not supported');
  const { pattern } = rule;
  if (pattern.case === undefined || pattern.case === 'custom')
    throw new Error('needs one of get, put, post, delete and patch');
  return { method: pattern.case.toUpperCase() as RestMethod, path: pattern.value };
}

function createRoute(procedure: Procedure, procedures: readonly Procedure[]): Route {
  const { method, path } = bindingOf(procedure);
  const rule = getOption(procedure.method, http);
  const template = parsePathTemplate(path);
  const { input, output } = procedure.method;
  const hasBody = rule.body === '*';
  if (!hasBody && rule.body !== '') throw new Error(`body '${rule.body}' is not supported, only '*'`);
  const fields = new Set(input.fields.map((field) => field.name));
  const inPath = new Set<string>();
  for (const segment of template.segments) {
    if ('field' in segment && !fields.delete(segment.field))
      throw new Error(`path field '${segment.field}' is not a field of ${input.typeName}`);
    if ('field' in segment) inPath.add(segment.field);
  }
  if (!hasBody && fields.size > 0)
    throw new Error(`fields ${[...fields].join(', ')} are neither in the path nor in a body`);

  const collection = method === 'POST' ? resourceTemplate(procedure, path, procedures) : undefined;
  const empty = output.fields.length === 0;
  const { write, body, message } = responseWriter(procedure, rule.responseBody);
  return {
    method,
    template,
    procedure,
    hasBody,
    read: compileMessageReader(input, inPath),
    write: empty ? () => null : write,
    responseBody: empty ? undefined : message,
    successStatus: empty ? 204 : collection === undefined ? 200 : 201,
    location: (response) => (collection === undefined ? undefined : fill(collection, body(response))),
  };
}

function responseWriter(
  procedure: Procedure,
  responseBody: string,
): { write: (response: object) => string; body: (response: object) => object; message: DescMessage } {
  const { output } = procedure.method;
  if (responseBody === '') {
    return { write: compileMessageWriter(output), body: (response) => response, message: output };
  }
  const field = output.fields.find((candidate) => candidate.name === responseBody);
  if (field?.fieldKind !== 'message')
    throw new Error(`response_body '${responseBody}' is not a message field of ${output.typeName}`);
  const write = compileMessageWriter(field.message);
  const body = (response: object) => (response as Record<string, object>)[field.localName] as object;
  return { write: (response) => write(body(response)), body, message: field.message };
}

/**
 * A POST creates a resource where its service can GET one under the same path: `/v1/catalogs` and `/v1/catalogs/{id}`.
 */
function resourceTemplate(
  procedure: Procedure,
  path: string,
  procedures: readonly Procedure[],
): PathTemplate | undefined {
  for (const other of procedures) {
    if (other.method.parent !== procedure.method.parent) continue;
    const binding = bindingOf(other);
    if (binding.method === 'GET' && binding.path.startsWith(`${path}/{`)) return parsePathTemplate(binding.path);
  }
  return undefined;
}

function fill(template: PathTemplate, resource: object): string {
  const values = resource as Record<string, unknown>;
  return template.segments
    .map((segment) => `/${'literal' in segment ? segment.literal : encodeURIComponent(String(values[segment.field]))}`)
    .join('');
}

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
