/** Loaded before a server's entry by `node --import`: SIGUSR2 is a fault that nothing catches. */
process.on('SIGUSR2', () => {
  throw Object.assign(new Error('as a test asked for'), { code: 'ERR_TEST' });
});
