/**
 * Lists of choices in the form that decides: checked, and in code-unit order. Callers send the same list with every
 * request, so the lists seen lately are kept and a list that comes again is recognised instead of being checked and
 * sorted again. The canonical array of a list is the same object each time, by which later stages recognise it in turn.
 */
import { choicesFault } from './choices.ts';
import type { DomainError } from './errors.ts';

/** Lists of choices that were seen lately, checked and sorted. */
export interface ChoiceSets {
  /** The fault in a list, or undefined: see choices.ts. */
  fault(choices: readonly string[]): DomainError | undefined;
  /** The canonical form of a list without fault. */
  sorted(choices: readonly string[]): readonly string[];
}

interface Entry {
  readonly submitted: readonly string[];
  readonly sorted: readonly string[];
  readonly bytes: number;
}

/** Bytes of text that are kept in all, and the length from which a list is not kept at all. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_LIST_BYTES = 256 * 1024;

/** Bounded, least recently used first to go. */
export function createChoiceSets(): ChoiceSets {
  const byMark = new Map<string, Entry>();
  // The array that was checked leads to what was found: from the check of a request to its decision, and on to later
  // requests with that array.
  const byList = new WeakMap<readonly string[], readonly string[]>();
  let bytes = 0;

  const recall = (mark: string, choices: readonly string[]): Entry | undefined => {
    const entry = byMark.get(mark);
    if (entry === undefined || !sameList(entry.submitted, choices)) return undefined;
    byMark.delete(mark);
    byMark.set(mark, entry);
    return entry;
  };
  const keep = (mark: string, choices: readonly string[]): Entry => {
    const entry = { submitted: choices, sorted: choices.toSorted(), bytes: bytesOf(choices) };
    if (entry.bytes > MAX_LIST_BYTES) return entry;
    bytes += entry.bytes - (byMark.get(mark)?.bytes ?? 0);
    byMark.set(mark, entry);
    for (const [oldest, { bytes: freed }] of byMark) {
      if (bytes <= MAX_BYTES) break;
      byMark.delete(oldest);
      bytes -= freed;
    }
    return entry;
  };

  return {
    fault(choices) {
      if (byList.has(choices)) return undefined;
      const mark = markOf(choices);
      let entry = recall(mark, choices);
      if (entry === undefined) {
        const fault = choicesFault(choices);
        if (fault !== undefined) return fault;
        entry = keep(mark, choices);
      }
      byList.set(choices, entry.sorted);
      return undefined;
    },
    sorted: (choices) => byList.get(choices) ?? choices.toSorted(),
  };
}

/**
 * What most lists differ in already; two that do not take turns in one place. Joining the whole list would take longer
 * than comparing it.
 */
function markOf(choices: readonly string[]): string {
  const { length } = choices;
  return `${length} ${choices[0]} ${choices[length >> 1]} ${choices[length - 1]}`;
}

/** About what a list costs: its texts, of up to two bytes a unit, and a header for each. */
function bytesOf(choices: readonly string[]): number {
  return choices.reduce((sum, choice) => sum + 2 * choice.length + 32, 0);
}

function sameList(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index += 1) if (one[index] !== other[index]) return false;
  return true;
}
