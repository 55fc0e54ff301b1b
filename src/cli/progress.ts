/** A bar with rate and time left, on a terminal. */
import type { Terminal } from './command.ts';

/** How far a command is. */
export interface Done {
  readonly lines: number;
  readonly errors: number;
  /** From 0 to 1; undefined where the whole is not known. */
  readonly share: number | undefined;
}

/** A bar that is shown until it is closed. */
export interface Progress {
  close(): void;
}

const INTERVAL_MS = 250;
/** The rate is that of the last seconds. */
const SAMPLES = 40;
const BAR = 24;

/** Shows what `done` says, four times a second; nothing where standard error is no terminal. */
export function showProgress({ status }: Terminal, done: () => Done): Progress {
  if (status === undefined) return { close() {} };
  const samples: { readonly at: number; readonly lines: number; readonly share: number | undefined }[] = [];
  const timer = setInterval(() => {
    const now = done();
    samples.push({ at: performance.now(), lines: now.lines, share: now.share });
    if (samples.length > SAMPLES) samples.shift();
    const [first, last] = [samples[0] as (typeof samples)[number], samples.at(-1) as (typeof samples)[number]];
    const seconds = (last.at - first.at) / 1000;
    const pace =
      now.share === undefined || first.share === undefined
        ? undefined
        : (now.share - first.share) / Math.max(seconds, 1e-3);
    status(progressLine(now, seconds === 0 ? 0 : (last.lines - first.lines) / seconds, pace));
  }, INTERVAL_MS);
  timer.unref();
  return {
    close() {
      clearInterval(timer);
      status('');
    },
  };
}

/** The line. `rate`: lines a second. `pace`: share of the whole a second. */
function progressLine({ lines, errors, share }: Done, rate: number, pace: number | undefined): string {
  const counts = [
    `${lines} lines`,
    ...(errors > 0 ? [`${errors} errors`] : []),
    `${rate.toFixed(rate < 10 ? 1 : 0)}/s`,
  ].join(', ');
  if (share === undefined) return counts;
  const full = Math.round(BAR * share);
  const bar = `[${'#'.repeat(full)}${'-'.repeat(BAR - full)}] ${String(Math.floor(100 * share)).padStart(3)} %`;
  return `${bar}  ${counts}${pace === undefined || pace <= 0 ? '' : `, ${clock((1 - share) / pace)} left`}`;
}

function clock(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number): string => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
