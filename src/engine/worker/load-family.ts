/**
 * The code of each family, and of each dialect of the family `remote`, for which a server elsewhere makes the numbers.
 * Code is imported when a package needs it: a process that runs graphs needs no client of inference servers, and one
 * that asks a server needs no runtime for graphs.
 */
import { inflateSync } from 'node:zlib';
import type { Family, FamilyParts } from '../families/family.ts';
import { Checker, DIALECT_NAMES, type DialectName, type FamilyName, InvalidOptions } from '../packages/manifest.ts';

type LoadPackage = (parts: FamilyParts) => Promise<Family>;

/** A name without a family does not compile. */
const FAMILIES: Readonly<Record<FamilyName, () => Promise<LoadPackage>>> = {
  'bi-encoder': async () => (await import('../families/bi-encoder.ts')).loadBiEncoder,
  'nli-cross-encoder': async () => (await import('../families/nli-cross-encoder.ts')).loadNliCrossEncoder,
  'two-stage': async () => (await import('../families/two-stage/two-stage.ts')).loadTwoStage,
  remote: async () => loadRemote,
  'open-inference': async () => (await import('../families/remote/dialects/open-inference.ts')).loadOpenInference,
  cascade: () => Promise.reject(new InvalidOptions(['a cascade has nothing to load: its steps decide'])),
};

/** Loads a package of the named family. Throws what the family throws. */
export async function loadFamily(name: FamilyName, parts: FamilyParts): Promise<Family> {
  const loadPackage = await FAMILIES[name]();
  return await loadPackage(parts);
}

// Weights that a package keeps outside its graph in an entropy code: eight bytes with the length of the data, little
// endian, and the data as a zlib stream (RFC 1950). A graph has the data as external data.

const HEAD = 8;
/** Of the data, in bytes: more than any graph whose largest request could be decided in time. */
const MAX_LENGTH = 2 ** 30;

/** The data of such a file. Throws if the file is none, or has another length of data than it says. */
export function decodeWeights(file: Uint8Array): Uint8Array {
  const length = file.length < HEAD ? Number.NaN : Number(Buffer.from(file.buffer, file.byteOffset).readBigUInt64LE(0));
  if (!(length > 0 && length <= MAX_LENGTH)) throw new Error(`coded weights cannot have a length of ${length}`);
  // In one chunk, with a byte to spare: further chunks would be joined in a copy.
  const data = inflateSync(file.subarray(HEAD), { chunkSize: Math.max(64, length + 1), maxOutputLength: length + 1 });
  if (data.length !== length) throw new Error(`coded weights have ${data.length} bytes and not ${length}`);
  return data;
}

/** A name without a dialect does not compile. */
const DIALECTS: Readonly<Record<DialectName, () => Promise<LoadPackage>>> = {
  'open-inference': async () => (await import('../families/remote/dialects/open-inference.ts')).loadOpenInference,
  rerank: async () => (await import('../families/remote/dialects/rerank.ts')).loadRerank,
  'system-one': async () => (await import('../families/remote/dialects/system-one.ts')).loadSystemOne,
  embeddings: async () => (await import('../families/remote/dialects/embeddings.ts')).loadEmbeddings,
  chat: async () => (await import('../families/remote/dialects/chat.ts')).loadChat,
};

/** Loads a package of the family. Throws InvalidOptions, or what the dialect throws. */
export async function loadRemote(parts: FamilyParts): Promise<Family> {
  const problems: string[] = [];
  const dialect = new Checker(parts.options, 'options', problems).oneOf('dialect', DIALECT_NAMES);
  if (problems.length > 0) throw new InvalidOptions(problems);
  const loadPackage = await DIALECTS[dialect]();
  return await loadPackage(parts);
}
