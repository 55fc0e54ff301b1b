/** What a service's metrics port says, as a scraper reads it. */
import type { TestService } from './service.ts';

/** One sample of the text format. */
export interface Sample {
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The port of a service that was started with UMPIRE_METRICS_PORT. */
export function metricsPortOf({ log }: TestService): number {
  return log.find(({ msg }) => msg === 'metrics')?.metricsPort as number;
}

/** Samples by name and labels, as they stand in the text. */
export async function scrape(port: number): Promise<ReadonlyMap<string, number>> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await answer.text();
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

/** Takes names and labels apart. */
export function samplesOf(scraped: ReadonlyMap<string, number>): readonly Sample[] {
  return [...scraped].map(([series, value]) => {
    const [, metric = '', labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?$/.exec(series) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    return { metric, labels: Object.fromEntries(pairs.map(([, name, text]) => [name, text])), value };
  });
}
