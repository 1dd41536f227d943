// The second SDK for TypeScript as client: URL, revision, `http` or `sse`.

import { createRequire } from "node:module";
import { show, visit } from "./visit.mjs";

const require = createRequire(`${process.env.MCP_NPM_PEERS}/`);
const { Client, SSEClientTransport, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");

const [url, revision, kind] = process.argv.slice(2);
const modern = revision === "2026-07-28";

const requests = [];
const watched = async (input, init) => {
    const response = await fetch(input, init);
    const headers = new Headers(init?.headers);
    requests.push({
        method: init?.method ?? "GET",
        status: response.status,
        resumed: headers.get("last-event-id"),
        session: headers.get("mcp-session-id") !== null,
        area: headers.get("mcp-param-area"),
    });
    return response;
};

const client = new Client(
    { name: "sdk-v2", version: "2" },
    {
        capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
        ...(modern
            ? { versionNegotiation: { mode: { pin: revision } } }
            : { supportedProtocolVersions: [revision] }),
    },
);
client.setRequestHandler("elicitation/create", ({ params }) =>
    params.mode === "url" ? { action: "accept" } : { action: "accept", content: { name: "Ada", nights: 3 } },
);
client.setRequestHandler("sampling/createMessage", ({ params }) => ({
    role: "assistant",
    model: "parrot",
    content: { type: "text", text: `<${[params.messages.at(-1).content].flat()[0].text}>` },
}));
client.setRequestHandler("roots/list", () => ({ roots: [{ uri: "file:///maps", name: "maps" }] }));

const transport =
    kind === "sse"
        ? new SSEClientTransport(new URL(url), { fetch: watched })
        : new StreamableHTTPClientTransport(new URL(url), { fetch: watched });
await client.connect(transport);
show("agreed", client.getNegotiatedProtocolVersion());
await visit({
    client,
    modern,
    call: (name, args, options) => {
        const meta = modern ? { _meta: { "io.modelcontextprotocol/logLevel": "debug" } } : {};
        return client.callTool({ name, arguments: args, ...meta }, options);
    },
    on: (method, handler) => client.setNotificationHandler(method, ({ params }) => handler(params)),
});
if (kind === "http" && !modern) {
    const headers = {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-session-id": transport.sessionId,
        "mcp-protocol-version": revision,
    };
    await transport.terminateSession();
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    show("after the end", (await fetch(url, { method: "POST", headers, body })).status);
}
show("requests", requests);
await client.close();
process.exit(0); // the SDK may wait to open its stream once more
