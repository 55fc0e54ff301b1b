/**
 * Checks the dashboard strictly against Grafana's own types: a field that its schema does not know, or a wrong value,
 * is an error. @grafana/schema is installed into a folder of its own, .venv/grafana.
 */
import { equal, notEqual } from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const folder = root('.venv/grafana');
const types = join(folder, 'node_modules/@grafana/schema/dist/types');

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly options?: object;
  readonly fieldConfig?: { readonly defaults: { readonly custom?: object } };
}

if (!existsSync(types)) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"private":true}');
  execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', '@grafana/schema@13.2.3'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // JSON has the values of an enum, which TypeScript accepts only for a union.
  for (const file of readdirSync(types, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.d.ts'),
  )) {
    const path = join(types, file);
    const unions = readFileSync(path, 'utf8').replaceAll(
      /export (?:declare )?enum (\w+) \{([^}]*)\}/g,
      (_, name: string, body: string) => {
        const values = [...body.matchAll(/=\s*("[^"]*"|-?\d+)/g)].map(([, value]) => value);
        return `export type ${name} = ${values.join(' | ')};`;
      },
    );
    writeFileSync(path, unions);
  }
}

/** The compiler's errors for a dashboard; empty if there are none. */
function faultsOf(text: string): string {
  const { panels }: { readonly panels: readonly Panel[] } = JSON.parse(text);
  const shown = panels.filter(({ type }) => type !== 'row');
  const lines = [
    "import type { Dashboard } from '@grafana/schema/dist/types/raw/dashboard/x/types.gen';",
    ...[...new Set(shown.map(({ type }) => type))].map(
      (type) =>
        `import type * as ${type} from '@grafana/schema/dist/types/raw/composable/${type}/panelcfg/x/types.gen';`,
    ),
    `export const dashboard: Dashboard = ${text};`,
    ...shown.flatMap(({ id, type, options, fieldConfig }) => {
      const custom = fieldConfig?.defaults.custom;
      return [
        `export const options${id}: ${type}.Options = ${JSON.stringify(options)};`,
        ...(custom === undefined ? [] : [`export const field${id}: ${type}.FieldConfig = ${JSON.stringify(custom)};`]),
      ];
    }),
  ];
  const file = join(folder, 'dashboard.ts');
  // The package does not export these files, so they are imported by their paths.
  writeFileSync(file, lines.join('\n').replaceAll("'@grafana/schema/dist", "'./node_modules/@grafana/schema/dist"));
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'esnext', '--moduleResolution', 'bundler'];
  const { stdout } = spawnSync(root('node_modules/.bin/tsc'), [...options, '--ignoreConfig', file], {
    encoding: 'utf8',
  });
  rmSync(file);
  return stdout;
}

const text = readFileSync(root('deploy/monitoring/grafana/umpire.json'), 'utf8');
equal(faultsOf(text), '');
for (const [word, other] of [
  ['"never"', '"sometimes"'],
  ['"gridPos"', '"gridPosition"'],
  ['"schemaVersion"', '"schema"'],
] as const) {
  notEqual(faultsOf(text.replace(word, other)), '', `a broken dashboard was accepted: ${other}`);
}
console.log("the dashboard by Grafana's own types: ok");
