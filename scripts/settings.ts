/** Writes the page of settings from the code: `node scripts/settings.ts [FILE]`, by default `docs/settings.md`. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from '../src/config.ts';

/** The headings, each above the setting that begins its part. */
const HEADINGS: ReadonlyMap<string, string> = new Map([
  ['PORT', 'Port and log'],
  ['UMPIRE_MODELS_DIR', 'Models and engines'],
  ['UMPIRE_MAX_CONNECTIONS', 'What clients may hold of the port'],
  ['UMPIRE_REFLECTION', 'Reflection, metrics, draining'],
  ['UMPIRE_DATA_DIR', 'Store'],
  ['UMPIRE_RATE_ANONYMOUS', 'Limits of callers'],
]);

const HEAD = `# Settings

All settings come from the environment. Every problem with them is reported at once, before anything starts. This page is written from the
code by \`npm run gen\`. Traces are set up by [OpenTelemetry's own variables](tracing.md), and tokens for models at servers by
[\`UMPIRE_TOKEN_…\`](remote-models.md).
`;

const parts = SETTINGS.map(({ name, default: otherwise, meaning }) => {
  const heading = HEADINGS.get(name);
  const start = heading === undefined ? '' : `\n## ${heading}\n\n| Variable | Default | Meaning |\n|---|---|---|\n`;
  const row = `| \`${name}\` | ${otherwise === '' ? '' : `\`${otherwise}\``} | ${meaning} |\n`;
  return start + row.replaceAll('](docs/', '](');
});
const file = process.argv[2] ?? fileURLToPath(new URL('../docs/settings.md', import.meta.url));
writeFileSync(file, HEAD + parts.join(''));
