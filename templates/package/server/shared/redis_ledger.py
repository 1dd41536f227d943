"""Ledgers of the bytes that each client has stored in an engine, so that none fills the engine.

A ledger counts the entries of one kind: sessions, events, tasks. The scripts that write an entry
change its ledger too, so processes that write concurrently exceed no limit. A client may store an
entry if at least as much stays free as the client then has: the first client gets at most half, a
second client half of the rest, and so on; see `Shares`.

    ledger:KIND  a hash: `#` the bytes of all entries, `@CLIENT` those of one client,
                 `=ID` the bytes and the client of one entry
    due:KIND     a sorted set: the entries by the time to check whether they have expired

Entries expire by themselves. Each script that adds an entry first releases those that are gone.
"""

from __future__ import annotations

import hashlib

SESSION_BYTES = 64 * 2**20
"""Most bytes of the records of all sessions. At the limit, a client's own sessions make room."""

STORED_EVENT_BYTES = 256 * 2**20
"""Most bytes of the events of all sessions. At the limit, a client's own events make room."""

TASK_BYTES = 128 * 2**20
"""Most bytes of the records of all tasks, each counted as 4 KiB at least."""

INBOX_BYTES = 16 * 2**20
"""Most bytes of the letters in the inbox of one worker."""

CHANGES_BYTES = 16 * 2**20
"""Most bytes of the stored changes; the oldest are dropped."""

LEDGER = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function ledger(sizes, due, prefix, limit)
  local self = {}
  local function read(id)
    local entry = redis.call('HGET', sizes, '=' .. id)
    if not entry then return 0, nil end
    local size, client = string.match(entry, '^(%d+) (.*)$')
    return tonumber(size), client
  end
  local function add(client, size)
    if redis.call('HINCRBY', sizes, '#', size) <= 0 then
      redis.call('DEL', sizes)
      return
    end
    if redis.call('HINCRBY', sizes, '@' .. client, size) <= 0 then
      redis.call('HDEL', sizes, '@' .. client)
    end
  end
  function self.client(id) return select(2, read(id)) end
  function self.release(id)
    local size, client = read(id)
    redis.call('ZREM', due, id)
    if client then
      redis.call('HDEL', sizes, '=' .. id)
      add(client, 0 - size)
    end
  end
  function self.release_expired()
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', due, '-inf', now, 'LIMIT', 0, 50)) do
      local left = redis.call('PTTL', prefix .. id)
      if left == -2 then self.release(id)
      else redis.call('ZADD', due, now + (left < 0 and 60000 or left + 1), id) end
    end
  end
  function self.has_room(id, client, size)
    local before = read(id)
    if size <= before then return true end
    local all = tonumber(redis.call('HGET', sizes, '#') or 0) - before
    local own = tonumber(redis.call('HGET', sizes, '@' .. client) or 0) - before
    return own + size <= limit - all - size
  end
  function self.charge(id, client, size)
    local before, of = read(id)
    if of and of ~= client then
      self.release(id)
      before = 0
    end
    redis.call('HSET', sizes, '=' .. id, size .. ' ' .. client)
    add(client, size - before)
    local left = redis.call('PTTL', prefix .. id)
    redis.call('ZADD', due, now + (left < 0 and 60000 or left + 1), id)
    redis.call('PEXPIRE', sizes, 2592000000)
    redis.call('PEXPIRE', due, 2592000000)
  end
  function self.least_used(client, but)
    local own = {}
    for _, id in ipairs(redis.call('ZRANGE', due, 0, 99)) do
      if id ~= but and self.client(id) == client then
        own[#own + 1] = {id, redis.call('PTTL', prefix .. id)}
      end
    end
    table.sort(own, function(one, other)
      return one[2] < other[2] or (one[2] == other[2] and one[1] < other[1])
    end)
    return own
  end
  return self
end
"""
"""Defines `ledger`, for the scripts that write entries.

`has_room` and `charge` take the bytes of an entry in place of those that are counted for it, so a
command that is sent twice counts once. `least_used` gives entries of a client among 100, those that
expire first at the front.
"""


def client_digest(client: str) -> str:
    """A short name of a client; the name of a client may be long."""
    return hashlib.sha256(client.encode("utf-8", "surrogatepass")).hexdigest()[:32]
