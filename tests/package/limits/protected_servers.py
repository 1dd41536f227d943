"""Limits of servers that are protected by tokens."""

from __future__ import annotations

from kit.asgi_client import asgi
from kit.guarded import Guarded, protected_settings
from kit.issuer import proof_key, proof_of, token_of
from kit.wire import SESSIONS, initialize
from mcpgen_runtime import DpopValidation, MemoryKeyRing
from mcpgen_runtime.server.auth.verifiers import PrincipalCache
from package.limits.table import limit


@limit("pkg.server.auth.verifiers.STORED_TOKENS", 5)
def stored_tokens(amount: int) -> bool:
    cache = PrincipalCache(60)
    for number in range(amount):
        cache.add(str(number), None)
    return cache.get("0") is not None


@limit("pkg.server.toolkit.key_ring.KEPT_KEYS")
async def keys_after_a_rotation(amount: int) -> bool:
    ring = MemoryKeyRing(b"k" * 16)
    for number in range(amount - 1):
        await ring.rotate(bytes([number]) * 16)
    known = ring.keys()
    return b"k" * 16 in known


@limit("pkg.server.auth.dpop_validation.STORED_IDS", 3)
async def used_proofs(amount: int) -> bool:
    key = proof_key()
    token = token_of(cnf={"jkt": key.thumbprint()})
    proofs = [proof_of(key, token) for _ in range(amount)]
    async with asgi(Guarded().server, auth=protected_settings(dpop=DpopValidation())) as http:
        http.fields["authorization"] = f"DPoP {token}"
        hello = initialize(SESSIONS[-1])
        statuses = [(await http.post(hello, DPoP=each)).status for each in [*proofs, proofs[0]]]
    assert set(statuses[:-1]) == {200}
    return statuses[-1] == 401
