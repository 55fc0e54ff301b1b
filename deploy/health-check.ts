/**
 * Exits 0 if the service of this container is ready, else 1. Asks the port of the metrics, where there is one: callers
 * cannot fill it. The certificate's name is not checked: it is asked as 127.0.0.1.
 */
import { get as getClear } from 'node:http';
import { get as getOverTls } from 'node:https';

const own = process.env.UMPIRE_METRICS_PORT;
const port = own && own !== '0' ? own : process.env.PORT || '8080';
const place = port.startsWith('/') ? { socketPath: port } : { host: '127.0.0.1', port };
const PATH = '/health/ready';
const answered = (status: number | undefined): void => process.exit(status === 200 ? 0 : 1);
const request =
  process.env.TLS_CERT && port !== own
    ? getOverTls({ host: '127.0.0.1', port, path: PATH, rejectUnauthorized: false }, ({ statusCode }) =>
        answered(statusCode),
      )
    : getClear({ ...place, path: PATH }, ({ statusCode }) => answered(statusCode));
request.setTimeout(4000, () => answered(undefined));
request.on('error', () => answered(undefined));
