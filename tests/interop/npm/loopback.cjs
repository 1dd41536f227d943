// Loaded before a server that chooses its own address: a free port of loopback instead, and printed.

const net = require("node:net");

const { listen } = net.Server.prototype;

net.Server.prototype.listen = function (...given) {
    const then = given.filter((each) => typeof each === "function");
    this.once("listening", () => console.log(`http://127.0.0.1:${this.address().port}/`));
    return listen.call(this, 0, "127.0.0.1", ...then);
};
