// What the agent of one iteration said and did. Pages of the journal come when they are near the screen and go when they
// are far from it, so that the browser never holds the whole run.
const SIGNS = { ok: ["✓", "good"], fail: ["✗", "bad"], unknown: ["?", "warn"] };
const MOST_OUTPUT = 200000;
const PAGE = 262144;

class Transcript {
  constructor(source, id, from, to, start, live) {
    Object.assign(this, { source, id, floor: from, to, live, pages: [], tools: new Map(), busy: false });
    this.el = el("div", { class: "body" });
    this.earlier = el("button", { class: "btn more", text: "Show earlier", onclick: () => this.back() });
    this.last = el("div", { class: "end", "aria-hidden": "true" });
    this.el.append(this.earlier, this.last);
    this.near = new IntersectionObserver((seen) => seen.forEach((entry) => this.moved(entry)), { rootMargin: "1500px 0px" });
    this.begin = this.reached = start == null ? to : start;
    this.ready = start == null ? this.back() : this.more();
    this.ready.then(() => this.near.observe(this.last));
  }

  close() { this.near.disconnect(); }

  moved(entry) {
    if (entry.target === this.last) { if (entry.isIntersecting) this.more(); return; }
    const page = this.pages.find((page) => page.el === entry.target);
    if (!page) return;
    if (entry.isIntersecting && !page.loaded) this.fill(page);
    // The last page stays: it may grow.
    else if (!entry.isIntersecting && page.loaded && page !== this.pages.at(-1)) this.drop(page);
  }

  drop(page) {
    page.el.style.height = `${page.el.getBoundingClientRect().height}px`;
    page.el.replaceChildren();
    page.tools.forEach((tool) => this.tools.get(tool.id) === tool && this.tools.delete(tool.id));
    Object.assign(page, { loaded: false, tools: [], open: null });
  }

  async fill(page) {
    page.loaded = true;
    const { rows } = await this.source.rows(this.id, { from: page.from, to: page.to });
    page.el.style.height = "";
    this.show(page, rows);
  }

  page(from, to) { return { from, to, el: el("div", { class: "page" }), loaded: true, tools: [], open: null }; }

  // The page before the first one.
  async back() {
    if (this.busy || this.begin <= this.floor) { this.earlier.hidden = this.begin <= this.floor; return; }
    this.busy = true;
    try {
      const got = await this.source.rows(this.id, { from: this.floor, before: this.begin });
      const page = this.page(got.from, got.to);
      this.begin = got.from;
      this.pages.unshift(page);
      this.earlier.after(page.el);
      this.show(page, got.rows);
      this.near.observe(page.el);
      this.earlier.hidden = this.begin <= this.floor;
    } finally { this.busy = false; }
  }

  // The page behind the last one; a page that is not full grows.
  async more() {
    if (this.busy || this.reached >= this.to) { this.earlier.hidden = this.begin <= this.floor; return; }
    this.busy = true;
    try {
      const got = await this.source.rows(this.id, { from: this.reached, to: this.to });
      if (got.to === this.reached) return;
      let page = this.pages.at(-1);
      if (!page || !page.loaded || page.to - page.from > PAGE || got.to - got.from > PAGE / 4) {
        page = this.page(got.from, got.to);
        this.pages.push(page);
        this.last.before(page.el);
        this.near.observe(page.el);
      }
      page.to = this.reached = got.to;
      this.show(page, got.rows);
      this.earlier.hidden = this.begin <= this.floor;
    } finally { this.busy = false; }
    // Asked again: whoever scrolled meanwhile is at the end already.
    this.near.unobserve(this.last);
    this.near.observe(this.last);
    const room = this.last.getBoundingClientRect().top < innerHeight + 1500;
    if (this.reached < this.to && (room || this.following)) await this.more();
  }

  // The journal has grown. Who looks at an earlier page keeps what it shows.
  async grow(to, live) {
    const atEnd = this.reached >= this.to;
    this.to = to;
    this.live = live;
    if (atEnd) await this.more();
    if (!live) this.tools.forEach((tool) => tool.status || this.finish(tool, "unknown", null));
  }

