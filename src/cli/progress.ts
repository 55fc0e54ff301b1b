/** A progress bar on a terminal, with the rate and the time left. */
import type { Terminal } from './command.ts';

/** How far a command has come. */
export interface Done {
  readonly lines: number;
  readonly errors: number;
  /** The share that is done, from 0 to 1; undefined where the whole is not known. */
  readonly share: number | undefined;
}

/** A bar that is shown until it is closed. */
export interface Progress {
  close(): void;
}

/** Milliseconds between two updates. */
const INTERVAL_MS = 250;
/** Updates that the rate is the mean of: ten seconds. */
const SAMPLES = 40;
/** Characters of the bar. */
const BAR = 24;

/** Shows what `done` returns, every `INTERVAL_MS`; nothing where standard error is not a terminal. */
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

/** The text of the bar. `rate`: lines per second. `pace`: share of the whole per second. */
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
