/** A client of Node's inspector: commands and events of the Chrome DevTools Protocol over its WebSocket. */
import { once } from 'node:events';

/** A process under inspection. */
export interface Inspector {
  /** Sends a command and resolves to its result. @throws Error with the inspector's own message. */
  send<T>(method: string, params?: object): Promise<T>;
  /** Calls `listener` with each event of this name. */
  on<T>(event: string, listener: (params: T) => void): void;
  close(): void;
}

/** Milliseconds that it may take to open the inspector, on a busy machine, too. */
const PATIENCE = 20_000;

/** Opens the inspector of a process on this machine, at the port of its `--inspect-port`. */
export async function attach(pid: number, port: number): Promise<Inspector> {
  process.kill(pid, 'SIGUSR1');
  const socket = new WebSocket(await addressOf(port));
  await once(socket, 'open');
  const pending = new Map<number, PromiseWithResolvers<never>>();
  const listeners = new Map<string, (params: never) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, method, params, result, error } = JSON.parse(String(data));
    if (id === undefined) return listeners.get(method)?.(params as never);
    if (error === undefined) pending.get(id)?.resolve(result as never);
    else pending.get(id)?.reject(new Error(error.message));
    pending.delete(id);
  });
  let last = 0;
  return {
    send(method, params = {}) {
      last += 1;
      const answer = Promise.withResolvers<never>();
      pending.set(last, answer);
      socket.send(JSON.stringify({ id: last, method, params }));
      return answer.promise;
    },
    on: (event, listener) => void listeners.set(event, listener as (params: never) => void),
    close: () => socket.close(),
  };
}

async function addressOf(port: number): Promise<string> {
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    const targets = await fetch(`http://127.0.0.1:${port}/json/list`).then(
      (answer) => answer.json() as Promise<{ webSocketDebuggerUrl: string }[]>,
      () => [],
    );
    const address = targets[0]?.webSocketDebuggerUrl;
    if (address !== undefined) return address;
    if (performance.now() > deadline) throw new Error(`nothing can be inspected at port ${port}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
