// What a client of either SDK does with our server: one JSON line per result.
//
// A client is given as a `face`:
//   client                            the SDK's own
//   modern                            whether the revision has no sessions
//   call(name, arguments, options)    calls a tool
//   on(notification, handler)         is called with the params of a notification
//   ask(method, params)               sends a request that the SDK has no method for

const SECONDS = 20;

export class Heard {
    #all = [];
    #waiting = [];

    keep(item) {
        this.#all.push(item);
        this.#waiting.splice(0).forEach((wake) => wake());
    }

    get all() {
        return [...this.#all];
    }

    clear() {
        this.#all = [];
    }

    async until(wanted) {
        const late = timeout(`nothing wanted among ${JSON.stringify(this.#all)}`);
        try {
            for (;;) {
                const found = this.#all.find(wanted);
                if (found !== undefined) return found;
                await Promise.race([new Promise((wake) => this.#waiting.push(wake)), late.promise]);
            }
        } finally {
            late.stop();
        }
    }
}

function timeout(text) {
    let timer;
    const promise = new Promise((_, fail) => {
        timer = setTimeout(() => fail(new Error(text)), SECONDS * 1000);
    });
    return { promise, stop: () => clearTimeout(timer) };
}

export function show(name, value) {
    process.stdout.write(`${JSON.stringify({ [name]: value ?? null })}\n`);
}

async function step(name, work) {
    try {
        show(name, await work());
    } catch (error) {
        const { code, message, data } = error;
        show(name, { error: { code, message, data, kind: error.constructor.name } });
    }
}

const text = (result) => (result.isError ? { isError: result.content[0].text } : result.content[0].text);

export async function visit({ client, modern, call, on, ask }) {
    const logs = new Heard();
    const news = new Heard();
    const pages = new Heard();
    on("notifications/message", (params) => logs.keep(params));
    for (const kind of ["tools", "prompts", "resources"]) {
        on(`notifications/${kind}/list_changed`, () => news.keep(kind));
    }
    on("notifications/resources/updated", (params) => news.keep(params.uri));

    await step("server", async () => ({
        name: client.getServerVersion()?.name,
        instructions: client.getInstructions(),
    }));
    if (!modern) await step("ping", () => client.ping());

    await step("tools", async () => (await client.listTools()).tools.map((tool) => tool.name));
    await step("add", async () => {
        const { content, structuredContent } = await call("add", { a: 1, b: 2 });
        return { content, structuredContent };
    });
    await step("district", async () => {
        const areas = ["north", " \u00fc ", "=?base64?eA==?=", ""];
        const results = await Promise.all(areas.map((area) => call("district", { city: "Oslo", area })));
        return results.map(text);
    });
    await step("side by side", async () => {
        const numbers = Array.from({ length: 20 }, (_, number) => number);
        const results = await Promise.all(numbers.map((number) => call("add", { a: number, b: 0 })));
        return results.map(text);
    });
    await step("fail", async () => text(await call("fail", {})));
    await step("refuse", async () => text(await call("refuse", {})));
    await step("unknown tool", async () => text(await call("no-such-tool", {})));

    await step("progress", async () => {
        const heard = [];
        await call("count", { to: 3 }, { onprogress: ({ progress, total }) => heard.push([progress, total]) });
        return heard;
    });
    await step("log", async () => {
        if (!modern) await client.setLoggingLevel("info");
        await call("note", { text: "rain" });
        const { level, logger, data } = await logs.until(() => true);
        return [level, logger, data];
    });

    await step("resources", async () => (await client.listResources()).resources.map((one) => one.uri));
    await step("templates", async () =>
        (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate),
    );
    await step("read", async () => (await client.readResource({ uri: "city://Oslo/weather" })).contents[0].text);
    await step("read blob", async () => (await client.readResource({ uri: "city://map" })).contents[0].blob);
    await step("read unknown", () => client.readResource({ uri: "city://nowhere" }));
    await step("prompts", async () => (await client.listPrompts()).prompts.map((one) => one.name));
    await step("prompt", async () => {
        const got = await client.getPrompt({ name: "greet", arguments: { city: "Oslo" } });
        return got.messages.map((message) => message.content.text);
    });
    await step("complete", async () => {
        const ref = { type: "ref/prompt", name: "greet" };
        return (await client.complete({ ref, argument: { name: "city", value: "Os" } })).completion.values;
    });

    await step("sampling", async () => text(await call("translate", { text: "sun" })));
    await step("roots", async () => text(await call("folders", {})));
    if (!modern) await step("roots changed", () => client.sendRootsListChanged());
    await step("elicitation", async () => text(await call("book", {})));
    await step("two elicitations", async () => text(await call("book_twice", {})));

    await step("plan", async () => text(await call("plan", {})));
    on("notifications/elicitation/complete", ({ elicitationId }) => pages.keep(elicitationId));
    await step("page", async () => text(await call("sign_in", {})));
    for (const turn of ["first", "second"]) {
        await step(`enter ${turn}`, async () => text(await call("enter", { name: `${process.pid}` })));
    }
    await step("cancelled", async () => {
        const name = `${process.pid}`;
        const leaving = new AbortController();
        const options = { signal: leaving.signal, onprogress: () => leaving.abort("enough") };
        const outcome = await call("wait", { name }, options).then(() => "answered", () => "gone");
        return [outcome, text(await call("was_cancelled", { name }))];
    });

    await step("changes", async () => {
        const all = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
        const stream = modern ? await client.listen(all) : undefined;
        await call("change", {});
        for (const kind of ["tools", "prompts", "resources"]) await news.until((heard) => heard === kind);
        await stream?.close();
        return [...new Set(news.all)].sort();
    });
    await step("update", async () => {
        const uri = "city://list";
        const stream = modern ? await client.listen({ resourceSubscriptions: [uri] }) : undefined;
        if (!modern) await client.subscribeResource({ uri });
        await call("update", { uri });
        const heard = await news.until((one) => one === uri);
        await stream?.close();
        if (!modern) await client.unsubscribeResource({ uri });
        return heard;
    });
    await step("part", async () => text(await call("part", {}, { onprogress: () => {} })));
    show("pages", pages.all.length);
    if (ask) await step("unknown method", () => ask("no/such", {}));
}
