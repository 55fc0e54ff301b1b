/** The operations of the document, one for each route. */
import type { DescService } from '@bufbuild/protobuf';
import type { Route } from '../../src/wire/rest/routes.ts';
import type { Comments } from './comments.ts';
import type { Schema } from './constraints.ts';
import { EXAMPLES, type Example } from './examples.ts';
import { errorResponses, HEALTH_REASONS, reasonsOf } from './faults.ts';
import { fieldSchema, schemaName, schemaRef } from './schemas.ts';

/** The operation of a route of the service. */
export function operationOf(route: Route, comments: Comments): Schema {
  const { procedure, hasBody } = route;
  const { method } = procedure;
  const description = withoutName(comments.get(`${method.parent.typeName}.${method.name}`) ?? '', method.name);
  const own = EXAMPLES.filter((example) => example.operation === method.name);
  const key = { key: [] };
  return {
    operationId: method.localName,
    tags: [tagOf(method.parent)],
    ...summaryAndRest(description),
    security: procedure.access === 'keyed' ? [key] : [{}, key],
    ...parametersOf(route, own, comments),
    ...(hasBody ? { requestBody: requestBody(route, own) } : {}),
    responses: withExamples(
      {
        [route.successStatus]: success(route),
        ...errorResponses(reasonsOf(procedure, hasBody), comments),
      },
      own,
    ),
  };
}

/** The operations of the two health paths, which are not RPCs. */
export function healthOperations(comments: Comments): Readonly<Record<string, Schema>> {
  const operation = (
    operationId: string,
    summary: string,
    description: string,
    schema: string,
    reasons: Parameters<typeof errorResponses>[0],
  ): Schema => ({
    get: {
      operationId,
      tags: ['Health'],
      summary,
      description,
      security: [],
      responses: withExamples(
        {
          200: {
            description: summary,
            headers: { 'X-Request-ID': headerRef('X-Request-ID') },
            content: { 'application/json': { schema: schemaRef(schema) } },
          },
          ...errorResponses(reasons, comments),
        },
        EXAMPLES.filter((example) => example.operation === operationId),
      ),
    },
  });
  return {
    '/health/live': operation(
      'getLiveness',
      'Whether the process runs',
      'For restarts: says yes for as long as the process answers, with or without a model.',
      'Liveness',
      HEALTH_REASONS.live,
    ),
    '/health/ready': operation(
      'getReadiness',
      'Whether decisions can be made',
      'For traffic: says no before the first model is there, and from the moment that the process was asked to end.',
      'Readiness',
      HEALTH_REASONS.ready,
    ),
  };
}

function parametersOf({ template, procedure }: Route, own: readonly Example[], comments: Comments): Schema {
  const parameters = template.segments.flatMap((segment) => {
    if ('literal' in segment) return [];
    const field = procedure.method.input.fields.find(({ name }) => name === segment.field);
    if (field === undefined) throw new Error(`${template.text}: no field ${segment.field}`);
    const { description, ...schema } = fieldSchema(field, comments);
    const shown = own.find((example) => example.status < 300)?.path?.[segment.field];
    return [{ name: segment.field, in: 'path', required: true, description, schema, example: shown }];
  });
  return parameters.length === 0 ? {} : { parameters };
}

function requestBody({ procedure }: Route, own: readonly Example[]): Schema {
  const sound = own.filter((example) => example.status < 300);
  return {
    required: true,
    content: {
      'application/json': {
        schema: schemaRef(schemaName(procedure.method.input)),
        examples: Object.fromEntries(sound.map(({ name, summary, body }) => [name, { summary, value: body }])),
      },
    },
  };
}

function success(route: Route): Schema {
  const { successStatus, responseBody } = route;
  const headers: Record<string, Schema> = { 'X-Request-ID': headerRef('X-Request-ID') };
  if (successStatus === 201) headers.Location = headerRef('Location');
  if (route.procedure.limits === 'decision') {
    headers['Server-Timing'] = headerRef('Server-Timing');
    headers['X-Umpire-Learned'] = headerRef('X-Umpire-Learned');
    headers['X-Umpire-Step'] = headerRef('X-Umpire-Step');
    headers['X-Umpire-Unread'] = headerRef('X-Umpire-Unread');
  }
  if (route.procedure.limits === 'decision' || route.template.text === '/v1/models/{model}') {
    headers['X-Umpire-Languages'] = headerRef('X-Umpire-Languages');
  }
  if (responseBody === undefined) return { description: 'Done; no content.', headers };
  const schema = schemaName(responseBody);
  return {
    description: schema,
    headers,
    content: { 'application/json': { schema: schemaRef(schema) } },
  };
}

/** Adds the examples' answers to the responses of their statuses, before the generated examples of errors. */
function withExamples(responses: Readonly<Record<string, Schema>>, own: readonly Example[]): Schema {
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const shown = own.filter((example) => String(example.status) === status && example.answer !== undefined);
      const content = response.content as Record<string, Schema> | undefined;
      if (shown.length === 0 || content === undefined) return [status, response];
      const values = Object.fromEntries(shown.map(({ name, summary, answer }) => [name, { summary, value: answer }]));
      return [
        status,
        {
          ...response,
          content: { 'application/json': { ...content['application/json'], examples: examplesOf(content, values) } },
        },
      ];
    }),
  );
}

/** All examples of a response, without a generated one where a real one shows the same code. */
function examplesOf(content: Readonly<Record<string, Schema>>, real: Readonly<Record<string, Schema>>): Schema {
  const codeOf = (example: Schema): unknown =>
    (example.value as { error?: { code?: string } } | undefined)?.error?.code;
  const shown = new Set(Object.values(real).map(codeOf));
  const made = (content['application/json']?.examples ?? {}) as Readonly<Record<string, Schema>>;
  return { ...real, ...Object.fromEntries(Object.entries(made).filter(([, example]) => !shown.has(codeOf(example)))) };
}

function headerRef(name: string): Schema {
  return { $ref: `#/components/headers/${name}` };
}

/** The tag of a service: `Decisions` for `DecisionService`. */
export function tagOf(service: DescService): string {
  return service.name.replace(/Service$/, 's');
}

/**
 * A comment without its subject's name, with which comments in protos begin: `GetModel returns …` becomes `Returns …`.
 */
export function withoutName(comment: string, name: string): string {
  const rest = comment.startsWith(`${name} `) ? comment.slice(name.length + 1) : comment;
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** The first sentence as the summary, and the rest as the description: tools show both. */
function summaryAndRest(text: string): Schema {
  const end = text.search(/\.(\s|$)/);
  const rest = end < 0 ? '' : text.slice(end + 1).trim();
  return { summary: end < 0 ? text : text.slice(0, end), ...(rest === '' ? {} : { description: rest }) };
}
