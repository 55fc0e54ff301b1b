/** The `Server-Timing` header (W3C): where a decision's time went. */

/** `{queue: 0.1, infer: 5.25}` becomes `queue;dur=0.10, infer;dur=5.25`; milliseconds. */
export function serverTiming(timings: Readonly<Record<string, number>>): string {
  let header = '';
  for (const stage in timings) {
    header += `${header === '' ? '' : ', '}${stage};dur=${(timings[stage] as number).toFixed(2)}`;
  }
  return header;
}
