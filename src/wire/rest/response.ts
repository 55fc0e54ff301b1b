/** What a call over REST is answered with: a status, headers and a body. */
import type { Exchange } from '../http/exchange.ts';
import { factHeaders, type WholeResponse } from '../http/response.ts';
import type { Route } from './routes.ts';

/** The response with the message that the procedure returned. */
export function responseOf({ facts, caller }: Exchange, route: Route, message: object): WholeResponse {
  const headers = factHeaders(facts);
  const location = route.location(message);
  if (location !== undefined) headers.location = location;
  // The times of stages reveal what engines have in their caches and what they do for others. The holder of a key can
  // be held to account for what it finds out.
  if (facts.timings !== undefined && caller.kind === 'key') headers['server-timing'] = serverTiming(facts.timings);
  return { status: route.successStatus, headers, body: route.write(message) };
}

/** The header's value (W3C): `{queue: 0.1, infer: 5.25}` becomes `queue;dur=0.10, infer;dur=5.25`; milliseconds. */
function serverTiming(timings: Readonly<Record<string, number>>): string {
  return Object.entries(timings)
    .map(([stage, duration]) => `${stage};dur=${duration.toFixed(2)}`)
    .join(', ');
}
