// The first SDK for TypeScript as client: URL, revision, `http` or `sse`.

import { createRequire } from "node:module";
import { show, visit } from "./visit.mjs";

const require = createRequire(`${process.env.MCP_NPM_PEERS}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");

const [url, revision, kind] = process.argv.slice(2);
const NOTIFICATIONS = {
    "notifications/message": types.LoggingMessageNotificationSchema,
    "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
    "notifications/prompts/list_changed": types.PromptListChangedNotificationSchema,
    "notifications/resources/list_changed": types.ResourceListChangedNotificationSchema,
    "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
    "notifications/elicitation/complete": types.ElicitationCompleteNotificationSchema,
};

const requests = [];
const watched = async (input, init) => {
    const response = await fetch(input, init);
    const headers = new Headers(init?.headers);
    requests.push({ method: init?.method ?? "GET", status: response.status, resumed: headers.get("last-event-id") });
    return response;
};

const client = new Client(
    { name: "sdk-v1", version: "1" },
    { capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } } },
);
client.setRequestHandler(types.ElicitRequestSchema, ({ params }) =>
    params.mode === "url" ? { action: "accept" } : { action: "accept", content: { name: "Ada", nights: 3 } },
);
client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => ({
    role: "assistant",
    model: "parrot",
    content: { type: "text", text: `<${[params.messages.at(-1).content].flat()[0].text}>` },
}));
client.setRequestHandler(types.ListRootsRequestSchema, () => ({
    roots: [{ uri: "file:///maps", name: "maps" }],
}));

const transport =
    kind === "sse"
        ? new SSEClientTransport(new URL(url), { fetch: watched })
        : new StreamableHTTPClientTransport(new URL(url), { fetch: watched });
const send = transport.send.bind(transport);
transport.send = (message, options) => {
    // The SDK offers its newest revision only.
    if (message.method === "initialize") message.params.protocolVersion = revision;
    return send(message, options);
};
let agreed;
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
    agreed = version;
    setProtocolVersion?.(version);
};

await client.connect(transport);
show("agreed", agreed);
await visit({
    client,
    modern: false,
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    on: (method, handler) => client.setNotificationHandler(NOTIFICATIONS[method], ({ params }) => handler(params)),
    ask: (method, params) => client.request({ method, params }, types.EmptyResultSchema),
});
if (revision === "2025-03-26") {
    const answers = [];
    const { onmessage } = transport;
    const both = new Promise((done) => {
        transport.onmessage = (message, extra) => {
            if (!`${message.id}`.startsWith("batch")) onmessage(message, extra);
            else if (answers.push(message) === 2) done();
        };
    });
    const add = { name: "add", arguments: { a: 1, b: 2 } };
    await transport.send([
        { jsonrpc: "2.0", id: "batch-1", method: "ping" },
        { jsonrpc: "2.0", id: "batch-2", method: "tools/call", params: add },
    ]);
    await both;
    transport.onmessage = onmessage;
    show("batch", Object.fromEntries(answers.map(({ id, result }) => [id, result])));
}
if (kind === "http") {
    const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-session-id": transport.sessionId,
        "mcp-protocol-version": agreed,
    };
    await transport.terminateSession();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    show("after the end", (await fetch(url, { method: "POST", headers, body })).status);
}
show("requests", requests);
await client.close();
process.exit(0); // the SDK may wait to open its stream once more
