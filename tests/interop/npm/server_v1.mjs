// A server on the first SDK for TypeScript: /mcp with sessions, /sse and /messages.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Events, furnish, serve } from "./city.mjs";

const require = createRequire(`${process.env.MCP_NPM_PEERS}/`);
const { completable } = require("@modelcontextprotocol/sdk/server/completable.js");
const { McpServer, ResourceTemplate } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { SSEServerTransport } = require("@modelcontextprotocol/sdk/server/sse.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");
const { z } = require("zod");

const RESULTS = {
    "elicitation/create": types.ElicitResultSchema,
    "sampling/createMessage": types.CreateMessageResultSchema,
    "roots/list": types.ListRootsResultSchema,
};
const streamable = new Map();
const events = new Map();

function made() {
    const capabilities = { logging: {}, resources: { subscribe: true } };
    const server = new McpServer({ name: "v1", version: "1" }, { capabilities, instructions: "Ask for a city." });
    const subscribed = new Set();
    const wayOf = ({ sendNotification, sendRequest, signal, closeSSEStream, _meta }) => ({
        notify: (method, params) => sendNotification({ method, params }),
        log: (level, data, logger) => sendNotification({ method: "notifications/message", params: { level, data, logger } }),
        ask: (method, params) => sendRequest({ method, params }, RESULTS[method]),
        token: _meta?.progressToken,
        signal,
        closeStream: closeSSEStream,
        changed: () => {
            server.sendToolListChanged();
            server.sendPromptListChanged();
            server.sendResourceListChanged();
        },
        updated: (uri) => subscribed.has(uri) && server.server.sendResourceUpdated({ uri }),
    });
    furnish(server, { z, shaped: (fields) => fields, completable, ResourceTemplate, wayOf });
    server.server.setRequestHandler(types.SubscribeRequestSchema, ({ params }) => {
        subscribed.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(types.UnsubscribeRequestSchema, ({ params }) => {
        subscribed.delete(params.uri);
        return {};
    });
    return server;
}

async function transportOf(id) {
    if (id !== undefined) return streamable.get(id);
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        eventStore: new Events(),
        retryInterval: 100,
        onsessioninitialized: (given) => void streamable.set(given, transport),
        onsessionclosed: (given) => void streamable.delete(given),
    });
    await made().connect(transport);
    return transport;
}

serve(
    createServer(async (request, response) => {
        const { pathname, searchParams } = new URL(request.url, "http://localhost");
        if (pathname === "/mcp") {
            const transport = await transportOf(request.headers["mcp-session-id"]);
            if (transport) await transport.handleRequest(request, response);
            else response.writeHead(404).end();
        } else if (pathname === "/sse" && request.method === "GET") {
            const transport = new SSEServerTransport("/messages", response);
            events.set(transport.sessionId, transport);
            await made().connect(transport);
        } else if (pathname === "/messages" && request.method === "POST") {
            await events.get(searchParams.get("sessionId")).handlePostMessage(request, response);
        } else {
            response.writeHead(request.method === "POST" && pathname === "/sse" ? 405 : 404).end();
        }
    }),
);
