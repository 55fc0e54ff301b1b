/**
 * Makes rows by the rules of a package, and has a server compute all rows of a decision: in batches, as many at a time
 * as it may be asked, given up together when one fails. Rows of ids share a request only with rows of their length:
 * nothing is padded.
 */
import type { TextTokenizer } from '../../text/tokenizer.ts';
import type { Premise } from '../family.ts';
import { allTogether, batchesWithin, type JobCall, type RequestBounds } from '../remote/calls.ts';
import { fill, type RowTexts, textsOf } from '../remote/options.ts';
import { createPace, type RemoteServer } from '../remote/remote-server.ts';
import type { ReadChoice } from '../remote/scorer.ts';
import type { InferenceConnection } from './connection.ts';
import type { InputTensor, OpenInferenceOptions, RowRule } from './options.ts';
import { idsRow } from './rows.ts';
import { inferRequest, outputOf, type Row, rowBytes } from './tensors.ts';

/** The server's numbers for each row, in the order of the rows. Rejects with CallFailed. */
export type InferRows = (rows: readonly Row[], call: JobCall) => Promise<readonly Float64Array[]>;

/** Sends rows to one server, in the form that the options say. */
export function createInferRows(
  server: Pick<RemoteServer<InferenceConnection>, 'call'>,
  options: OpenInferenceOptions,
): InferRows {
  const { inputs, output, bounds } = options;
  let sequence = 0;

  const inferBatch = (rows: readonly Row[], call: JobCall) => {
    const bytes = rows.reduce((sum, row) => sum + rowBytes(row, inputs), 0);
    return server.call({ rows: rows.length, bytes }, call, async (connection, terms) => {
      const id = String(++sequence);
      return outputOf(await connection.infer(inferRequest(rows, options, id), terms), output, {
        rows: rows.length,
        id,
      });
    });
  };

  return async (rows, call) => {
    const results = new Array<Float64Array>(rows.length);
    await allTogether(batchesOf(rows, inputs, bounds), call, async (places, part) => {
      const batch = places.map((place) => rows[place] as Row);
      const { values, width } = await inferBatch(batch, part);
      for (const [i, place] of places.entries()) results[place] = values.subarray(i * width, (i + 1) * width);
    });
    return results;
  };
}

/** The places of the rows in each request. The same rows always make the same requests. */
export function batchesOf(
  rows: readonly Row[],
  inputs: readonly InputTensor[],
  bounds: RequestBounds,
): readonly (readonly number[])[] {
  const byLength = Map.groupBy(rows.keys(), (place) => {
    const row = rows[place] as Row;
    return 'ids' in row ? row.ids.length : 0;
  });
  return [...byLength.values()].flatMap((places) =>
    batchesWithin(places, (place) => rowBytes(rows[place] as Row, inputs), bounds),
  );
}

/** Makes a row of a premise alone, or one of each choice. Rejects with JobStopped when the job is no longer wanted. */
export interface RowMaker {
  ofPremise(rule: RowRule, premise: Premise, signal: AbortSignal): Promise<Row>;
  ofChoices(
    rule: RowRule,
    premise: Premise | undefined,
    choices: readonly ReadChoice[],
    signal: AbortSignal,
  ): Promise<readonly Row[]>;
}

/** A maker that tokenises only what has not been tokenised, and only once what does not depend on the choice. */
export function createRowMaker(tokenizer: TextTokenizer): RowMaker {
  const makeRow = (rule: RowRule, texts: RowTexts, known: Map<string, readonly number[]>): Row =>
    rule.kind === 'ids'
      ? idsRow(rule.sequence, texts, tokenizer, known)
      : rule.templates.map((template) => fill(template, texts));

  return {
    async ofPremise(rule, premise, signal) {
      await createPace(signal)();
      return makeRow(rule, textsOf(premise), new Map());
    },
    async ofChoices(rule, premise, choices, signal) {
      const pace = createPace(signal);
      const known = new Map<string, readonly number[]>();
      const texts = premise === undefined ? {} : textsOf(premise);
      const rows: Row[] = [];
      for (const choice of choices) {
        rows.push(makeRow(rule, { ...texts, choice }, known));
        await pace();
      }
      return rows;
    },
  };
}
