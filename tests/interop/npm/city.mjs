// What the servers of both SDKs for TypeScript have: the same as `our_server.py`, as far as they can.
//
// A tool gets its arguments and a `way`:
//   notify(method, params)   sends a notification of the request
//   log(level, data, logger) logs to the client
//   ask(method, params)      asks the client: the answer, or nothing if it has to be waited for
//   open(method, params)     the result that asks, where the answer has to be waited for
//   token                    progress token of the request
//   signal                   aborts when the request is cancelled
//   closeStream()            closes the stream that the request is answered on
//   changed(), updated(uri)  tell the clients

export const CITIES = ["Oslo", "Ostrava", "Porto"];
const GUEST = {
    type: "object",
    properties: { name: { type: "string" }, nights: { type: "integer", default: 2 } },
    required: ["name"],
};

const ended = new Map();
const said = (text) => ({ content: [{ type: "text", text: `${text}` }] });
const starting = (value) => CITIES.filter((city) => city.startsWith(value));

export function never(name, signal) {
    return new Promise((_, fail) => {
        signal.addEventListener("abort", () => {
            ended.set(name, true);
            fail(new Error("cancelled"));
        });
    });
}

async function hasEnded(name) {
    for (const late = Date.now() + 20_000; !ended.get(name) && Date.now() < late; ) {
        await new Promise((wake) => setTimeout(wake, 20));
    }
    return ended.get(name) ?? false;
}

async function asked(way, method, params, tell) {
    const answer = await way.ask(method, params);
    return answer === undefined ? way.open(method, params) : said(tell(answer));
}

export const tools = (z) => ({
    add: {
        takes: { a: z.number(), b: z.number() },
        gives: { result: z.number() },
        run: ({ a, b }) => ({ ...said(a + b), structuredContent: { result: a + b } }),
    },
    count: {
        takes: { to: z.number() },
        run: async ({ to }, { notify, token }) => {
            for (let progress = 1; progress <= to; progress += 1) {
                if (token === undefined) continue;
                const params = { progressToken: token, progress, total: to, message: `at ${progress}` };
                await notify("notifications/progress", params);
            }
            return said(`counted to ${to}`);
        },
    },
    note: {
        takes: { text: z.string() },
        run: async ({ text }, { log }) => {
            await log("warning", text, "notes");
            return said("noted");
        },
    },
    fail: {
        takes: {},
        run: () => {
            throw new Error("out of order");
        },
    },
    district: {
        takes: { city: z.string(), area: z.string().meta({ "x-mcp-header": "Area" }) },
        run: ({ city, area }) => said(`${area} of ${city}`),
    },
    book: {
        takes: {},
        run: (_, way) => {
            const params = { mode: "form", message: "Who is coming?", requestedSchema: GUEST };
            return asked(way, "elicitation/create", params, ({ action, content }) =>
                action === "accept" ? `booked for ${content.name} (${content.nights})` : action,
            );
        },
    },
    translate: {
        takes: { text: z.string() },
        run: ({ text }, way) => {
            const params = { messages: [{ role: "user", content: { type: "text", text } }], maxTokens: 50 };
            return asked(way, "sampling/createMessage", params, ({ model, content }) => `${model} says: ${content.text}`);
        },
    },
    folders: {
        takes: {},
        run: (_, way) => asked(way, "roots/list", undefined, ({ roots }) => roots.map(({ uri }) => uri).join(" ")),
    },
    wait: {
        takes: { name: z.string() },
        run: async ({ name }, { notify, token, signal }) => {
            const waiting = never(name, signal);
            await notify("notifications/progress", { progressToken: token, progress: 1 });
            return waiting;
        },
    },
    was_cancelled: { takes: { name: z.string() }, run: async ({ name }) => said(await hasEnded(name)) },
    change: {
        takes: {},
        run: (_, { changed }) => {
            changed();
            return said("changed");
        },
    },
    update: {
        takes: { uri: z.string() },
        run: ({ uri }, { updated }) => {
            updated(uri);
            return said("updated");
        },
    },
    part: {
        takes: {},
        run: async (_, { notify, token, closeStream }) => {
            if (token !== undefined) await notify("notifications/progress", { progressToken: token, progress: 1 });
            closeStream?.();
            return said("met again");
        },
    },
});

export function furnish(server, { z, shaped, completable, ResourceTemplate, wayOf }) {
    for (const [name, { takes, gives, run }] of Object.entries(tools(z))) {
        const config = { description: name, inputSchema: z.object(takes) };
        if (gives) config.outputSchema = z.object(gives);
        server.registerTool(name, config, (args, context) => run(args, wayOf(context)));
    }
    const plain = { mimeType: "text/plain" };
    const list = (uri) => ({ contents: [{ uri: uri.href, text: CITIES.join("\n"), ...plain }] });
    server.registerResource("cities", "city://list", plain, list);
    const blob = (uri) => ({ contents: [{ uri: uri.href, blob: "iVBORw==", mimeType: "image/png" }] });
    server.registerResource("map", "city://map", { mimeType: "image/png" }, blob);
    const template = new ResourceTemplate("city://{name}/weather", { list: undefined, complete: { name: starting } });
    server.registerResource("weather", template, plain, (uri, { name }) => ({
        contents: [{ uri: uri.href, text: `sun in ${name}`, ...plain }],
    }));
    const argsSchema = shaped({ city: completable(z.string(), starting) });
    server.registerPrompt("greet", { argsSchema }, ({ city }) => ({
        messages: [{ role: "user", content: { type: "text", text: `Greetings from ${city}` } }],
    }));
}

export class Events {
    #events = [];

    async storeEvent(stream, message) {
        this.#events.push({ stream, message });
        return `${this.#events.length - 1}`;
    }

    async getStreamIdForEventId(id) {
        return this.#events[Number(id)]?.stream;
    }

    async replayEventsAfter(id, { send }) {
        const { stream } = this.#events[Number(id)];
        for (const [number, event] of this.#events.entries()) {
            const wanted = number > Number(id) && event.stream === stream;
            if (wanted && Object.keys(event.message).length > 0) await send(`${number}`, event.message);
        }
        return stream;
    }
}

export function serve(listener) {
    listener.listen(0, "127.0.0.1", () => {
        console.log(`http://127.0.0.1:${listener.address().port}/mcp`);
    });
    process.on("SIGTERM", () => process.exit(0));
}
