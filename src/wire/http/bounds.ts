/** What one connection and one request may cost, in every protocol. */

/** Bytes that a request's headers may have. */
export const MAX_HEADER_BYTES = 16 * 1024;
/** Milliseconds until a request's headers must be complete. */
export const HEADERS_TIMEOUT = 10_000;
/** Milliseconds until a whole request must have arrived. */
export const REQUEST_TIMEOUT = 30_000;
/** Milliseconds between looks for requests and sessions that are late. */
export const CHECK_INTERVAL = 500;
/**
 * Milliseconds that an idle connection is kept: longer than the minute after which common proxies close theirs, so that
 * the proxy closes first.
 */
export const KEEP_ALIVE_TIMEOUT = 75_000;
/** Bytes that a body may have. */
export const MAX_BODY_BYTES = 1024 * 1024;
/** Milliseconds that a call has if its caller states no timeout. */
export const DEFAULT_TIMEOUT = 10_000;
/** Milliseconds that a call has at most, whatever its caller states. */
export const MAX_TIMEOUT = 30_000;
/** Concurrent HTTP/2 streams on one connection. */
export const MAX_STREAMS = 100;
/** Requests of one HTTP/1.1 connection whose answers are awaited; what comes behind them is not read yet. */
export const MAX_PIPELINED = 16;
/**
 * Streams that one HTTP/2 session may begin in one turn of the event loop, and is ended beyond: a stream that is taken
 * back at once still costs 25 µs. It may have this many only if it took most of them back, or if the turn was long.
 */
export const MAX_STREAMS_OF_A_TURN = 2 * MAX_STREAMS;
/** Milliseconds that an HTTP/2 session without streams is kept: gRPC channels idle for long. */
export const SESSION_IDLE_TIMEOUT = 15 * 60_000;
/**
 * Milliseconds between pings to an HTTP/2 session. One without streams gets the first when it has been quiet for half
 * as long as headers may take.
 */
export const PING_INTERVAL = 60_000;
/** Milliseconds that an answer to a ping may take while streams are open: it waits behind what its peer is sending. */
export const BUSY_PING_TIMEOUT = 30_000;
/** Milliseconds of silence after which the kernel asks whether a peer is still there. */
export const TCP_KEEP_ALIVE = 60_000;
/**
 * Requests that one HTTP/2 session may take back at once and each second before nghttp2 ends it. Callers are judged by
 * their address, so that a proxy may carry the cancellations of many; this only bounds what one read of a flood costs.
 */
export const SESSION_RESETS = { streamResetBurst: 20_000, streamResetRate: 5000 };
