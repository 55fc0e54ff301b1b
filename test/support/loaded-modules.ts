/**
 * A program: puts a service together by the environment, and prints as JSON which modules of OpenTelemetry were
 * asked for meanwhile.
 */
import { registerHooks } from 'node:module';

const seen = new Set<string>();
registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith('@opentelemetry/')) seen.add(specifier);
    return next(specifier, context);
  },
});

const { createApp } = await import('../../src/app.ts');
const { readConfig } = await import('../../src/config.ts');
const { createLogger } = await import('../../src/logger.ts');
const { createScriptedEngine } = await import('./scripted-engine.ts');

await createApp(readConfig(process.env), createLogger('silent', { write() {} }), { engine: createScriptedEngine() });
process.stdout.write(JSON.stringify([...seen]), () => process.exit(0));
