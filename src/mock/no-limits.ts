/** Settings under which nobody is limited, for a mock and for the servers that tests start. */
export const NO_LIMITS = {
  UMPIRE_RATE_ANONYMOUS: 'off',
  UMPIRE_RATE_KEY: 'off',
  UMPIRE_CONCURRENCY_ANONYMOUS: 'off',
  UMPIRE_CONCURRENCY_KEY: 'off',
  UMPIRE_BODIES_ANONYMOUS: 'off',
  UMPIRE_BODIES_KEY: 'off',
  UMPIRE_BODIES_ALL: 'off',
  UMPIRE_CONNECTION_RATE: 'off',
  UMPIRE_REQUEST_RATE: 'off',
  UMPIRE_LOOKUP_RATE: 'off',
  UMPIRE_RESET_RATE: 'off',
} as const;
