"""How the client under test comes to a token, scenario by scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import httpx2

from mcpgen_runtime import (
    ClientCredentials,
    EnterpriseManaged,
    IdentityProvider,
    OAuth,
    PrivateKey,
    Redirect,
    WorkloadIdentity,
)

if TYPE_CHECKING:
    from mcpgen_runtime.transports.http.http_client import Authorization

REDIRECT_URI = "http://127.0.0.1:33418/callback"
METADATA_URL = "https://conformance-test.local/client-metadata.json"


async def visit(url: str) -> str:
    """Go to the authorization endpoint as a browser would, up to the redirect back."""
    async with httpx2.AsyncClient(follow_redirects=False) as browser:
        response = await browser.get(url)
    return response.headers["location"]


def authorization(scenario: str, context: Mapping[str, Any]) -> Authorization | None:
    """The argument `auth` of a scenario; `None` where nothing is protected."""
    if not scenario.startswith("auth/"):
        return None
    redirect = Redirect(REDIRECT_URI, visit)
    match scenario.removeprefix("auth/"):
        case "basic-cimd":
            return OAuth("conformance", metadata_url=METADATA_URL, redirect=redirect)
        case "pre-registration":
            return OAuth(
                client_id=context["client_id"],
                client_secret=context["client_secret"],
                redirect=redirect,
            )
        case "client-credentials-jwt":
            key = PrivateKey(context["private_key_pem"], context["signing_algorithm"])
            return ClientCredentials(context["client_id"], key=key)
        case "client-credentials-basic":
            return ClientCredentials(context["client_id"], context["client_secret"])
        case "enterprise-managed-authorization":
            provider = IdentityProvider(
                context["idp_token_endpoint"], context["idp_client_id"], context["idp_id_token"]
            )
            return EnterpriseManaged(
                context["client_id"], context["client_secret"], id_jag=provider
            )
        case "dpop" | "dpop-nonce":
            return OAuth("conformance", redirect=redirect, dpop=True)
        case "wif-jwt-bearer":
            return WorkloadIdentity(
                lambda issuer, token_endpoint: context["valid_jwt"],
                client_id=context.get("client_id"),
            )
        case _:
            return OAuth("conformance", redirect=redirect)
