/**
 * What buf does not see of the contract: which path leads to which RPC, what each field must be, and what each reason
 * becomes in each protocol; Go's package; that Google's and Buf's protos are their own. The golden tables are part of
 * the frozen contract; `UPDATE_GOLDEN=1 npx ava test/golden.test.ts` writes them anew after a change that is meant.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getOption, hasOption, toJson } from '@bufbuild/protobuf';
import test from 'ava';
import {
  file_buf_validate_validate,
  MessageRulesSchema,
  message as messageOption,
} from '../gen/buf/validate/validate_pb.ts';
import { file_google_api_annotations } from '../gen/google/api/annotations_pb.ts';
import { file_google_api_http } from '../gen/google/api/http_pb.ts';
import { file_google_rpc_error_details } from '../gen/google/rpc/error_details_pb.ts';
import { file_google_rpc_status } from '../gen/google/rpc/status_pb.ts';
import { file_umpire_v1_catalog_service as CATALOG_FILE } from '../gen/umpire/v1/catalog_service_pb.ts';
import { file_umpire_v1_decision_service as DECISION_FILE } from '../gen/umpire/v1/decision_service_pb.ts';
import { ErrorReason } from '../gen/umpire/v1/error_reason_pb.ts';
import { FieldFaultSchema, fault, oneof_fault } from '../gen/umpire/v1/field_fault_pb.ts';
import { file_umpire_v1_model_service as MODEL_FILE } from '../gen/umpire/v1/model_service_pb.ts';
import { ERROR_TABLE, type ErrorReason as Reason } from '../src/domain/errors.ts';
import { constraintsOf } from '../src/domain/field-rules.ts';
import { createCatalogService } from '../src/service/catalog-service.ts';
import { createDecisionService } from '../src/service/decision-service.ts';
import { createModelService } from '../src/service/model-service.ts';
import { Health, probe } from '../src/wire/health.ts';
import { createPages } from '../src/wire/rest/pages.ts';
import { createRoutes } from '../src/wire/rest/routes.ts';

// Handlers are never called: their tables are all that is looked at.
const nothing = {} as never;
const PROCEDURES = [
  ...createDecisionService({ decider: nothing }),
  ...createModelService({ engine: nothing }),
  ...createCatalogService({ catalogs: nothing }),
];

const routes = createRoutes(PROCEDURES)
  .map(({ method, template, procedure, hasBody, successStatus }) => ({
    route: `${method} ${template.text}`,
    rpc: `${procedure.method.parent.typeName}/${procedure.method.name}`,
    request: procedure.method.input.fields.map(({ name }) => name),
    body: hasBody,
    success: successStatus,
    key: procedure.access === 'keyed' ? 'required' : 'optional',
  }))
  .toSorted((a, b) => (a.route < b.route ? -1 : 1));

const errors = Object.fromEntries(
  (Object.entries(ERROR_TABLE) as [Reason, (typeof ERROR_TABLE)[Reason]][])
    .map(([reason, { status, http, type }]) => ({ number: ErrorReason[reason], reason, http, type, status }))
    .toSorted((a, b) => a.number - b.number)
    .map(({ reason, ...row }) => [reason, { code: reason.toLowerCase(), ...row }]),
);

/** Paths that are no RPCs: what answers at them, beside the routes. */
const pages = Object.fromEntries([
  ...[...createPages(() => []).keys()].map((path) => [path, 'GET, without a key']),
  ...['/health/live', '/health/ready'].map((path) => {
    const state = probe(new Health({ ready: () => true }), path);
    return [path, state === undefined ? 'nothing' : 'GET, without a key'];
  }),
]);

/** Every field that has a rule, in the words of the protos' options. */
const rules = Object.fromEntries(
  [CATALOG_FILE, DECISION_FILE, MODEL_FILE]
    .flatMap(({ messages }) => messages)
    .flatMap((message) => {
      const whole = {
        ...(hasOption(message, messageOption)
          ? (toJson(MessageRulesSchema, getOption(message, messageOption)) as object)
          : {}),
        ...(hasOption(message, oneof_fault)
          ? { fault: toJson(FieldFaultSchema, getOption(message, oneof_fault)) }
          : {}),
      };
      const ofFields = message.fields.map(
        (field) =>
          [
            `${message.name}.${field.name}`,
            {
              ...constraintsOf(field),
              ...(hasOption(field, fault) ? { fault: toJson(FieldFaultSchema, getOption(field, fault)) } : {}),
            },
          ] as const,
      );
      return [[message.name, whole] as const, ...ofFields];
    })
    .filter(([, rule]) => Object.keys(rule).length > 0),
);

for (const [name, now] of Object.entries({ routes, pages, errors, rules })) {
  test(`the table of ${name} is the golden one`, (t) => {
    const file = new URL(`./golden/${name}.json`, import.meta.url);
    if (process.env.UPDATE_GOLDEN === '1') writeFileSync(file, `${JSON.stringify(now, null, 2)}\n`);
    t.deepEqual(JSON.parse(JSON.stringify(now)), JSON.parse(readFileSync(file, 'utf8')));
  });
}

const folder = fileURLToPath(new URL('../proto', import.meta.url));

test('every proto of Umpire is in one Go package, whose name stays', (t) => {
  const files = readdirSync(join(folder, 'umpire/v1'));
  t.is(files.length, 5);
  for (const file of files) {
    t.regex(
      readFileSync(join(folder, 'umpire/v1', file), 'utf8'),
      /^option go_package = "umpire\/v1;umpirev1";$/m,
      file,
    );
  }
});

test("Google's protos are whole: another copy in the same program says the same", (t) => {
  const names = (file: { messages: readonly { name: string }[] }): readonly string[] =>
    file.messages.map(({ name }) => name).toSorted();
  t.deepEqual(names(file_google_api_http), ['CustomHttpPattern', 'Http', 'HttpRule']);
  t.deepEqual(names(file_google_rpc_status), ['Status']);
  t.is(
    names(file_google_rpc_error_details).join(' '),
    'BadRequest DebugInfo ErrorInfo Help LocalizedMessage PreconditionFailure QuotaFailure RequestInfo ResourceInfo RetryInfo',
  );
  for (const { proto } of [
    file_google_api_annotations,
    file_google_api_http,
    file_google_rpc_status,
    file_google_rpc_error_details,
  ]) {
    t.true(proto.options?.goPackage.startsWith('google.golang.org/genproto/'), proto.name);
    t.regex(proto.options?.javaPackage ?? '', /^com\.google\./);
  }
});

test("Buf's proto of constraints is whole", (t) => {
  const { messages, extensions, proto } = file_buf_validate_validate;
  t.true(messages.length >= 30);
  t.deepEqual(
    extensions.map(({ name, number }) => [name, number]),
    ['message', 'oneof', 'field', 'predefined'].map((name) => [name, name === 'predefined' ? 1160 : 1159]),
  );
  t.is(proto.options?.goPackage, 'buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate');
});
