/** The door of a pool's queue: who is let in, and in a flood who need not even be read. */
import type { CallerTerms, JobTerms } from '../engine.ts';
import { DeadlineTooShort, EngineOverloaded } from '../errors.ts';
import type { EngineSettings } from '../options.ts';
import type { EngineProcess } from '../processes/engine-process.ts';
import type { EngineSlot } from '../processes/engine-slot.ts';
import { type Admission, type AdmissionCase, admit } from './admission.ts';
import type { FairQueue } from './fair-queue.ts';
import type { Job } from './job.ts';
import { createRecentRefusals } from './refusals.ts';

/** The door. */
export interface Door {
  /**
   * @throws EngineOverloaded if the job cannot be done in time by these engines, or has no place in the queue; DeadlineTooShort if it could not be done
   * in time by an idle one.
   */
  admit(job: Job, engines: readonly EngineProcess[], arrived: number): void;
  /** See `Engine.crowded`. */
  crowded(terms: CallerTerms): number | undefined;
}

type Comer = Pick<AdmissionCase, 'keyed' | 'bytes' | 'cost' | 'timeLeft'> & Pick<JobTerms, 'tenant'>;

/** What an engine takes from its start to its first decision, milliseconds. */
const typicalStart = 1500;

/** The part of a caller's time that a decision which nobody has read is taken to need at the most. */
const unreadShare = 0.01;

/** A door before a queue. */
export function createDoor(
  settings: Pick<EngineSettings, 'queueJobs' | 'queueBytes'>,
  queue: Pick<FairQueue<Job>, 'backlog' | 'costAhead'>,
  slots: readonly EngineSlot[],
): Door {
  const refusals = createRecentRefusals();

  const judge = (comer: Comer, engines: readonly EngineProcess[]): Admission => {
    const outage = engines.length > 0 ? 0 : Math.min(...slots.map(({ restartsIn }) => restartsIn)) + typicalStart;
    const inFlight = engines.reduce((sum, process) => sum + process.remaining(), 0);
    return admit({
      ...comer,
      ahead: inFlight + queue.costAhead(comer.tenant, comer.keyed, 0),
      engines: Math.max(
        1,
        engines.reduce((sum, { concurrency }) => sum + concurrency, 0),
      ),
      outage,
      all: queue.backlog('all'),
      anonymous: queue.backlog('anonymous'),
      maxJobs: settings.queueJobs,
      maxBytes: settings.queueBytes,
    });
  };

  return {
    admit({ keyed, bytes, cost, tenant, deadline }, engines, arrived) {
      const timeLeft = deadline - arrived;
      // It says nothing of how much there is to do: no overload, and no sign of a flood.
      if (cost > timeLeft) throw new DeadlineTooShort(cost, timeLeft);
      const admission = judge({ keyed, bytes, cost, tenant, timeLeft }, engines);
      if (admission.kind === 'admitted') return;
      refusals.note(cost, arrived);
      throw new EngineOverloaded(admission.retryAfter);
    },
    crowded({ tenant, keyed, deadline }) {
      const engines = slots.flatMap(({ process }) => process ?? []);
      const now = performance.now();
      const cheapest = refusals.cheapest(now);
      const timeLeft = deadline - now;
      if (cheapest === undefined || timeLeft <= 0) return undefined;
      const cost = Math.min(cheapest, unreadShare * timeLeft);
      const admission = judge({ keyed, bytes: 0, cost, tenant, timeLeft }, engines);
      return admission.kind === 'refused' ? admission.retryAfter : undefined;
    },
  };
}
