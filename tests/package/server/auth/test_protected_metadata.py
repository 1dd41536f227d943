"""The metadata document: where it is served, and what is in it."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from kit.asgi_client import asgi
from kit.guarded import PRM, Guarded, call_with, challenge_in, protected_settings
from kit.issuer import IDP
from kit.rules import revisions_holding
from kit.wire import SESSIONS, initialize
from mcpgen_runtime import DpopValidation, Protected, ProtectedResourceMetadata, StaticTokens
from requirements import EVERY_REVISION, requirement

HELLO = initialize(SESSIONS[-1])


@requirement(
    "auth-server-metadata.prm-implemented",
    "auth-server-metadata.prm-authorization-servers",
    "auth-server-metadata.prm-response-format",
    "auth-server-metadata.prm-resource-member",
    "auth-server-metadata.prm-header-or-well-known",
    "auth-server-metadata.prm-well-known-place",
    "auth-server-metadata.prm-path-insertion",
)
@pytest.mark.parametrize(
    ("resource", "path", "others"),
    [
        ("https://h/mcp", f"{PRM}/mcp", [PRM]),
        ("https://h", PRM, []),
        ("https://h/", PRM, []),
        ("https://h:8443/a/b", f"{PRM}/a/b", [PRM]),
    ],
)
@pytest.mark.parametrize("revision", revisions_holding("auth-server-metadata.prm-implemented"))
async def test_the_challenge_leads_to_the_document_of_the_resource(
    resource: str, path: str, others: list[str], revision: str
) -> None:
    auth = protected_settings(resource=resource)
    async with asgi(Guarded().server, auth=auth) as http:
        refused = await call_with(http, revision, None)
        origin = resource.split("/", 3)
        url = challenge_in(refused).parameters["resource_metadata"]
        assert url == f"{origin[0]}//{origin[2]}{path}"
        for each in (path, f"{path}/", *others):
            reply = await http.get(each)
            assert reply.status == 200
            assert reply.fields["content-type"] == "application/json"
            assert reply.fields["access-control-allow-origin"] == "*"
            assert reply.json == {
                "resource": resource,
                "authorization_servers": [IDP],
                "scopes_supported": ["mcp:read"],
                "bearer_methods_supported": ["header"],
            }
        assert (await http.post(HELLO, path)).status == 405
        for each in (f"{PRM}/other", f"{PRM}x", "/.well-known/oauth-authorization-server"):
            assert (await http.get(each)).status == 404


@requirement("auth-scope.challenge-relation-free", revisions=EVERY_REVISION)
async def test_a_challenge_may_name_scopes_that_the_document_does_not() -> None:
    auth = protected_settings(scopes=["a"], scopes_supported=["b"])
    async with asgi(Guarded().server, auth=auth) as http:
        assert challenge_in(await http.post(HELLO)).parameters["scope"] == "a"
        assert (await http.get(PRM)).json["scopes_supported"] == ["b"]


async def test_challenges_below_mounts_lead_to_documents_there_and_at_the_root() -> None:
    auths = {name: protected_settings(resource=f"https://h/{name}/mcp") for name in ("one", "two")}
    routes: list[Any] = [
        *(Mount(f"/{name}", Guarded().server.asgi(auth=auth)) for name, auth in auths.items()),
        Mount(PRM, ProtectedResourceMetadata(*auths.values())),
    ]
    async with asgi(Starlette(routes=routes)) as http:
        for name in auths:
            refused = await http.post(HELLO, f"/{name}/mcp")
            url = challenge_in(refused).parameters["resource_metadata"]
            assert url == f"https://h/{name}{PRM}/mcp"
            for path in (f"/{name}{PRM}/mcp", f"/{name}{PRM}", f"{PRM}/{name}/mcp"):
                assert (await http.get(path)).json["resource"] == f"https://h/{name}/mcp"
        assert (await http.get(f"{PRM}/")).status == 404
        assert (await http.post(HELLO, f"{PRM}/one/mcp")).status == 405
    single = Starlette(routes=[Mount(PRM, ProtectedResourceMetadata(auths["one"]))])
    async with asgi(single) as http:
        assert (await http.get(f"{PRM}/")).json["resource"] == "https://h/one/mcp"


def test_two_servers_need_two_paths() -> None:
    with pytest.raises(ValueError, match="paths that differ"):
        ProtectedResourceMetadata(
            protected_settings(), protected_settings(resource="https://other/mcp")
        )
    with pytest.raises(ValueError, match="expected protected servers"):
        ProtectedResourceMetadata()
    with pytest.raises(ValueError, match="expected servers with issuers"):
        ProtectedResourceMetadata(
            protected_settings(), Protected(verifier=StaticTokens({"x": "ann"}))
        )


@pytest.mark.parametrize(
    ("settings", "members"),
    [
        ({"scopes": []}, {}),
        ({"scopes": ["a"], "session_scopes": ["b"]}, {"scopes_supported": ["a", "b"]}),
        ({"scopes": ["a"], "session_scopes": ["b"], "scopes_supported": []}, {}),
        ({"metadata": {"resource_name": "Files"}, "scopes": []}, {"resource_name": "Files"}),
        *(
            (
                {"scopes": [], "dpop": DpopValidation(algorithms=("ES256",), required=required)},
                {
                    "dpop_signing_alg_values_supported": ["ES256"],
                    "dpop_bound_access_tokens_required": required,
                },
            )
            for required in (False, True)
        ),
    ],
)
async def test_a_document_has_the_members_of_the_settings(
    settings: dict[str, Any], members: dict[str, Any]
) -> None:
    async with asgi(Guarded().server, auth=protected_settings(**settings)) as http:
        assert (await http.get(PRM)).json == {
            "resource": "https://h/mcp",
            "authorization_servers": [IDP],
            "bearer_methods_supported": ["header"],
            **members,
        }


@pytest.mark.parametrize(
    ("settings", "root", "url"),
    [
        ({}, "", f"https://h{PRM}/mcp"),
        ({}, "/stripped", f"https://h{PRM}/mcp"),
        ({"resource": "https://h/api/v1/mcp"}, "", f"https://h{PRM}/api/v1/mcp"),
        ({"resource": "https://h/api/v1/mcp"}, "/api", f"https://h/api{PRM}/v1/mcp"),
        ({"resource": "https://h/api/v1/mcp"}, "/v1", f"https://h{PRM}/api/v1/mcp"),
        ({"metadata_url": "https://cdn/prm.json"}, "", "https://cdn/prm.json"),
    ],
)
async def test_behind_a_gateway_urls_are_those_of_the_outside(
    settings: dict[str, Any], root: str, url: str
) -> None:
    auth = protected_settings(**settings)
    async with asgi(Guarded().server, auth=auth) as http:
        http.scope = {"root_path": root}
        reply = await http.post(HELLO, f"{root}/mcp")
        assert challenge_in(reply).parameters["resource_metadata"] == url


async def test_the_host_of_the_resource_is_served() -> None:
    async with asgi(Guarded().server, auth=protected_settings()) as http:
        assert (await http.get(PRM, Host="h")).status == 200
        assert (await http.get(PRM, Host="evil")).status == 403