  show(page, rows) {
    for (const row of rows) {
      if (row.k !== "text") page.open = null;
      const node = this[row.k]?.(row, page);
      if (node) { node.dataset.o = row.o; page.el.append(node); }
      if (row.k === "plan") this.onplan?.(row);
    }
    if (!this.live && this.reached >= this.to && page === this.pages.at(-1)) page.tools.forEach((tool) => tool.status || this.finish(tool, "unknown", null));
  }

  text(row, page) {
    const open = page.open;
    if (open && open.tag === row.tag && open.text.length < 500000) {
      open.text += row.delta || open.text === "" ? row.text : `\n${row.text}`;
      if (!open.due) { open.due = true; requestAnimationFrame(() => { open.due = false; open.draw(); }); }
      return null;
    }
    const block = { tag: row.tag, text: row.text };
    page.open = block;
    const full = row.cut ? this.rest(row, (text) => { block.text = text; block.draw(); }) : null;
    if (row.tag === "AI" || row.tag === "USER") {
      const holder = el("div", { class: row.nested ? "block dim" : "block" });
      block.draw = () => { holder.replaceChildren(markdown(block.text), full || ""); };
      block.draw();
      return holder;
    }
    const names = { THINK: "Thinking", SYS: "System", TOOL: "Output", PROMPT: "Prompt" };
    const pre = el("pre", { text: block.text });
    const label = el("span");
    block.draw = () => {
      pre.textContent = block.text;
      label.textContent = ` ${block.text.trim().split("\n")[0].slice(0, 120)}`;
    };
    block.draw();
    return el("details", { class: "think block" }, el("summary", { class: "one" }, el("b", { class: "dim", text: names[row.tag] }), label), pre, full);
  }

  // Fetches what a row does not have.
  rest(row, put) {
    const name = `Show all of it (${bytes(row.cut)})`;
    if (!this.source.row) return el("p", { class: "dim", text: `cut: it has ${bytes(row.cut)}; \`ralph logs\` prints all of it` });
    const button = el("button", { class: "btn", text: name, onclick: async () => {
      button.disabled = true;
      const whole = await this.source.row(this.id, row.o);
      put(whole.text ?? whole.input ?? "");
      button.remove();
    } });
    return button;
  }

  tool(row, page) {
    const before = this.tools.get(row.id);
    const tool = { id: row.id, row, out: "", status: null, cut: null, at: row.at };
    if (before?.orphan) { Object.assign(tool, { out: before.out, cut: before.cut }); before.el.remove(); }
    this.tools.set(row.id, tool);
    page.tools.push(tool);
    tool.sign = el("span", { class: "sign live", text: "●" });
    tool.sign.classList.add("busy");
    tool.time = el("span", { class: "time" });
    if (this.live) tool.time.dataset.since = row.at;
    const change = row.change;
    const summary = el("summary", null, tool.sign, el("span", { class: "name", text: row.name }),
      el("span", { class: "what mono one grow", text: row.what }),
      change && el("span", { class: "mono" }, el("span", { class: "plus", text: `+${change.added}` }), " ", el("span", { class: "minus", text: `−${change.removed}` })),
      el("a", { class: "link", href: `#/run/${this.id}/at/${row.o}`, title: "Link to this tool", "aria-label": `link to ${row.name}`, text: "#" }), tool.time);
    tool.el = el("details", { class: `tool${row.nested ? " nested" : ""}`, ontoggle: () => this.draw(tool) }, summary);
    if (before?.orphan && before.status) this.finish(tool, before.status, before.ms);
    return tool.el;
  }

  // What belongs to a tool that started on a page that is not here.
  orphan(row, page) {
    const start = { id: row.id, o: row.o, at: row.at, name: "tool", what: "started earlier", orphan: true };
    const node = this.tool(start, page);
    this.tools.get(row.id).orphan = true;
    node.dataset.o = row.o;
    page.el.append(node);
    return this.tools.get(row.id);
  }

