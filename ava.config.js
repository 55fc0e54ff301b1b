import { availableParallelism } from 'node:os';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The files that take longest, in turn: begun last, one of them would run on alone at the end. */
const LONGEST = [
  'eval/sample',
  'readme',
  'contract/odd-texts',
  'cli/models/adding',
  'engine/families/remote/every-dialect',
  'engine/loading',
  'cli/catalogs/catalog-descriptions',
  'clients',
  'cli/learn/kill-learning',
  'wire/listener/slow',
  'engine/families/two-stage/shipped',
  'engine/healing',
  'engine/families/remote/rows',
  'wire/crash',
  'main',
  'engine/families/remote/open-inference',
  'engine/families',
  'engine/families/remote/shortlist',
  'deploy/replicas',
  'contract/conformance',
  'contract/replicas',
];

const TESTS = fileURLToPath(new URL('test', import.meta.url));

function placeOf(file) {
  const place = LONGEST.indexOf(relative(TESTS, file).replaceAll(sep, '/').replace('.test.ts', ''));
  return place === -1 ? LONGEST.length : place;
}

// Engines abort when they are ended during a run, so test files are processes of their own and never worker threads.
export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '2m',
  // Half of a file's time is spent waiting: for a process to start or to end, for a deadline, for Redis to be back.
  concurrency: availableParallelism() + 2,
  sortTestFiles: (one, other) => placeOf(one) - placeOf(other) || (one < other ? -1 : 1),
  // Every file, and every server and engine that it starts, reads the same sources: without it half of a start's time goes into stripping their types.
  environmentVariables: {
    NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url)),
  },
};
