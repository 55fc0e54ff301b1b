/**
 * Lua scripts that run in Redis: each is atomic and takes one round trip. The keys of a script share a hash tag, so
 * that a cluster has them on one server.
 */
import { createHash } from 'node:crypto';
import type { RedisConnection } from './connection.ts';
import { isMissingScript } from './reply-errors.ts';

/** A Lua script, which the server caches under its SHA-1. */
export class RedisScript {
  readonly #source: string;
  readonly #sha: string;

  constructor(source: string) {
    this.#source = source;
    this.#sha = createHash('sha1').update(source).digest('hex');
  }

  /** Runs the script; sends its source only if the server does not have it. */
  async run(
    connection: RedisConnection,
    keys: readonly [string, ...string[]],
    args: readonly string[],
  ): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await connection.send(keys[0], ['EVALSHA', this.#sha, ...rest]);
    } catch (error) {
      // A server that was restarted or promoted has no scripts. The script did not run, so this does not run it twice.
      if (!isMissingScript(error)) throw error;
      return connection.send(keys[0], ['EVAL', this.#source, ...rest]);
    }
  }
}

/**
 * KEYS: catalog, the owner's ids, their sizes. ARGV: most catalogs, most bytes, the prefix of the owner's catalog
 * names, id, bytes of the choices, then fields and values. Replies `created`, `exists`, `too_many` or `too_large`.
 * Catalogs that were written before sizes were kept are measured first; they are in the same slot as the KEYS.
 */
export const CREATE_CATALOG = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end
local ids = redis.call('SCARD', KEYS[2])
if redis.call('SISMEMBER', KEYS[2], ARGV[4]) == 0 and ids >= tonumber(ARGV[1]) then return 'too_many' end
if redis.call('HLEN', KEYS[3]) < ids then
  for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    redis.call('HSETNX', KEYS[3], id, redis.call('HSTRLEN', ARGV[3] .. id, 'choices'))
  end
end
local bytes = tonumber(ARGV[5])
for _, size in ipairs(redis.call('HVALS', KEYS[3])) do bytes = bytes + (tonumber(size) or 0) end
if bytes > tonumber(ARGV[2]) then return 'too_large' end
redis.call('SADD', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[3], ARGV[4], ARGV[5])
redis.call('HSET', KEYS[1], unpack(ARGV, 6))
return 'created'
`);

/**
 * KEYS: catalog, sizes of the owner's catalogs. ARGV: stamp, id, bytes of the choices, then fields and values. Replies
 * 1 if the catalog had the stamp, 0 if not.
 */
export const REPLACE_CATALOG = new RedisScript(`
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
return 1
`);

/** KEYS: catalog, the owner's ids, their sizes. ARGV: id. Replies 1 if the catalog existed, 0 if not. */
export const DELETE_CATALOG = new RedisScript(`
local there = redis.call('UNLINK', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return there
`);

/**
 * KEYS: key. ARGV: fields and values. Replies 1 if the key was added, 0 if it existed. Like END_KEY it runs even if
 * Redis is full, since a leaked key must still be replaced and revoked then; the flag for that needs Redis 7.
 */
export const ADD_KEY = new RedisScript(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
`);

/** KEYS: key. ARGV: end in milliseconds since the epoch, reason. Replies 1 if the key exists, 0 if not. */
export const END_KEY = new RedisScript(`#!lua flags=allow-oom
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local set = tonumber(redis.call('HGET', KEYS[1], 'ends_at') or '')
if not (set and set <= tonumber(ARGV[1])) then redis.call('HSET', KEYS[1], 'ends_at', ARGV[1], 'ended_by', ARGV[2]) end
return 1
`);

/**
 * KEYS: key. ARGV: when it was used, in milliseconds since the epoch; how far ahead of that a noted time is one of a
 * wrong clock. Replies 1 if the key exists, 0 if not.
 */
export const USE_KEY = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local noted, used = tonumber(redis.call('HGET', KEYS[1], 'last_used_at') or '') or 0, tonumber(ARGV[1])
if noted < used or noted > used + tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], 'last_used_at', ARGV[1]) end
return 1
`);

/**
 * KEYS: TAT, leases, quota of one subject. ARGV: interval in ms (0: no rate), burst, limit of leases (0: none), lease,
 * its length in ms, quota (0: none). Replies {0} granted; {1, wait ms} beyond the rate; {2, age of the oldest lease in
 * ms} too many leases; {3, wait ms} quota used up. The rate is GCRA as in domain/gcra.ts. Redis's clock is used, so the
 * clocks of replicas need not agree. Nothing is taken unless everything is granted.
 *
 * That clock can jump ahead and be set right again. So a TAT is stored with the time at which it was, and moves back
 * with the clock; leases that end later than any could are dropped; a quota ends with the day that the clock shows now.
 */
export const TAKE_LIMITS = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local limit, length, quota = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6])
local tat
if interval > 0 then
  local stored, at = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) ?(%S*)$')
  tat = (tonumber(stored or '') or now) - math.max(0, (tonumber(at or '') or now) - now)
  if tat > now + burst * interval + 1 then tat = now + (burst - 1) * interval end
  tat = math.max(tat, now)
  local early = tat - now - (burst - 1) * interval
  if early > 0.001 then return {1, math.ceil(early)} end
  tat = tat + interval
end
if limit > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], now + 2 * length, '+inf')
  if redis.call('ZCARD', KEYS[2]) >= limit then
    local oldest = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
    return {2, math.floor(now - (oldest[2] - length))}
  end
end
if quota > 0 then
  local midnight = (math.floor(now / 86400000) + 1) * 86400000
  local left = redis.call('PTTL', KEYS[3])
  if left == -1 or left > midnight - now + 1000 then
    redis.call('PEXPIREAT', KEYS[3], string.format('%.0f', midnight))
  end
  if tonumber(redis.call('GET', KEYS[3]) or '0') >= quota then return {3, math.ceil(midnight - now)} end
  redis.call('INCR', KEYS[3])
  redis.call('PEXPIREAT', KEYS[3], string.format('%.0f', midnight))
end
if tat then
  redis.call('SET', KEYS[1], string.format('%.3f %.3f', tat, now), 'PX', math.max(1, math.ceil(tat - now)))
end
if limit > 0 then
  redis.call('ZADD', KEYS[2], string.format('%.3f', now + length), ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
return {0}
`);
