"""The members of blocking clients that no schema has; type checkers read the stub."""

from __future__ import annotations

from .sync import Blocking, SyncClient, SyncClientGroup

SyncCalls, SyncGroupCalls = SyncClient, SyncClientGroup
SyncSubscription = SyncTaskHandle = Blocking
