/**
 * The log for people: where the output is a terminal, a line of the log becomes a line that can be read. Programs get
 * JSON: whatever is not a terminal does, such as `npm start | cat`.
 */

type Fields = Readonly<Record<string, unknown>>;

/** A line of JSON as a person reads it, with its end. */
export function readable(json: string): string {
  const fields = JSON.parse(json) as Fields;
  const text =
    fields.msg === 'request' ? requestText(fields) : fields.msg === 'listening' ? greeting(fields) : otherText(fields);
  const level = fields.level === 'info' || fields.level === 'debug' ? '' : `${String(fields.level).toUpperCase()} `;
  return `${String(fields.time).slice(11, 19)} ${level}${text}\n`;
}

function requestText({ method, route, status, durationMs, model, reason }: Fields): string {
  const found = [method, route, status, `${durationMs} ms`, model, reason];
  return found.filter((each) => each !== undefined).join(' ');
}

/** What is running, how to ask it, and what to read. */
function greeting({ version, host, port, tls, store }: Fields): string {
  if (typeof port === 'string')
    return `Umpire ${version} listens on the Unix socket ${port}. Catalogs and keys: ${store}`;
  const everywhere = host === '::' || host === '0.0.0.0';
  const name = everywhere ? 'localhost' : String(host).includes(':') ? `[${host}]` : host;
  const url = `${tls === true ? 'https' : 'http'}://${name}:${port}`;
  const who = everywhere
    ? 'whoever reaches this machine may ask it (HOST=127.0.0.1: this machine alone)'
    : 'this address alone';
  return `Umpire ${version} listens on ${url}: ${who}
  Catalogs and keys: ${store}
  Ask it: the commands under "Decide" in README.md. What is served: ${url}/
  Read on: README.md, docs/asking-well.md; to stop it, press Ctrl+C`;
}

function otherText({ msg, level: _level, time: _time, err, ...rest }: Fields): string {
  const details = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const why = (err as { message?: string; stack?: string } | undefined)?.stack;
  return [
    msg,
    ...(details.length === 0 ? [] : [`(${details.join(', ')})`]),
    ...(why === undefined ? [] : [`\n${why}`]),
  ].join(' ');
}
