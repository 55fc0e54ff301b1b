/** The log for people: on a terminal each line can be read. Anything else, such as a pipe, gets JSON. */

type Fields = Readonly<Record<string, unknown>>;

/** A line of JSON as a person reads it, in local time, with its end. */
export function readable(json: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(json) as Fields;
  const urgency = level === 'info' || level === 'debug' ? '' : `${String(level).toUpperCase()} `;
  const stack = (err as { stack?: string } | undefined)?.stack;
  const cause = stack === undefined ? '' : `\n${stack}`;
  return `${new Date(String(time)).toTimeString().slice(0, 8)} ${urgency}${textOf(msg, fields)}${cause}\n`;
}

function textOf(message: unknown, fields: Fields): string {
  if (message === 'listening') return greeting(fields);
  if (message === 'request') {
    const { method, route, status, durationMs, model = '', reason = '', cause = '' } = fields;
    return `${method} ${route} ${status} ${durationMs} ms ${model} ${reason} ${cause}`.replaceAll(/ +/g, ' ').trim();
  }
  const details = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return details.length === 0 ? String(message) : `${message} (${details.join(', ')})`;
}

/** What is running, how to ask it, and what to read. */
function greeting({ version, host, port, tls, store }: Fields): string {
  const everywhere = host === '::' || host === '0.0.0.0';
  const name = everywhere ? 'localhost' : String(host).includes(':') ? `[${host}]` : host;
  const url = `${tls === true ? 'https' : 'http'}://${name}:${port}`;
  const place = typeof port === 'string' ? `the Unix socket ${port}` : url;
  const there = place === url && url !== 'http://localhost:8080' ? ` --url ${url}` : '';
  const who = everywhere && place === url ? ': whoever reaches this machine may ask (HOST=127.0.0.1: it alone)' : '';
  return `Umpire ${version} listens on ${place}${who}
  Catalogs and keys: ${store}
  Ask it: bin/umpire ask "I was charged twice" --question "Which team?" billing shipping${there}
  Read on: docs/asking-well.md; what is served: GET /; to stop it, press Ctrl+C`;
}
