// Engines abort when they are ended during a run, so test files are processes of their own and never worker threads.
export default {
  files: ['test/**/*.test.ts'],
  extensions: ['ts'],
  workerThreads: false,
  timeout: '2m',
};
