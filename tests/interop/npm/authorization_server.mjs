// An authorization server on loopback, by oidc-provider. Its user agrees to everything at once.
//
// Prints its issuer identifier. The argument is the resource that its access tokens are for.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const peers = createRequire(`${process.env.MCP_NPM_PEERS}/package.json`);
const { Provider } = await import(pathToFileURL(peers.resolve("oidc-provider")));

const [resource, seconds] = process.argv.slice(2);
const server = createServer();
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
    scopes: ["offline_access", "mcp:read", "files:write"],
    clientDefaults: { application_type: "native" }, // as long as a registration says nothing else
    clients: [
        {
            client_id: "machine",
            client_secret: "secret-of-the-machine",
            grant_types: ["client_credentials"],
            redirect_uris: [],
            response_types: [],
        },
    ],
    findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
    rotateRefreshToken: true,
    features: {
        clientCredentials: { enabled: true },
        deviceFlow: { enabled: true },
        devInteractions: { enabled: false },
        dPoP: { enabled: true },
        registration: { enabled: true },
        resourceIndicators: {
            enabled: true,
            useGrantedResource: () => true,
            getResourceServerInfo: (_, wanted) => {
                if (wanted !== resource) throw new Error(`unknown resource ${wanted}`);
                return {
                    scope: "mcp:read files:write",
                    audience: resource,
                    accessTokenFormat: "jwt",
                    accessTokenTTL: Number(seconds ?? 600),
                };
            },
        },
    },
});

async function agree(request, response) {
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
    if (prompt.name === "login") {
        return provider.interactionFinished(request, response, { login: { accountId: "alice" } });
    }
    const grant =
        (grantId && (await provider.Grant.find(grantId))) ||
        new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    const { missingOIDCScope, missingResourceScopes } = prompt.details;
    if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(" "));
    for (const [indicator, scopes] of Object.entries(missingResourceScopes ?? {})) {
        grant.addResourceScope(indicator, scopes.join(" "));
    }
    const result = { consent: { grantId: await grant.save() } };
    return provider.interactionFinished(request, response, result, {
        mergeWithLastSubmission: true,
    });
}

const answer = provider.callback();
server.on("request", (request, response) => {
    if (!request.url.startsWith("/interaction/")) return answer(request, response);
    return agree(request, response).catch((error) => {
        console.error(error);
        response.writeHead(500).end();
    });
});

console.log(issuer);
