/** Reads the protos' comments and words them for readers of the REST contract. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { fromBinary } from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { ERROR_TABLE } from '../../src/domain/errors.ts';

/**
 * Comments by the full name of what they describe: `umpire.v1.Decision`, `umpire.v1.Decision.id`,
 * `umpire.v1.DecisionService.CreateDecision`.
 */
export type Comments = ReadonlyMap<string, string>;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

// Field numbers of google.protobuf's descriptors, of which a comment's path consists.
const MESSAGE = 4;
const ENUM = 5;
const SERVICE = 6;
const MEMBER = 2;

/** Builds the protos with buf and reads every comment. @throws Error if buf fails. */
export function readComments(): Comments {
  const image = execFileSync('buf', ['build', 'proto', '--as-file-descriptor-set', '-o', '-'], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  const comments = new Map<string, string>();
  for (const file of fromBinary(FileDescriptorSetSchema, image).file) {
    if (file.package.startsWith('umpire.')) readFile(file, comments);
  }
  return comments;
}

function readFile(file: FileDescriptorProto, comments: Map<string, string>): void {
  const texts = new Map<string, string>();
  for (const { path, leadingComments } of file.sourceCodeInfo?.location ?? []) {
    if (leadingComments !== '') texts.set(path.join(), leadingComments);
  }
  const note = (name: string, ...path: readonly number[]): void => {
    const text = texts.get(path.join());
    if (text !== undefined) comments.set(`${file.package}.${name}`, forRest(text));
  };
  for (const [place, message] of file.messageType.entries()) {
    note(message.name, MESSAGE, place);
    for (const [index, field] of message.field.entries())
      note(`${message.name}.${field.name}`, MESSAGE, place, MEMBER, index);
  }
  for (const [place, { name, value }] of file.enumType.entries()) {
    note(name, ENUM, place);
    for (const [index, member] of value.entries()) note(`${name}.${member.name}`, ENUM, place, MEMBER, index);
  }
  for (const [place, { name, method }] of file.service.entries()) {
    note(name, SERVICE, place);
    for (const [index, member] of method.entries()) note(`${name}.${member.name}`, SERVICE, place, MEMBER, index);
  }
}

/**
 * A comment as one paragraph, with HTTP's statuses in place of gRPC's and the envelope's codes in place of the enum's
 * names.
 */
function forRest(comment: string): string {
  return comment
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .replaceAll(/ERROR_REASON_([A-Z_]+)/g, (_, name: string) => name.toLowerCase())
    .replaceAll(/\b[A-Z]+_[A-Z_]+\b/g, (name) => httpOf(name) ?? name);
}

/** The HTTP status of a gRPC status, if all its errors have the same one. */
function httpOf(status: string): string | undefined {
  const rows = Object.values(ERROR_TABLE).filter((row) => row.status === status);
  return rows.length > 0 && new Set(rows.map((row) => row.http)).size === 1 ? String(rows[0]?.http) : undefined;
}
