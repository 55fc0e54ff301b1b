/** A process that holds an engine until it is killed; tells its parent when the engine is ready. */
import { createEngine } from '../../../src/engine/create-engine.ts';
import { eventually } from './engine.ts';

const logger = { debug() {}, info() {}, warn() {}, error() {} };
const engine = await createEngine({ modelsDir: process.argv[2] ?? '', engines: 1, logger });
await eventually(() => engine.ready());
process.send?.('ready');
