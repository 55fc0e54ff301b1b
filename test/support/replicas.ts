/**
 * Replicas of one service: whole servers, each on an address of its own, so that one which starts again
 * finds its port free.
 */
import { lightModel } from './light-model.ts';
import { freePort } from './redis.ts';
import { type ServerProcess, startServer } from './server-process.ts';

/** One of them; `server` is its present process. */
export interface Replica {
  /** `host:port`. */
  readonly at: string;
  readonly host: string;
  readonly port: number;
  readonly server: ServerProcess;
  /** SIGTERM, and when the process has ended a new one, ready. Resolves to the exit status of the old one. */
  restart(): Promise<number | null>;
}

/** Where one runs; `within` is what runs it, such as `ip netns exec NAME`. */
export interface ReplicaPlace {
  readonly host: string;
  readonly within?: readonly string[];
}

/** Three addresses of this machine. */
const LOCAL_PLACES: readonly ReplicaPlace[] = ['127.0.0.11', '127.0.0.12', '127.0.0.13'].map((host) => ({
  host,
}));

/** Starts one at each place, with one engine and the light model each. Resolves once all are ready. */
export async function startReplicas(
  env: Record<string, string>,
  places: readonly ReplicaPlace[] = LOCAL_PLACES,
): Promise<readonly Replica[]> {
  const models = lightModel();
  return Promise.all(
    places.map(async ({ host, within }) => {
      const port = await freePort();
      const start = (): Promise<ServerProcess> =>
        startServer({ UMPIRE_MODELS_DIR: models, ...env, HOST: host, PORT: String(port) }, within);
      let server = await start();
      return {
        at: `${host}:${port}`,
        host,
        port,
        get server() {
          return server;
        },
        async restart() {
          const status = await server.stop();
          server = await start();
          return status;
        },
      };
    }),
  );
}