  out(row, page) {
    const tool = this.tools.get(row.id) || this.orphan(row, page);
    if (tool.out.length < MOST_OUTPUT) tool.out += (row.delta || !tool.out ? "" : "\n") + row.text;
    if (row.cut) tool.cut = row;
    if (tool.el.open) this.draw(tool);
    return null;
  }

  end(row, page) {
    const tool = this.tools.get(row.id) || this.orphan(row, page);
    this.finish(tool, row.status, row.ms ?? (tool.orphan ? null : row.at - tool.at));
    return null;
  }

  finish(tool, status, ms) {
    Object.assign(tool, { status, ms });
    const [sign, ink] = SIGNS[status];
    tool.sign.className = `sign ${ink}`;
    tool.sign.textContent = sign;
    delete tool.time.dataset.since;
    tool.time.textContent = ms == null ? "" : duration(ms);
    tool.el.firstChild.setAttribute("aria-label", `${tool.row.name} ${tool.row.what || ""}: ${status}`);
    if (status === "fail" && !tool.el.open) tool.el.open = true;
  }

  // The inside of a tool is made when someone opens it.
  draw(tool) {
    tool.inner?.remove();
    if (!tool.el.open) return;
    const { row } = tool;
    const full = row.what && row.input && !row.change ? row.input : null;
    tool.inner = el("div", { class: "inner" }, row.change && diffLines(row.change.lines),
      full && el("div", null, el("h3", { text: "Input" }), el("pre", { text: shortInput(full) })),
      tool.out && el("div", null, el("h3", { text: "Output" }), el("pre", { text: tool.out }), tool.cut && this.rest(tool.cut, (text) => { tool.out = text; tool.cut = null; this.draw(tool); })),
      !tool.out && tool.status && el("p", { class: "dim", text: "no output" }));
    tool.el.append(tool.inner);
  }

  say(row) {
    return el("div", { class: `say ${row.ink}` }, el("span", { class: "sign", text: row.tag === "YOU" ? "›" : "·" }),
      el("span", { class: "text" }, row.tag === "YOU" ? `you: ${row.text}` : ticks(row.text)), row.more && el("span", { class: "dim", text: row.more }));
  }

  checks(row) {
    const list = row.checks.map((check) => {
      const head = [el("span", { class: `sign ${check.passed ? "good" : "bad"}`, text: check.passed ? "✓" : "✗" }), el("span", { class: "mono grow", text: check.command || check.name }), el("span", { class: "dim", text: `${check.ended} · ${duration(check.ms)}` })];
      return check.tail ? el("details", { open: !check.passed }, el("summary", { class: "row" }, head), el("pre", { text: check.tail })) : el("div", { class: "row" }, head);
    });
    return el("div", { class: `card ${row.ink}` }, el("div", { class: `verdict ${row.ink}` }, ticks(row.text)), list);
  }

  receipt(row) {
    return el("div", { class: "receipt" }, el("span", { class: row.ink, text: row.text }), el("span", { class: "dim", text: row.failed ? `${row.tools}, ${row.failed} failed` : row.tools }),
      row.count > 0 && el("a", { href: `#/run/${this.id}/files/${row.n}`, text: `${plural(row.count, "file")} changed${row.lines ? ` ${row.lines}` : ""}` }),
      row.commits.map((commit) => el("span", { class: "mono", text: commit })), row.left.map((line) => el("span", { class: "warn", text: line })));
  }

  plan(row) {
    const done = row.items.filter((item) => item.status === "done").length;
    return el("div", { class: "say dim" }, el("span", { class: "sign", text: "☐" }), el("span", { text: `plan: ${done} of ${plural(row.items.length, "item")} done` }));
  }
}
// A command alone is what people want to see of `{"command": "…"}`.
const shortInput = (text) => {
  try {
    const input = JSON.parse(text);
    const keys = Object.keys(input);
    const only = input.command ?? input.cmd;
    if (typeof only === "string" && keys.every((key) => ["command", "cmd", "description", "timeout", "timeout_ms"].includes(key))) return `$ ${only}`;
  } catch { /* it was cut */ }
  return text;
};
