/**
 * The REST routes, read from the `google.api.http` annotations at startup, and the route of a method and a path. An
 * annotation that is not supported stops the start with an error that names the RPC.
 */
import { type DescField, type DescMessage, getOption, hasOption, type Message } from '@bufbuild/protobuf';
import { http } from '../../../gen/google/api/annotations_pb.ts';
import type { Procedure } from '../../service/procedure.ts';
import { MessageReader, MessageWriter } from './message-json.ts';
import { matchPath, type PathTemplate, parsePathTemplate } from './path-template.ts';

/** The HTTP methods that an annotation can bind an RPC to. */
export type RestMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The routes of the procedures. @throws Error listing every annotation that cannot be served. */
export function createRoutes(procedures: readonly Procedure[]): readonly Route[] {
  const problems: string[] = [];
  const routes: Route[] = [];
  for (const procedure of procedures) {
    try {
      routes.push(new Route(procedure, procedures));
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

/** An RPC's binding to an HTTP method and a path template, compiled. */
export class Route {
  readonly procedure: Procedure;
  readonly method: RestMethod;
  readonly template: PathTemplate;
  readonly hasBody: boolean;
  readonly successStatus: 200 | 201 | 204;
  /** The message that is written; undefined where there is no content. */
  readonly responseBody: DescMessage | undefined;
  readonly #reader: MessageReader;
  readonly #writer: MessageWriter;
  /** The field of the response that is written; undefined for the whole of it. */
  readonly #bodyField: string | undefined;
  /** The path of a resource that the route creates. */
  readonly #resource: PathTemplate | undefined;

  /** `procedures`: those of all routes. @throws Error for an annotation that cannot be served. */
  constructor(procedure: Procedure, procedures: readonly Procedure[]) {
    const { method, path } = bindingOf(procedure);
    const rule = getOption(procedure.method, http);
    this.procedure = procedure;
    this.method = method;
    this.template = parsePathTemplate(path);
    const { input, output } = procedure.method;
    this.hasBody = rule.body === '*';
    if (!this.hasBody && rule.body !== '') throw new Error(`body '${rule.body}' is not supported, only '*'`);
    const fields = new Set(input.fields.map((field) => field.name));
    const inPath = new Set<string>();
    for (const segment of this.template.segments) {
      if ('field' in segment && !fields.delete(segment.field))
        throw new Error(`path field '${segment.field}' is not a field of ${input.typeName}`);
      if ('field' in segment) inPath.add(segment.field);
    }
    if (!this.hasBody && fields.size > 0)
      throw new Error(`fields ${[...fields].join(', ')} are neither in the path nor in a body`);

    this.#resource = method === 'POST' ? resourceTemplate(procedure, path, procedures) : undefined;
    const field = bodyField(output, rule.responseBody);
    const message = field?.message ?? output;
    this.#bodyField = field?.localName;
    this.#writer = new MessageWriter(message);
    this.#reader = new MessageReader(input, inPath);
    this.responseBody = output.fields.length === 0 ? undefined : message;
    this.successStatus = this.responseBody === undefined ? 204 : this.#resource === undefined ? 200 : 201;
  }

  /** A body as a message, with the fields that the path gave. @throws DomainError. */
  read(body: Uint8Array | undefined, bound: ReadonlyMap<string, string>): Message {
    return this.#reader.read(body, bound);
  }

  /** The JSON of a response; null where it has no content. */
  write(response: object): string | null {
    return this.responseBody === undefined ? null : this.#writer.write(this.#bodyOf(response));
  }

  /** The path of the resource that the response says was created. */
  location(response: object): string | undefined {
    return this.#resource === undefined ? undefined : fill(this.#resource, this.#bodyOf(response));
  }

  #bodyOf(response: object): object {
    return this.#bodyField === undefined ? response : ((response as Record<string, object>)[this.#bodyField] as object);
  }
}

/** The field that a response consists of, over REST; undefined for the whole message. */
function bodyField(output: DescMessage, name: string): (DescField & { readonly message: DescMessage }) | undefined {
  if (name === '') return undefined;
  const field = output.fields.find((candidate) => candidate.name === name);
  if (field?.fieldKind === 'message') return field;
  throw new Error(`response_body '${name}' is not a message field of ${output.typeName}`);
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

/** A router over routes. HEAD leads where GET does. */
export class Router {
  readonly #routes: readonly Route[];

  constructor(routes: readonly Route[]) {
    this.#routes = routes;
  }

  /** What a method and a path lead to. */
  find(method: string, path: string): Match {
    const wanted = method === 'HEAD' ? 'GET' : method;
    const allowed = new Set<string>();
    for (const route of this.#routes) {
      const variables = matchPath(route.template, path);
      if (variables === null) continue;
      if (route.method === wanted) return { kind: 'route', route, variables };
      allowed.add(route.method);
      if (route.method === 'GET') allowed.add('HEAD');
    }
    return allowed.size === 0
      ? { kind: 'not_found', hint: this.#hint(path) }
      : { kind: 'method_not_allowed', allow: [...allowed].sort().join(', ') };
  }

  /** Only the templates are repeated, never what a caller wrote. */
  #hint(path: string): string {
    if (/^\/health[^/]*\/?$/.test(path)) return 'health is at /health/live and /health/ready; ';
    const isNear = ({ template }: Route): boolean =>
      path.endsWith('/') && matchPath(template, path.slice(0, -1)) !== null;
    const near = this.#routes.find(isNear);
    return near === undefined ? '' : `${near.template.text} has no slash at its end; `;
  }
}
