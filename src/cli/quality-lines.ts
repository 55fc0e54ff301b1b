/** The quality of answers as lines for a terminal. */
import type { AnswerQuality, Share } from '../domain/learning/quality.ts';

/** A share as `81.3 %`. */
export function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}

/** A share with its interval, as `81.3 % (95 % interval 78.0 to 84.2 %)`. */
function interval({ share, low, high }: Share): string {
  return `${percent(share)} (95 % interval ${(100 * low).toFixed(1)} to ${percent(high)})`;
}

/** Accuracy, macro-F1, log loss and calibration error, in two lines. */
export function figureLines({ accuracy, macroF1, logLoss, ece }: AnswerQuality): readonly string[] {
  return [
    `right answers: ${interval(accuracy)}`,
    `macro-F1 ${macroF1.toFixed(3)}, log loss ${logLoss.toFixed(4)}, calibration error (ECE) ${ece.toFixed(3)}`,
  ];
}

/** The table of thresholds: for each target accuracy, the lowest confidence at which it is reached. */
export function thresholdLines({ thresholds }: AnswerQuality): readonly string[] {
  return [
    'to be right  act at or above  share of texts  right there',
    ...thresholds.map(({ target, threshold, coverage, accuracy }) => {
      const head = percent(target).padEnd(13);
      if (threshold === undefined || coverage === undefined || accuracy === undefined)
        return `${head}no confidence is enough`;
      return `${head}${threshold.toFixed(3).padEnd(17)}${percent(coverage).padEnd(16)}${interval(accuracy)}`;
    }),
  ];
}
