// The little of a document that the page's script uses.
let made = 0;
class Node {
  constructor(tag) { made += 1; this.tag = tag; this.inner = []; this.value = ""; this.own = ""; }
  append(...nodes) {
    for (const node of nodes) { if (node?.tag) node.parent = this; this.inner.push(node); }
  }
  insertBefore(node) { node.parent = this; this.inner.unshift(node); }
  replaceChildren(...nodes) { this.inner = []; this.append(...nodes); }
  remove() {
    if (this.parent) this.parent.inner = this.parent.inner.filter((node) => node !== this);
  }
  after() {} addEventListener() {} setAttribute() {} scrollIntoView() {}
  querySelectorAll() { return []; }
  get firstChild() { return this.inner[0] ?? null; }
  get lastChild() { return this.inner.at(-1) ?? null; }
  get childElementCount() { return this.inner.length; }
  get textContent() {
    return this.own + this.inner.map((node) => node.textContent ?? String(node)).join("");
  }
  set textContent(text) { this.own = String(text); this.inner = []; }
}
const ids = {};
Object.assign(globalThis, {
  document: {
    createElement: (tag) => new Node(tag),
    getElementById: (id) => (ids[id] ??= new Node(id)),
    querySelectorAll: () => [],
  },
  innerWidth: 2000, location: { search: "" },
  matchMedia: () => ({ matches: false, addEventListener() {} }),
  fetch: async (path) => path.startsWith("/events") ? nextEvents() : new Promise(() => {}),
});
let batches = [];
const asked = [];
const nextEvents = () => { return new Promise((resolve) => setImmediate(() => {
  const events = batches.shift();
  if (events === undefined) finish();
  else resolve({ ok: true, json: async () => events });
})); };
