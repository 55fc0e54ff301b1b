/**
 * What code generated from the protos hangs on and buf does not hold: Go's package, and that Google's and Buf's
 * files are their own.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { file_buf_validate_validate } from '../../gen/buf/validate/validate_pb.ts';
import { file_google_api_annotations } from '../../gen/google/api/annotations_pb.ts';
import { file_google_api_http } from '../../gen/google/api/http_pb.ts';
import { file_google_rpc_error_details } from '../../gen/google/rpc/error_details_pb.ts';
import { file_google_rpc_status } from '../../gen/google/rpc/status_pb.ts';

const folder = fileURLToPath(new URL('../../proto', import.meta.url));

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
  t.deepEqual(names(file_google_rpc_error_details), [
    'BadRequest',
    'DebugInfo',
    'ErrorInfo',
    'Help',
    'LocalizedMessage',
    'PreconditionFailure',
    'QuotaFailure',
    'RequestInfo',
    'ResourceInfo',
    'RetryInfo',
  ]);
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
