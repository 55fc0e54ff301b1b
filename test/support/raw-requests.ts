/** HTTP/1.1 requests as bytes, for a bare socket. */
import { VALID_BODY } from './answers.ts';

/** A decision's body, and the header of its length. */
export const text = JSON.stringify(VALID_BODY);
/** A decision with more headers, each with its line's end. */
export const post = (headers: string, body = text): string =>
  `POST /v1/decisions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${headers}\r\n${body}`;
export const length = `Content-Length: ${text.length}\r\n`;
/** A request without a body. */
export const get = (target: string, version = 'HTTP/1.1', headers = 'Host: a\r\n'): string =>
  `GET ${target} ${version}\r\n${headers}\r\n`;
