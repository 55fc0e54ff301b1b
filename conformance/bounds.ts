/** The bounds that the protos state. Checks send what is just within them and what is just beyond. */
import { type DescField, getOption } from '@bufbuild/protobuf';
import { type FieldRules, field } from '../gen/buf/validate/validate_pb.ts';
import { CreateCatalogRequestSchema } from '../gen/umpire/v1/catalog_service_pb.ts';
import { CreateDecisionRequestSchema } from '../gen/umpire/v1/decision_service_pb.ts';

/** The names of the properties of a request for a decision. */
export const DECISION_PROPERTIES: readonly string[] = CreateDecisionRequestSchema.fields.map(({ name }) => name);

/** The fewest and the most choices of a decision or a catalog; a model may take fewer. */
export const [MIN_CHOICES, MAX_CHOICES] = itemsOf(CreateDecisionRequestSchema.field.choices);

/** The most characters of a catalog's id. */
export const MAX_ID = charactersOf(CreateCatalogRequestSchema.field.id);

/** The most characters of a catalog's version. */
export const MAX_VERSION = charactersOf(CreateCatalogRequestSchema.field.version);

function itemsOf(list: DescField): readonly [least: number, most: number] {
  const { type } = rulesOf(list);
  if (type.case !== 'repeated') throw new Error(`${list.toString()} has no bounds of a list`);
  return [Number(type.value.minItems), Number(type.value.maxItems)];
}

function charactersOf(text: DescField): number {
  const { type } = rulesOf(text);
  if (type.case !== 'string') throw new Error(`${text.toString()} has no bounds of a text`);
  return Number(type.value.maxLen);
}

function rulesOf(of: DescField): FieldRules {
  return getOption(of, field);
}
