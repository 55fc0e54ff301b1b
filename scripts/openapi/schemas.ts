/**
 * JSON Schemas of the messages as REST reads and writes them: with the proto's names, with every field in a response,
 * and with no unknown field in a request.
 */
import { type DescEnum, type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { constraintsOf } from '../../src/domain/field-rules.ts';
import type { Comments } from './comments.ts';
import { fieldConstraints, type Schema, wholeConstraints } from './constraints.ts';

/** The contract's names of messages, where they differ from the proto's. */
const NAMES: Readonly<Record<string, string>> = {
  CreateDecisionRequest: 'DecisionRequest',
  CreateCatalogRequest: 'CatalogRequest',
  ListModelsResponse: 'ModelList',
};

/** A message's name in the document. */
export function schemaName(message: DescMessage): string {
  return NAMES[message.name] ?? message.name;
}

/** A reference to a schema of the document. */
export function schemaRef(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** The schema of a request body. */
export function requestSchema(message: DescMessage, comments: Comments): Schema {
  return {
    ...objectSchema(message, comments),
    required: message.fields.filter((field) => constraintsOf(field).required).map(({ name }) => name),
    additionalProperties: false,
    ...wholeConstraints(message),
  };
}

/**
 * The schemas of a response body and of all messages in it, by name. All fields are always present; a later version may
 * add some.
 */
export function responseSchemas(message: DescMessage, comments: Comments): Readonly<Record<string, Schema>> {
  const schemas: Record<string, Schema> = {};
  const add = (desc: DescMessage): void => {
    schemas[schemaName(desc)] = {
      ...objectSchema(desc, comments),
      required: desc.fields.map((field) => field.name),
    };
    for (const field of desc.fields) {
      const inner = messageOf(field);
      if (inner !== undefined && schemas[schemaName(inner)] === undefined) add(inner);
    }
  };
  add(message);
  return schemas;
}

/** The schema of one field, with its comment. */
export function fieldSchema(field: DescField, comments: Comments): Schema {
  const message = field.parent;
  const description = comments.get(`${message.typeName}.${field.name}`);
  return {
    ...typeSchema(field, comments),
    ...(description === undefined ? {} : { description }),
    ...fieldConstraints(field),
  };
}

function objectSchema(message: DescMessage, comments: Comments): Schema {
  const description = comments.get(message.typeName)?.replace(message.name, schemaName(message));
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries(message.fields.map((field) => [field.name, fieldSchema(field, comments)])),
  };
}

function messageOf(field: DescField): DescMessage | undefined {
  if (field.fieldKind === 'message') return field.message;
  return field.fieldKind === 'list' && field.listKind === 'message' ? field.message : undefined;
}

function typeSchema(field: DescField, comments: Comments): Schema {
  switch (field.fieldKind) {
    case 'message':
      return schemaRef(schemaName(field.message));
    case 'enum':
      return enumSchema(field.enum, comments);
    case 'map':
      return { type: 'object' };
    case 'list':
      return {
        type: 'array',
        items: field.listKind === 'message' ? schemaRef(schemaName(field.message)) : { type: 'string' },
      };
    case 'scalar':
      return scalarSchema(field.scalar, field);
  }
}

function scalarSchema(scalar: ScalarType, field: DescField): Schema {
  switch (scalar) {
    case ScalarType.STRING:
      return { type: 'string' };
    case ScalarType.DOUBLE:
      return { type: 'number', format: 'double' };
    case ScalarType.INT32:
      return { type: 'integer', format: 'int32' };
    default:
      throw new Error(`${field.parent.typeName}.${field.name}: a scalar that the document has no type for`);
  }
}

function enumSchema(desc: DescEnum, comments: Comments): Schema {
  const members = desc.values.filter((value) => value.number !== 0);
  const named = members.map((value) => ({
    const: value.localName.toLowerCase(),
    description: comments.get(`${desc.typeName}.${value.name}`) ?? '',
  }));
  return { type: 'string', enum: named.map((member) => member.const), oneOf: named };
}
