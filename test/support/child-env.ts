/**
 * What a program that a test starts has of the test's environment: where programs are, and what spares it the work of
 * reading the sources again.
 */
export const CHILD_ENV: Readonly<Record<string, string | undefined>> = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};
