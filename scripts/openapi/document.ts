/** Puts the OpenAPI document together from the routes that the service serves. */
import { CreateDecisionRequestSchema } from '../../gen/umpire/v1/decision_service_pb.ts';
import { constraintsOf } from '../../src/domain/field-rules.ts';
import { createCatalogService } from '../../src/service/catalog-service.ts';
import { createDecisionService } from '../../src/service/decision-service.ts';
import { createModelService } from '../../src/service/model-service.ts';
import type { Procedure } from '../../src/service/procedure.ts';
import { createRoutes } from '../../src/wire/rest/routes.ts';
import type { Comments } from './comments.ts';
import { HEADERS, PLAIN_SCHEMAS, SECURITY_SCHEMES } from './components.ts';
import type { Schema } from './constraints.ts';
import { healthOperations, operationOf, tagOf, withoutName } from './operations.ts';
import { requestSchema, responseSchemas, schemaName } from './schemas.ts';

const MAX_CHOICES = constraintsOf(CreateDecisionRequestSchema.field.choices).repeated?.maxItems;

const DESCRIPTION = `A text, a question and 2 to ${MAX_CHOICES} allowed answers go in; exactly one of them comes out, with a calibrated probability for each. umpire-multi reads many languages (trained on 36, measured in 17); umpire-mini, umpire-base and minilm-l6 read English only: a text in another language gets an answer from them as well, and it is chance.

All bodies are JSON in UTF-8. A property that is not named here is refused. Every response carries \`X-Request-ID\`. HEAD is answered where GET is; another method of a path gets 405 \`method_not_allowed\` with \`Allow\`, another path 404 \`route_not_found\`, both as an ErrorResponse.`;

/** The procedures of the service, for their properties; they cannot be called. */
export function procedures(): readonly Procedure[] {
  const uncalled = {} as never;
  return [
    ...createDecisionService({ decider: uncalled }),
    ...createModelService({ engine: uncalled }),
    ...createCatalogService({ catalogs: uncalled }),
  ];
}

/** The whole document. @throws Error if a route or a field cannot be represented in it. */
export function createDocument(comments: Comments): Schema {
  const paths: Record<string, Record<string, Schema>> = {};
  const schemas: Record<string, Schema> = {};
  const tags = new Map<string, string>();
  for (const route of createRoutes(procedures())) {
    const { method } = route.procedure;
    tags.set(tagOf(method.parent), withoutName(comments.get(method.parent.typeName) ?? '', method.parent.name));
    if (route.hasBody) schemas[schemaName(method.input)] = requestSchema(method.input, comments);
    const body = route.responseBody;
    if (body !== undefined) Object.assign(schemas, responseSchemas(body, comments));
    const path = paths[route.template.text] ?? {};
    paths[route.template.text] = path;
    path[route.method.toLowerCase()] = operationOf(route, comments);
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Umpire',
      version: '1.0.0',
      summary: 'A structured decision service',
      description: DESCRIPTION,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://localhost:8080', description: 'A service of your own, as the quick start serves it' }],
    tags: [
      ...[...tags].map(([name, description]) => ({ name, description })),
      { name: 'Health', description: 'For those who watch over the process: no key, no limits.' },
    ],
    paths: { ...paths, ...healthOperations(comments) },
    components: { schemas: { ...schemas, ...PLAIN_SCHEMAS }, headers: HEADERS, securitySchemes: SECURITY_SCHEMES },
  };
}
