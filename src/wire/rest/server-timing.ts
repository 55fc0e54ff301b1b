/**
 * The `Server-Timing` header (W3C): where a decision's time went. Only callers with a key are told: how long a stage took says what engines had in their
 * caches and what others had them do, and whoever holds a key can be held to account for what it finds out.
 */

/** `{queue: 0.1, infer: 5.25}` becomes `queue;dur=0.10, infer;dur=5.25`; milliseconds. */
export function serverTiming(timings: Readonly<Record<string, number>>): string {
  let header = '';
  for (const stage in timings) {
    header += `${header === '' ? '' : ', '}${stage};dur=${(timings[stage] as number).toFixed(2)}`;
  }
  return header;
}
