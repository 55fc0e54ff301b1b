/**
 * A real nginx with the configuration that deploy/nginx ships, in front of replicas; ended with the test's
 * process at the latest.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Certificate, makeCertificate } from './certificates.ts';
import { outputOf } from './output.ts';
import { freePort, until } from './redis.ts';
import { temporaryFolder } from './temporary-folder.ts';

const CONFIGURATION = fileURLToPath(new URL('../../deploy/nginx/umpire.conf', import.meta.url));

const children = new Set<ChildProcess>();
process.on('exit', () => {
  // A killed master would leave its workers behind.
  for (const child of children) child.kill('SIGTERM');
});

/** A running proxy. */
export interface TestProxy {
  readonly host: string;
  readonly port: number;
  /** The port of HTTP/2 where it speaks no TLS; `port` itself else. */
  readonly http2Port: number;
  /** What it speaks TLS with, for `localhost` and 127.0.0.1. */
  readonly certificate: Certificate;
  /** What nginx wrote in its error log. */
  output(): string;
  stop(): Promise<void>;
}

export interface ProxyOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 1; each keeps connections of its own. */
  readonly workers?: number;
  /** Connections of a worker, to callers and to replicas; nginx's default if undefined. */
  readonly connections?: number;
  /** Without TLS: HTTP/1.1 on `port` and HTTP/2 with prior knowledge on `http2Port`. */
  readonly cleartext?: boolean;
  /** What runs nginx, such as `ip netns exec NAME`. */
  readonly within?: readonly string[];
}

/**
 * Starts one in front of replicas, each `host:port`. Of the configuration only addresses, ports and files are replaced.
 */
export async function startProxy(replicas: readonly string[], options: ProxyOptions = {}): Promise<TestProxy> {
  const { host = '127.0.0.1', workers = 1, within = [], cleartext = false, connections } = options;
  const certificate = makeCertificate('umpire.example');
  const folder = temporaryFolder();
  const port = await freePort();
  const http2Port = cleartext ? await freePort() : port;
  const listen = cleartext
    ? `listen ${host}:${port}; listen ${host}:${http2Port} http2;`
    : `listen ${host}:${port} ssl http2;`;
  const events = connections === undefined ? '' : `worker_connections ${connections};`;
  const file = join(folder, 'nginx.conf');
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  // Started as root its workers would be somebody else, who may not use the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  writeFileSync(
    file,
    `daemon off; ${user} worker_processes ${workers}; pid ${folder}/pid; error_log stderr info;
     events { ${events} } http { access_log off; ${paths.join(' ')}\n${site(listen, replicas, certificate)}\n}`,
  );
  execFileSync('nginx', ['-t', '-q', '-e', 'stderr', '-c', file], { stdio: 'pipe' });
  const [command = 'nginx', ...prefix] = [...within, 'nginx'];
  const child = spawn(command, [...prefix, '-e', 'stderr', '-c', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  children.add(child);
  const exited = once(child, 'exit').then(() => children.delete(child));
  const output = outputOf(child.stderr);
  await until(() => child.exitCode !== null || accepts(host, port));
  if (child.exitCode !== null) throw new Error(`nginx did not start:\n${output()}`);
  return {
    host,
    port,
    http2Port,
    certificate,
    output,
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** The shipped configuration with addresses, ports and files of this machine. */
function site(listen: string, replicas: readonly string[], certificate: Certificate): string {
  const [, settings = ''] = /server umpire-1\S+( [^;]*);/.exec(readFileSync(CONFIGURATION, 'utf8')) ?? [];
  return readFileSync(CONFIGURATION, 'utf8')
    .replaceAll(/server umpire-1[\s\S]*?umpire-3[^;]*;/g, replicas.map((at) => `server ${at}${settings};`).join('\n  '))
    .replace('listen 443 ssl http2;', listen)
    .replace('/etc/nginx/tls/tls.crt', certificate.certFile)
    .replace('/etc/nginx/tls/tls.key', certificate.keyFile);
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
