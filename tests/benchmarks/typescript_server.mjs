// The server of the benchmark on the TypeScript SDK, for 2026-07-28 alone. It answers with JSON.
//
// Prints its URL on standard output, and ends when its standard input does. MCP_NPM_PEERS names the
// folder with the packages of npm.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { setImmediate } from "node:timers/promises";

const require = createRequire(`${process.env.MCP_NPM_PEERS}/`);
const { McpServer, createMcpHandler } = require("@modelcontextprotocol/server");
const { toNodeHandler } = require("@modelcontextprotocol/node");
const { z } = require("zod");

const inputSchema = z.object({ a: z.number().int(), b: z.number().int() });
const outputSchema = z.object({ total: z.number().int() });

function bench() {
    const server = new McpServer({ name: "bench", version: "1.0" });
    const description = "The sum of two numbers, as text.";
    server.registerTool("add", { description, inputSchema }, async ({ a, b }) => ({
        content: [{ type: "text", text: `${a + b}` }],
    }));
    const object = "The sum of two numbers, as an object; other work runs before.";
    const total = { description: object, inputSchema, outputSchema };
    server.registerTool("total", total, async ({ a, b }, context) => {
        if (context.mcpReq.id === undefined) {
            throw new Error("expected a request with an id");
        }
        await setImmediate();
        const structuredContent = { total: a + b };
        const text = JSON.stringify(structuredContent);
        return { content: [{ type: "text", text }], structuredContent };
    });
    return server;
}

const handler = toNodeHandler(createMcpHandler(bench, { legacy: "reject", responseMode: "json" }));
const server = createServer(handler);
server.listen(0, "127.0.0.1", () => {
    console.log(`http://127.0.0.1:${server.address().port}/mcp`);
});
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
