import { fileURLToPath } from 'node:url';

// Engines abort when they are ended during a run, so test files are processes of their own and never worker threads.
export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '2m',
  // Every file, and every server and engine that it starts, reads the same sources: without it half of a start's time goes into stripping their types.
  environmentVariables: {
    NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/compile', import.meta.url)),
  },
};
