/** The `Server-Timing` header (W3C): where a decision's time went. */

/** `{queue: 0.1, infer: 5.25}` becomes `queue;dur=0.10, infer;dur=5.25`; milliseconds. */
export function serverTiming(timings: Readonly<Record<string, number>>): string {
  return Object.entries(timings)
    .map(([stage, milliseconds]) => `${stage};dur=${milliseconds.toFixed(2)}`)
    .join(', ');
}
