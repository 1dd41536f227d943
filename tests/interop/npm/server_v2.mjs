// A server on the second SDK for TypeScript: /mcp, with sessions where the revision has them.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { Events, furnish, serve } from "./city.mjs";

const require = createRequire(`${process.env.MCP_NPM_PEERS}/`);
const sdk = require("@modelcontextprotocol/server");
const { z } = require("zod");

const KEY = "it";
const sessions = new Map();

function made({ era }) {
    const modern = era === "modern";
    const capabilities = { logging: {}, resources: { subscribe: true } };
    const options = { capabilities, instructions: "Ask for a city." };
    const server = new sdk.McpServer({ name: "v2", version: "2" }, options);
    const subscribed = new Set();
    const wayOf = ({ mcpReq, http }) => ({
        notify: (method, params) => mcpReq.notify({ method, params }),
        log: mcpReq.log,
        ask: (method, params) => (modern ? mcpReq.inputResponses?.[KEY] : mcpReq.send({ method, params })),
        open: (method, params) => sdk.inputRequired({ inputRequests: { [KEY]: { method, params } }, requestState: "asked" }),
        token: mcpReq._meta?.progressToken,
        signal: mcpReq.signal,
        closeStream: http?.closeSSE,
        changed: () => {
            if (modern) {
                handler.notify.toolsChanged();
                handler.notify.promptsChanged();
                handler.notify.resourcesChanged();
            } else {
                server.sendToolListChanged();
                server.sendPromptListChanged();
                server.sendResourceListChanged();
            }
        },
        updated: (uri) => {
            if (modern) handler.notify.resourceUpdated(uri);
            else if (subscribed.has(uri)) server.server.sendResourceUpdated({ uri });
        },
    });
    const { completable, ResourceTemplate } = sdk;
    furnish(server, { z, shaped: z.object, completable, ResourceTemplate, wayOf });
    if (!modern) {
        server.server.setRequestHandler("resources/subscribe", ({ params }) => {
            subscribed.add(params.uri);
            return {};
        });
        server.server.setRequestHandler("resources/unsubscribe", ({ params }) => {
            subscribed.delete(params.uri);
            return {};
        });
    }
    return server;
}

const handler = sdk.createMcpHandler(made, { legacy: "reject" });

async function withSession(request) {
    const id = request.headers.get("mcp-session-id");
    if (id !== null) return sessions.get(id)?.handleRequest(request) ?? new Response(null, { status: 404 });
    const transport = new sdk.WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 100,
        onsessioninitialized: (given) => void sessions.set(given, transport),
        onsessionclosed: (given) => void sessions.delete(given),
    });
    await made({ era: "legacy" }).connect(transport);
    return transport.handleRequest(request);
}

function incoming(request, response) {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, `${value}`]));
    const body = request.method === "POST" ? Readable.toWeb(request) : undefined;
    const url = `http://${request.headers.host}${request.url}`;
    return new Request(url, { method: request.method, headers, body, duplex: "half", signal: gone.signal });
}

serve(
    createServer(async (request, response) => {
        const asked = incoming(request, response);
        const legacy = await sdk.isLegacyRequest(asked.clone());
        const answer = await (legacy ? withSession(asked) : handler.fetch(asked));
        response.writeHead(answer.status, Object.fromEntries(answer.headers));
        response.flushHeaders();
        if (answer.body === null) {
            response.end();
            return;
        }
        const body = Readable.fromWeb(answer.body);
        body.on("error", () => response.destroy());
        response.on("close", () => body.destroy());
        body.pipe(response);
    }),
);
