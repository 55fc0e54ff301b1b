/** `umpire mcp`: gives agents the tools to decide, over standard input and output or over HTTP. */
import { once } from 'node:events';
import { readArguments } from './arguments.ts';
import { serveSite, serviceFrom } from './bridge.ts';
import { type Command, option, repeatable } from './command.ts';
import { keyFrom } from './decide/decide.ts';

const OPTIONS = {
  url: option('URL', 'where the service listens, such as http://localhost:8080; needed'),
  model: option('NAME', 'the model of decisions that name none', 'umpire-mini'),
  catalog: repeatable('ID', 'a catalog that list_catalogs shows to whom it belongs'),
  port: option('PORT', 'serves streamable HTTP there, at /mcp', 'stdio'),
  host: option('ADDRESS', 'the address to listen on', '127.0.0.1'),
  'metrics-port': option('PORT', 'where GET /metrics is served', 'off'),
} as const;

/** The command `umpire mcp`. */
export const MCP_COMMAND: Command = {
  name: 'mcp',
  usage: '--url URL [OPTION]…',
  summary: 'gives agents tools that decide, over the Model Context Protocol',
  notes: [
    'It runs until it is stopped, or its standard input ends. Over HTTP every caller sends its own key as Authorization: Bearer; otherwise the key is UMPIRE_KEY.',
  ],
  options: OPTIONS,
  environment: ['UMPIRE_KEY', 'LOG_LEVEL', 'UMPIRE_DRAIN_DELAY'],
  async run(args, terminal) {
    const { values } = readArguments(args, OPTIONS);
    const options = { model: values.model ?? 'umpire-mini', catalogs: values.catalog ?? [] };
    if (values.port !== undefined) {
      const { McpSite } = await import('../mcp/site.ts');
      await serveSite(values, values.port, terminal, (umpire) => new McpSite(options, umpire));
      return;
    }
    const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
    const { toolServer } = await import('../mcp/tools.ts');
    const { Umpire } = await import('../front/umpire.ts');
    const umpire = new Umpire(serviceFrom(values.url));
    const key = await keyFrom({}, terminal);
    const headers: Readonly<Record<string, string>> = key === undefined ? {} : { authorization: `Bearer ${key}` };
    const handle = serveStdio(() => toolServer(options, umpire, headers));
    await Promise.race([terminal.interrupted(), once(process.stdin, 'close')]);
    await handle.close();
    umpire.close();
  },
};
