/**
 * What every part of `replicas` runs: three replicas behind nginx, a key, a catalog, and callers that keep calling.
 */
import { createStores } from '../../src/stores/create-stores.ts';
import { parseStoreSettings } from '../../src/stores/settings.ts';
import { SILENT_LOG } from '../../src/stores/stores.ts';
import { decisionOf, grpcFault, restFault } from '../../test/support/decision-calls.ts';
import { type GrpcClients, openGrpc } from '../../test/support/grpc.ts';
import { openTls, type TlsCaller } from '../../test/support/http.ts';
import type { Calls, Tally } from '../../test/support/keep-calling.ts';
import { issueKey } from '../../test/support/keys.ts';
import { startProxy, type TestProxy } from '../../test/support/nginx.ts';
import { type Replica, type ReplicaPlace, startReplicas } from '../../test/support/replicas.ts';

/** A running deployment and its clients. */
export interface Deployment {
  readonly replicas: readonly Replica[];
  readonly proxy: TestProxy;
  readonly rest: TlsCaller;
  readonly grpc: GrpcClients;
  /** The headers with the key of an owner who has the catalog `teams`. */
  readonly headers: { readonly authorization: string };
  /** The headers with a new key that has limits of its own. */
  limitedKey(perSecond: number, burst: number): Promise<{ readonly authorization: string }>;
  stop(): Promise<void>;
}

/** Limits far above what is sent: every request asks Redis, and none is refused. */
const LIMITS = {
  UMPIRE_RATE_ANONYMOUS: '10000/s',
  UMPIRE_BODIES_ANONYMOUS: 'off',
  UMPIRE_BODIES_KEY: 'off',
  UMPIRE_BODIES_ALL: 'off',
  UMPIRE_RATE_KEY: '10000/s',
  UMPIRE_CONCURRENCY_ANONYMOUS: '1000',
  UMPIRE_CONCURRENCY_KEY: '1000',
};

/**
 * Starts a deployment. `store`: the settings with which replicas find Redis; `here`: those of this process, if others.
 */
export async function startDeployment(
  store: Record<string, string>,
  options: {
    readonly env?: Record<string, string>;
    readonly here?: Record<string, string>;
    readonly places?: readonly ReplicaPlace[];
  } = {},
): Promise<Deployment> {
  const { env = {}, here = store, places } = options;
  const stores = await createStores(parseStoreSettings(here).value, SILENT_LOG);
  const settings = { ...store, ...LIMITS, UMPIRE_LISTEN_WHEN: 'ready', UMPIRE_DRAIN_DELAY: '1', ...env };
  const replicas = await startReplicas({ UMPIRE_TRUSTED_PROXIES: '127.0.0.1', ...settings }, places);
  const proxy = await startProxy(
    replicas.map(({ at }) => at),
    { workers: 2 },
  );
  const rest = openTls(proxy.port, proxy.certificate.cert);
  const grpc = openGrpc(proxy.port, proxy.certificate.cert);
  const { headers } = await issueKey(stores, 'acme');
  const draft = JSON.stringify({ id: 'teams', model: 'minilm-l6', choices: decisionOf(0).choices });
  const { status, text } = await rest.send({ path: '/v1/catalogs', headers, body: draft });
  if (status !== 201) throw new Error(`the catalog was not made: ${text}`);
  return {
    ...{ replicas, proxy, rest, grpc, headers },
    limitedKey: async (perSecond, burst) => (await issueKey(stores, 'limited', { rate: { perSecond, burst } })).headers,
    async stop() {
      rest.close();
      grpc.close();
      await proxy.stop();
      await Promise.all(replicas.map(({ server }) => server.kill()));
      await stores.close();
    },
  };
}

/** Decisions with choices in the request, over both protocols, with and without a key. */
export function inlineCalls({ rest, grpc, headers }: Deployment, callers: number, pause: number): readonly Calls[] {
  const body = (turn: number): string => JSON.stringify(decisionOf(turn));
  return [
    {
      name: 'REST decisions',
      ...{ callers, pause },
      call: async (turn) => restFault(await rest.send({ headers: turn % 2 === 0 ? headers : {}, body: body(turn) })),
    },
    {
      name: 'gRPC decisions',
      ...{ callers, pause },
      call: (turn) => grpcFault(grpc.decisions, turn, turn % 2 === 0 ? headers : {}),
    },
  ];
}

let catalogs = 0;

/** Decisions with a catalog, and catalogs that are created and deleted. */
export function catalogCalls({ rest, headers }: Deployment, callers: number, pause: number): readonly Calls[] {
  return [
    {
      name: 'catalog decisions',
      ...{ callers, pause },
      call: async (turn) => {
        const body = JSON.stringify({ ...decisionOf(turn), choices: undefined, catalog: 'teams' });
        return restFault(await rest.send({ headers, body }));
      },
    },
    {
      name: 'catalogs made and deleted',
      callers: 1,
      pause,
      call: async () => {
        const id = `made-${catalogs++}`;
        const body = JSON.stringify({ id, model: 'minilm-l6', choices: decisionOf(0).choices });
        const made = await rest.send({ path: '/v1/catalogs', headers, body });
        if (made.status !== 201) return `making: ${restFault(made)}`;
        const gone = await rest.send({ method: 'DELETE', path: `/v1/catalogs/${id}`, headers });
        return gone.status === 204 ? undefined : `deleting: ${restFault(gone)}`;
      },
    },
  ];
}

/** The head of a table of tallies. */
export const TALLY_HEAD = ['', 'sent', 'answered', 'failed', 'longest ms'];

/** A row of a table of tallies. */
export function tallyRow({ name, sent, answered, failed, longest }: Tally, when: string): readonly string[] {
  return [`${when}: ${name}`, String(sent), String(answered), String(failed), longest.toFixed(0)];
}

/** Prints what went wrong, below a table. */
export function printFaults(tallies: readonly Tally[]): void {
  for (const { name, faults } of tallies) {
    for (const [fault, times] of Object.entries(faults)) console.log(`${name}: ${times} × ${fault}`);
  }
}
