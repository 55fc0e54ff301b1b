/** The tools over streamable HTTP, without sessions: each request stands alone and carries its caller's key. */
import {
  createMcpHandler,
  localhostAllowedOrigins,
  type McpHttpHandler,
  type McpServerFactory,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import { ERROR_TABLE } from '../domain/errors.ts';
import type { Exchange, Reply, Site } from '../front/port.ts';
import { Refused } from '../front/refused.ts';
import type { Umpire } from '../front/umpire.ts';
import { type ToolOptions, toolServer } from './tools.ts';

const PATH = '/mcp';
/** Headers that the protocol reads, and those that say whose call it is. */
const READ = ['content-type', 'accept', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'mcp-session-id'] as const;
const TERMS = ['authorization', 'x-request-id', 'x-forwarded-for'] as const;

/** Messages of one request: older revisions of the protocol have batches. */
const MOST_MESSAGES = 16;

/** The site. */
export class McpSite implements Site {
  readonly idHeaders = ['x-request-id'];
  readonly #handler: McpHttpHandler;

  constructor(options: ToolOptions, umpire: Umpire) {
    const factory: McpServerFactory = ({ requestInfo }) =>
      toolServer(
        options,
        umpire,
        headersIn(TERMS, (name) => requestInfo?.headers.get(name)),
      );
    // Nobody has to subscribe to what never changes.
    this.#handler = createMcpHandler(factory, { maxSubscriptions: 0 });
  }

  async serve({ request, path, terms, body }: Exchange): Promise<Reply> {
    if (path !== PATH) throw new Refused('ROUTE_NOT_FOUND', `the tools are at ${PATH}`);
    if (request.method !== 'POST') throw new Refused('METHOD_NOT_ALLOWED', 'this is asked with POST');
    // A page in a browser may not use the server of the machine that it runs on.
    if (!validateOriginHeader(request.headers.origin, localhostAllowedOrigins()).ok)
      throw new Refused('EXPECTATION_FAILED', 'pages of other sites are not served');
    const headers = { ...headersIn(READ, (name) => request.headers[name] as string | undefined), ...terms.headers };
    const bytes = Buffer.from(await body());
    if (messagesIn(bytes) > MOST_MESSAGES)
      throw new Refused('INVALID_VALUE', `a batch has at most ${MOST_MESSAGES} messages`);
    const init = { method: 'POST', headers, body: bytes, signal: terms.signal };
    const response = await this.#handler.fetch(new Request(`http://localhost${PATH}`, init));
    // Nothing is sent before a result, and no stream is left open: the whole answer is there at once.
    const answer = new Uint8Array(await response.arrayBuffer());
    return { status: response.status, body: answer, headers: Object.fromEntries(response.headers) };
  }

  refuse(_: string, { reason, message }: Refused): Reply {
    const headers: Reply['headers'] = reason === 'METHOD_NOT_ALLOWED' ? { allow: 'POST' } : {};
    const { http } = ERROR_TABLE[reason];
    return { status: http, body: { jsonrpc: '2.0', id: null, error: { code: -32_600, message } }, headers };
  }

  routeOf(path: string): string | undefined {
    return path === PATH ? path : undefined;
  }
}

function messagesIn(bytes: Buffer): number {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return Array.isArray(value) ? value.length : 1;
  } catch {
    // The protocol has an answer of its own to what is no JSON.
    return 1;
  }
}

function headersIn(
  names: readonly string[],
  valueFor: (name: string) => string | null | undefined,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, valueFor(name) ?? '']).filter(([, value]) => value !== ''));
}
