/**
 * Labelled decisions, read from a folder of files `<set>.jsonl` or `<set>.jsonl.gz`. The first line of a file is
 *
 *     {"meta": {"set", "labels": [...] or null, "licence", "sources", "notes",
 *               "pairs"?: true, "kind"?: "ordinal", "language"?: "de"}}
 *
 * and every other line `{"input", "instruction", "choices": [...] or null, "label"}`, where `null` means the set's
 * labels. In a set of pairs every two rows are a question and its negation.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/** One labelled decision. */
export interface Row {
  readonly input: string;
  readonly instruction: string;
  readonly choices: readonly string[];
  readonly label: string;
}

/** The rows of one set. */
export interface DataSet {
  readonly name: string;
  /** The kind of question that it asks, if its meta line has one. */
  readonly kind: string | undefined;
  /** The language of its texts, if its meta line has one. */
  readonly language: string | undefined;
  /** Whether all rows have the same choices. */
  readonly fixedChoices: boolean;
  readonly pairs: boolean;
  readonly rows: readonly Row[];
}

/** Which sets of a folder are read, and how much of each. */
export interface Selection {
  /** The names of the sets; without it all are read. */
  readonly sets?: readonly string[];
  /** The most rows of a set, spread evenly over it; without it all rows. Pairs stay together. */
  readonly rows?: number;
}

/**
 * Reads the sets in the order of their names, or in the order in which they are named. Throws if the folder has none,
 * if a named one is missing, or if a file does not have the format.
 */
export function readDataSets(folder: string, { sets, rows }: Selection = {}): readonly DataSet[] {
  const files = new Map(
    readdirSync(folder)
      .filter((file) => /\.jsonl(\.gz)?$/.test(file))
      .map((file) => [file.replace(/\.jsonl(\.gz)?$/, ''), join(folder, file)]),
  );
  const names = sets ?? [...files.keys()].sort();
  if (names.length === 0) throw new Error(`${folder} holds no data sets`);
  return names.map((name) => {
    const file = files.get(name);
    if (file === undefined) throw new Error(`${folder} has no set '${name}'`);
    const set = readDataSet(name, file);
    return rows === undefined ? set : { ...set, rows: spread(set.rows, rows, set.pairs ? 2 : 1) };
  });
}

/**
 * The sets of several folders, one folder after another. A named set may be in any of them. Throws as `readDataSets`
 * does.
 */
export function readFolders(folders: readonly string[], { sets, rows }: Selection = {}): readonly DataSet[] {
  const all = folders.flatMap((folder) => readDataSets(folder, rows === undefined ? {} : { rows }));
  const missing = sets?.find((name) => all.every((set) => set.name !== name));
  if (missing !== undefined) throw new Error(`${folders.join(', ')}: there is no set '${missing}'`);
  return sets === undefined ? all : sets.flatMap((name) => all.filter((set) => set.name === name));
}

function readDataSet(name: string, file: string): DataSet {
  const bytes = readFileSync(file);
  const lines = (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8').split('\n').filter(Boolean);
  const [first, ...rest] = lines.map((line) => JSON.parse(line));
  const meta = first?.meta;
  if (typeof meta !== 'object' || meta === null) throw new Error(`${file} does not begin with its meta line`);
  const rows = rest.map((row, place): Row => {
    const choices = row.choices ?? meta.labels;
    if (!Array.isArray(choices) || !choices.includes(row.label)) {
      throw new Error(`${file}, line ${place + 2}: the label is not one of the choices`);
    }
    return { input: row.input, instruction: row.instruction, choices, label: row.label };
  });
  const { kind, language } = meta;
  return { name, kind, language, fixedChoices: Array.isArray(meta.labels), pairs: meta.pairs === true, rows };
}

function spread(rows: readonly Row[], most: number, unit: number): readonly Row[] {
  if (rows.length <= most) return rows;
  const units = Math.floor(rows.length / unit);
  const wanted = Math.max(1, Math.floor(most / unit));
  return Array.from({ length: wanted }, (_, i) => Math.floor((i * units) / wanted)).flatMap((place) =>
    rows.slice(place * unit, (place + 1) * unit),
  );
}
