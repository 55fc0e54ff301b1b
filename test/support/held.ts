/** What a service's port holds, as a test waits for it. */
import type { HoldingState } from '../../src/wire/holdings/holdings.ts';
import type { TestService } from './service.ts';

/** Waits until what the port holds is as wanted; throws with what it is instead. */
export async function untilHeld(
  { app }: TestService,
  wanted: (state: HoldingState) => boolean,
  timeout = 15_000,
): Promise<HoldingState> {
  const deadline = performance.now() + timeout;
  for (;;) {
    const state = app.holdings();
    if (wanted(state)) return state;
    if (performance.now() > deadline) throw new Error(`the port holds ${JSON.stringify(state)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
