// The page: where its data comes from, the list of runs, one run, and orders to it.
const FILE = document.querySelector("script[data-kind=run]");

// A server, or the file itself.
const server = {
  async get(path) {
    const answer = await fetch(path, { headers: { accept: "application/json" } });
    if (answer.status === 401) throw new Error("open the address that `ralph serve` printed");
    if (!answer.ok) throw new Error(answer.status === 404 ? "not found" : `the server answered ${answer.status}`);
    return answer;
  },
  async json(path) { return (await this.get(path)).json(); },
  query(values) { return new URLSearchParams(Object.entries(values).filter(([, value]) => value != null)).toString(); },
  runs() { return this.json("api/runs"); },
  run(id) { return this.json(`api/runs/${id}`); },
  rows(id, range) { return this.json(`api/runs/${id}/rows?${this.query(range)}`); },
  row(id, at) { return this.json(`api/runs/${id}/row?at=${at}`); },
  search(id, q, from) { return this.json(`api/runs/${id}/search?${this.query({ q, from })}`); },
  async diff(id, iteration) { return (await this.get(`api/runs/${id}/diff?${this.query({ iteration })}`)).text(); },
  order(id, order) { return this.post(`api/runs/${id}/order`, order); },
  async post(path, order) {
    const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(order) });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(told.error || `the server answered ${answer.status}`);
    return told.effect;
  },
  live(path, hear) { const events = new EventSource(path); events.onmessage = (event) => hear(JSON.parse(event.data)); return events; },
};
const file = () => {
  const data = (kind) => [...document.querySelectorAll(`script[data-kind=${kind}]`)];
  const read = (node) => JSON.parse(node.textContent);
  const run = read(FILE);
  // Pages are parsed when someone looks at them.
  const pages = data("rows").map((node) => { const head = node.textContent.match(/^\{"from":(\d+),"to":(\d+)/); return { node, from: +head[1], to: +head[2] }; });
  return {
    file: true,
    run: async () => run,
    runs: async () => ({ runs: [run] }),
    async rows(id, { from, to = Infinity, before }) {
      const end = before ?? to;
      const page = before == null ? pages.find((page) => page.to > from) : pages.findLast((page) => page.from < before);
      if (!page) return { from, to: from, rows: [] };
      const rows = read(page.node).rows.filter((row) => row.o >= from && row.o < end);
      return { from: Math.max(from, page.from), to: Math.min(end, page.to), rows };
    },
    async search(id, q) {
      const hits = [], needle = q.toLowerCase();
      for (const page of pages) {
        for (const row of read(page.node).rows) {
          const line = [row.text, row.what, row.name, row.input].filter(Boolean).join("\n").split("\n").find((line) => line.toLowerCase().includes(needle));
          if (line) hits.push({ o: row.o, n: run.iterations.findLast((one) => one.from <= row.o)?.n ?? 0, line: line.trim().slice(0, 200) });
          if (hits.length === 200) return { hits, next: null };
        }
      }
      return { hits, next: null };
    },
    async diff(id, iteration) { return data("diff").map(read).find((diff) => diff.iteration === (iteration ?? null))?.text ?? ""; },
  };
};
const source = FILE ? file() : server;
const $ = (id) => document.getElementById(id);
let view = null;

const note = (text) => {
  $("note").textContent = text;
  $("note").classList.add("on");
  clearTimeout(note.timer);
  note.timer = setTimeout(() => $("note").classList.remove("on"), 5000);
};
const pill = (run) => el("span", { class: `pill ${run.ink}${run.state === "running" || run.running ? " busy" : ""}` }, el("span", { class: "dot" }), el("span", { text: run.word, class: "word" }));
const rejected = (run) => run.rejected && el("span", { class: "pill warn", text: "claim rejected", title: "The last claim that everything is done was rejected" });
const remaining = (run) => run.until ? `until ${clock(run.until)}` : null;

// A question before something happens. Gives the words, or null.
const ask = (title, text, action, options = {}) => new Promise((resolve) => {
  const dialog = $("dialog");
  const field = options.field && el(options.field === "line" ? "input" : "textarea", { type: options.field === "line" ? "text" : null, rows: 4, placeholder: options.placeholder, "aria-label": title });
  const box = options.check && el("input", { type: "checkbox" });
  const done = (value) => { dialog.close(); resolve(value); };
  dialog.replaceChildren(el("form", { onsubmit: (event) => { event.preventDefault(); done({ words: field?.value ?? "", checked: box?.checked ?? false }); } },
    el("h2", { id: "dialog-title", text: title }), el("p", { text }), field, box && el("label", null, box, ` ${options.check}`),
    el("div", { class: "ends" }, el("button", { type: "button", class: "btn", text: "Cancel", onclick: () => done(null) }), el("button", { class: `btn ${options.stop ? "stop" : "main"}`, text: action }))));
  dialog.oncancel = () => resolve(null);
  dialog.showModal();
  field?.focus();
});

class Home {
  constructor() {
    document.title = "ralph";
    document.body.classList.remove("steering");
    $("top").replaceChildren(el("div", { class: "wide bar" }, el("a", { class: "brand", href: "#/", text: "ralph" }), el("span", { class: "dim grow", text: "all runs on this machine" })));
    this.el = el("div", { class: "wide home" });
    $("main").replaceChildren(this.el);
  }
  async start() { this.show(await source.runs()); this.listen(); }
  listen() { this.events = server.live("api/live", (news) => this.show(news)); }
  pause() { this.events?.close(); }
  close() { this.pause(); }
  show({ runs, batches }) {
    const live = runs.filter((run) => run.alive), over = runs.filter((run) => !run.alive);
    const parts = [el("h1", { class: "skip", text: "Runs" })];
    const active = batches.filter((batch) => batch.alive), ended = batches.filter((batch) => !batch.alive);
    if (live.length || active.length) parts.push(el("h2", { text: "Active" }), el("div", { class: "cards" }, active.map((batch) => this.batch(batch)), live.map((run) => this.card(run))));
    if (ended.length) parts.push(el("h2", { text: "Batches" }), el("div", { class: "list" }, ended.slice(0, 5).map((batch) => this.ended(batch))));
    let list, last;
    for (const run of over) {
      const when = day(run.started);
      if (when !== last) { list = el("div", { class: "list" }); parts.push(el("h2", { text: when }), list); last = when; }
      list.append(this.line(run));
    }
    if (!runs.length && !batches.length) parts.push(el("div", { class: "empty" }, "No runs yet. Start one with ", el("code", { text: "ralph run" }), "."));
    this.el.replaceChildren(...parts);
  }
  card(run) {
    const facts = [run.project, run.agent, `iteration ${run.iteration}${run.of ? ` of ${run.of}` : ""}`, run.cost];
    return el("a", { class: "card-run", href: `#/run/${run.id}` }, el("div", { class: "facts states" }, pill(run), rejected(run), remaining(run) && el("span", { text: remaining(run) }), el("span", { class: "grow" }), el("span", { "data-started": run.started - 0, "data-base": run.ms - (Date.now() - run.started), text: duration(run.ms) })),
      el("h3", { class: "few", text: run.goal || run.id }), el("div", { class: "facts" }, facts.filter(Boolean).map((fact) => el("span", { text: fact }))), run.line && el("div", { class: "last one", text: run.line }));
  }
  batch(batch) {
    return el("a", { class: "card-run", href: `#/batch/${batch.id}` }, el("div", { class: "facts states" }, pill(batch), el("span", { class: "grow" }), el("span", { text: `${batch.over} of ${batch.of}` })),
      el("h3", { class: "few", text: `Batch of ${plural(batch.of, "task")}` }), el("div", { class: "facts" }, [batch.project, `into ${batch.target}`, batch.cost].filter(Boolean).map((fact) => el("span", { text: fact }))), el("div", { class: "last one", text: batch.counts }));
  }
  ended(batch) {
    return el("a", { href: `#/batch/${batch.id}` }, el("span", null, pill(batch)), el("span", { class: "goal one", text: `${plural(batch.of, "task")}: ${batch.counts}` }),
      el("span", { class: "dim one hide", text: batch.project }), el("span", { class: "n hide", text: clock(batch.started) }), el("span", { class: "n", text: "" }), el("span", { class: "n hide", text: batch.cost || "–" }));
  }
  line(run) {
    return el("a", { href: `#/run/${run.id}` }, el("span", null, pill(run.rejected ? { ...run, word: `${run.word}, rejected` } : run)), el("span", { class: "goal one", text: run.goal || run.id }),
      el("span", { class: "dim one hide", text: run.project }), el("span", { class: "n hide", text: clock(run.started) }), el("span", { class: "n", text: duration(run.ms) }), el("span", { class: "n hide", text: run.cost || "–" }));
  }
}

class Run {
  constructor(id) {
    Object.assign(this, { id, open: new Map(), nodes: new Map(), folds: new Map(), tab: "log" });
    this.el = el("div", { class: "wide" });
    $("main").replaceChildren(this.el);
  }
  async start(place) {
    this.run = await source.run(this.id);
    this.steer = this.run.steer && !source.file;
    this.frame();
    await this.go(place);
    if (!source.file) this.listen();
  }
  listen() { this.events = server.live(`api/runs/${this.id}/live?known=${this.run.iterations.length}`, (news) => this.hear(news)); }
  pause() { this.events?.close(); }
  close() { this.pause(); this.past?.disconnect(); document.body.classList.remove("past"); this.open.forEach((one) => one.close()); }

  frame() {
    const { run } = this;
    this.field = el("input", { class: "search", type: "search", placeholder: "Search", title: "Search this run (/)", "aria-label": "Search this run", onkeydown: (event) => { if (event.key === "Enter") this.search(this.field.value); if (event.key === "Escape") { this.field.value = ""; this.results.replaceChildren(); this.field.blur(); } } });
    this.orders = el("div", { class: "steer", role: "group", "aria-label": "Steer the run" });
    this.top = el("span", { class: "state" });
    $("top").replaceChildren(el("div", { class: "wide bar" }, source.file ? el("span", { class: "brand", text: "ralph" }) : el("a", { class: "brand", href: "#/", text: "ralph" }), el("span", { class: "sep", text: "/" }), this.top, el("span", { class: "goal one grow", text: run.goal }), this.field, this.orders));
    this.head = el("div", { class: "head" });
    this.tabs = el("nav", { class: "tabs", "aria-label": "Views" });
    this.results = el("div");
    this.list = el("div", { class: "grow" });
    this.aside = el("aside", { "aria-label": "Overview" });
    this.el.replaceChildren(this.head, this.tabs, el("div", { class: "cols" }, el("div", null, this.results, this.list), this.aside));
    // The bar repeats the goal when the heading is out of sight.
    this.past = new IntersectionObserver(([entry]) => document.body.classList.toggle("past", !entry.isIntersecting), { rootMargin: "-70px 0px 0px" });
    this.past.observe(this.head);
    this.plan = run.plan;
    this.draw();
    run.iterations.forEach((one) => this.iteration(one));
  }

  draw() {
    const { run } = this;
    document.title = `${run.word} · ${run.goal || run.id}`;
    this.top.replaceChildren(pill(run));
    const fact = (name, value) => value != null && value !== "" && el("span", null, `${name} `, el("b", { text: value }));
    const time = el("b", { text: duration(run.ms) });
    if (run.alive) Object.assign(time.dataset, { base: run.ms, started: Date.now() });
    const left = run.alive && run.max_ms ? ` of ${duration(run.max_ms)}` : "";
    const cost = run.cost && (run.max_cost ? `${run.cost} of ${money(run.max_cost)}` : run.cost);
    const why = !run.alive && run.reason, asks = run.asks && run.question;
    this.head.replaceChildren(el("div", { class: "facts" }, el("span", { text: run.project, title: run.workspace }), rejected(run)),
      el("h1", { text: run.goal || run.id }),
      el("div", { class: "facts" }, fact("agent", [run.agent, run.model].filter(Boolean).join(" · ")), fact("branch", run.branch), fact("iteration", `${run.iteration}${run.of ? ` of ${run.of}` : ""}`), el("span", null, run.alive ? "running for " : "took ", time, left), fact("cost", cost), fact("tokens", run.tokens != null ? about(run.tokens) : null), fact("started", run.started && (day(run.started) === "Today" ? clock(run.started) : `${date(run.started)} ${clock(run.started)}`)), run.until && fact("waiting until", clock(run.until))),
      (asks || why) ? el("div", { class: `why ${run.ink}` }, asks ? el("div", null, el("b", { text: "The agent asks: " }), asks) : el("div", null, ticks(why)), run.next && !this.steer && el("div", { class: "dim", text: run.next })) : "");
    this.tabs.replaceChildren(...[["log", "Transcript", ""], ["files", "Changes", "/files"]].map(([key, name, path]) => el("a", { href: `#/run/${this.id}${path}`, "aria-current": this.tab === key ? "page" : null, text: name })));
    this.buttons();
    this.side();
  }

  // A part of the sidebar. On a phone it is folded until someone opens it.
  part(name, title, content) {
    const summary = el("summary", { onclick: () => this.folds.set(name, !fold.open) }, el("h2", null, title));
    const fold = el("details", { open: this.folds.get(name) ?? innerWidth > 640 }, summary, content);
    return el("section", { "aria-label": name }, fold);
  }

  side() {
    const { run } = this, parts = [];
    if (this.plan?.length) {
      const signs = { done: ["✓", "good"], doing: ["●", "live"], cancelled: ["–", "dim"], open: ["○", "dim"] };
      parts.push(this.part("Plan", `Plan · ${this.plan.filter((item) => item.status === "done").length} of ${this.plan.length}`, el("ul", null, this.plan.map((item) => el("li", { class: item.status }, el("span", { class: `sign ${signs[item.status][1]}`, text: signs[item.status][0] }), el("span", { text: item.text }))))));
    }
    const checked = run.iterations.findLast((one) => one.checks.length);
    const failed = checked?.checks.filter((check) => !check.passed).length;
    if (checked) parts.push(this.part("Checks", ["Checks · ", failed ? el("span", { class: "bad", text: `${failed} failed` }) : el("span", { class: "good", text: "passed" }), ` · iteration ${checked.n}`], el("ul", null, checked.checks.map((check) => el("li", null, el("span", { class: `sign ${check.passed ? "good" : "bad"}`, text: check.passed ? "✓" : "✗" }), el("a", { class: "mono", href: `#/run/${this.id}/i/${checked.index}`, text: check.name }))))));
    const chart = this.chart();
    if (chart) parts.push(chart);
    parts.push(this.part("About", "About", el("div", { class: "dim" }, el("div", { class: "mono", text: run.workspace }), el("div", { class: "mono", text: run.id }), el("div", { text: `prompt: ${run.prompt}` }), run.resumed ? el("div", { text: `resumed ${plural(run.resumed, "time")}` }) : "", el("div", { text: `ralph ${run.ralph}` }))));
    this.aside.replaceChildren(...parts);
  }

  // What was used in all, after each iteration.
  chart() {
    const { run } = this, paid = run.iterations.some((one) => one.usd != null);
    let sum = 0;
    const sums = run.iterations.filter((one) => one.ms != null).map((one) => sum += (paid ? one.usd : one.tokens) || 0);
    if (!sum || sums.length < 2) return null;
    const limit = paid ? run.max_cost : null, top = Math.max(sum, limit || 0) * 1.08, [w, h, x0, y0] = [270, 120, 38, 100];
    const x = (at) => x0 + (w - x0 - 4) * at / Math.max(1, sums.length - 1), y = (value) => y0 - (y0 - 10) * value / top;
    const name = (value) => paid ? money(value) : about(Math.round(value));
    const points = sums.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const chart = svg("svg", { class: "chart", viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `${paid ? "cost" : "tokens"} over ${sums.length} iterations: ${name(sum)}${limit ? ` of ${money(limit)}` : ""}` });
    chart.append(svg("line", { class: "axis", x1: x0, y1: y0, x2: w, y2: y0 }), svg("line", { class: "axis", x1: x0, y1: 8, x2: x0, y2: y0 }),
      svg("polygon", { class: "area", points: `${x0},${y0} ${points} ${x(sums.length - 1)},${y0}` }), svg("polyline", { class: "line", points }),
      svg("text", { x: x0 - 4, y: y0, "text-anchor": "end" }, "0"), svg("text", { x: x0 - 4, y: y(sum) + 3, "text-anchor": "end" }, name(sum)), svg("text", { x: x0, y: h - 6 }, "1"), svg("text", { x: w - 4, y: h - 6, "text-anchor": "end" }, String(sums.length)));
    if (limit) chart.append(svg("line", { class: "limit", x1: x0, y1: y(limit), x2: w, y2: y(limit) }), svg("text", { x: w - 4, y: y(limit) - 4, "text-anchor": "end" }, `limit ${money(limit)}`));
    return this.part("Usage", `${paid ? "Cost" : "Tokens"} by iteration · ${name(sum)}`, chart);
  }

  // Where the rows of an iteration end: before the next one.
  endOf(one) { return this.run.iterations[one.index + 1]?.from ?? this.run.length; }

  iteration(one) {
    let node = this.nodes.get(one.index);
    if (!node) {
      const button = el("button", { class: "fold", "aria-expanded": "false", onclick: () => this.toggle(one.index) });
      node = { el: el("section", { class: "iter", id: `i${one.index}`, "aria-label": `Iteration ${one.n}` }, el("h2", null, button)), button };
      this.nodes.set(one.index, node);
      this.list.append(node.el);
    }
    const made = one.commit ? one.commit.replace(/^[0-9a-f]+ /, "") : one.why || (one.files ? `${plural(one.files, "file")} changed${one.lines ? ` ${one.lines}` : ""}` : "");
    const time = el("span", { class: "end", text: one.ms != null ? duration(one.ms) : "" });
    if (one.running) time.dataset.since = one.started;
    node.button.replaceChildren(el("span", { class: "arrow", text: "▶", "aria-hidden": "true" }), el("span", { class: "num", text: `Iteration ${one.n}` }), pill(one), one.hat && el("span", { class: "dim", text: one.hat }) || "", el("span", { class: "what dim one grow", text: made }), el("span", { class: "end hide", text: one.cost || "" }), time, el("span", { class: "end hide", text: one.started ? clock(one.started) : "" }));
  }

  async toggle(index, offset, keep) {
    const node = this.nodes.get(index), one = this.run.iterations[index], had = this.open.get(index);
    if (!node) return null;
    if (had) {
      if (keep && offset == null) return had;
      had.close(); had.el.remove(); this.open.delete(index);
      if (!keep) { node.el.classList.remove("open"); node.button.setAttribute("aria-expanded", "false"); return null; }
    }
    const start = offset ?? (one.running && this.endOf(one) - one.from > PAGE ? null : one.from);
    const transcript = new Transcript(source, this.id, one.from, this.endOf(one), start, one.running);
    transcript.onplan = (row) => { if (row.at >= (this.planAt || 0)) { this.planAt = row.at; this.plan = row.items; this.side(); } };
    this.open.set(index, transcript);
    node.el.classList.add("open");
    node.button.setAttribute("aria-expanded", "true");
    node.el.append(transcript.el);
    await transcript.ready;
    return transcript;
  }

  // Where an address leads: an iteration, a record, the changes.
  async go([kind, number]) {
    this.tab = kind === "files" ? "files" : "log";
    this.draw();
    if (this.tab === "files") { this.files(number); return; }
    if (this.shown) { this.shown.remove(); this.shown = null; }
    this.list.hidden = false;
    const { iterations } = this.run;
    if (kind === "at") {
      const offset = +number, one = iterations.findLast((one) => one.from <= offset) || iterations[0];
      const transcript = one && await this.toggle(one.index, offset, true);
      const row = transcript?.el.querySelector(`[data-o="${offset}"]`);
      if (row) { row.classList.add("target"); if (row.localName === "details") row.open = true; row.scrollIntoView({ block: "center" }); }
    } else if (kind === "i") {
      await this.toggle(+number, null, true);
      this.nodes.get(+number)?.el.scrollIntoView();
    } else if (iterations.length && !this.open.size) {
      const last = iterations.at(-1);
      await this.toggle(last.index, null, true);
      if (last.running) scrollTo(0, document.body.scrollHeight);
    }
  }

  hear(news) {
    const { iterations, ...head } = news;
    for (const one of iterations) this.run.iterations[one.index] = one;
    const before = this.run.iterations.length && this.nodes.size;
    Object.assign(this.run, head);
    if (head.plan) this.plan = head.plan;
    this.draw();
    const following = this.sticky || innerHeight + scrollY >= document.body.scrollHeight - 120;
    iterations.forEach((one) => this.iteration(one));
    if (this.tab !== "log") return;
    for (const [index, transcript] of this.open) {
      const one = this.run.iterations[index];
      transcript.grow(this.endOf(one), one.running).then(() => { if (following) scrollTo(0, document.body.scrollHeight); });
    }
    const last = this.run.iterations.at(-1);
    // A new iteration opens by itself for whoever follows.
    if (last && this.nodes.size > before && (following || this.nodes.size === 1)) {
      this.open.forEach((transcript, index) => { if (index === last.index - 1) this.toggle(index); });
      this.sticky = false;
      this.toggle(last.index, null, true).then(() => scrollTo(0, document.body.scrollHeight));
    }
    if (!following && last?.running && !this.jump) {
      this.jump = el("button", { class: "btn main jump", text: "Newest ↓", onclick: () => { scrollTo(0, document.body.scrollHeight); this.jump.remove(); this.jump = null; } });
      this.el.append(this.jump);
    } else if (following && this.jump) { this.jump.remove(); this.jump = null; }
  }

  async files(number) {
    this.list.hidden = true;
    this.shown?.remove();
    const shown = this.shown = el("div");
    this.list.after(shown);
    const one = number == null ? null : +number;
    let text = await source.diff(this.id, one), title = one == null ? "All changes of this run" : `Changes of iteration ${one}`;
    const links = this.run.iterations.filter((it) => it.files).map((it) => it.n);
    const numbers = [...new Set(links)];
    if (!text && one == null && numbers.length) {
      // The net change is known when the run is over.
      text = (await Promise.all(numbers.slice(-50).map((n) => source.diff(this.id, n)))).join("\n");
      title = "Changes so far, iteration by iteration";
    }
    const files = text.split(/^(?=diff --git )/m).filter((part) => part.startsWith("diff --git "));
    const parsed = files.map((part) => {
      const lines = part.trimEnd().split("\n"), at = lines.findIndex((line) => line.startsWith("@@"));
      const body = at < 0 ? lines.slice(1) : lines.slice(at);
      const count = (sign) => body.filter((line) => line.startsWith(sign)).length;
      return { name: (lines[0].match(/ b\/(.*)$/) || [, lines[0]])[1], body, added: at < 0 ? 0 : count("+"), removed: at < 0 ? 0 : count("-") };
    });
    const sum = (key) => parsed.reduce((total, one) => total + one[key], 0);
    shown.append(el("p", { class: "facts" }, el("b", { text: title }), parsed.length ? el("span", null, `${plural(parsed.length, "file")} `, el("span", { class: "plus", text: `+${sum("added")}` }), " ", el("span", { class: "minus", text: `−${sum("removed")}` })) : ""),
      numbers.length ? el("p", { class: "facts" }, one != null && el("a", { href: `#/run/${this.id}/files`, text: "all" }), numbers.slice(-40).map((n) => el("a", { href: `#/run/${this.id}/files/${n}`, "aria-current": n === one ? "true" : null, text: `iteration ${n}` }))) : "",
      ...parsed.map((one, at) => {
        const node = el("details", { class: "file", ontoggle: () => { if (node.open && node.children.length === 1) node.append(diffLines(one.body.slice(0, 3000)), one.body.length > 3000 ? el("p", { class: "dim", text: `${plural(one.body.length - 3000, "more line")}: \`ralph diff ${this.id}\`` }) : ""); } }, el("summary", null, el("span", { class: "mono grow", text: one.name }), el("span", { class: "plus", text: `+${one.added}` }), el("span", { class: "minus", text: `−${one.removed}` })));
        node.open = at < 20 && one.body.length < 400;
        return node;
      }), parsed.length ? "" : el("div", { class: "empty", text: "No changes were recorded." }));
  }

  async search(words, from = 0, hits = []) {
    if (!words.trim()) { this.results.replaceChildren(); return; }
    const got = await source.search(this.id, words, from);
    hits = hits.concat(got.hits);
    const links = hits.map((hit, at) => el("a", { href: `#/run/${this.id}/at/${hit.o}` }, el("span", { class: "dim", text: `${at + 1}/${hits.length}` }), el("span", { class: "dim", text: hit.n ? `#${hit.n}` : "" }), el("span", { class: "one grow mono" }, marked(hit.line, words))));
    this.results.replaceChildren(el("section", { class: "results", "aria-label": "Search results" }, el("div", null, el("span", { class: "grow", text: `${plural(hits.length, "match").replace("matchs", "matches")}${got.next != null ? " so far" : ""}` }), got.next != null && el("button", { class: "btn", text: "Search on", onclick: () => this.search(words, got.next, hits) }), el("button", { class: "btn", text: "Close", onclick: () => this.results.replaceChildren() })), links));
    if (got.next != null && !hits.length) await this.search(words, got.next, hits);
  }

  buttons() {
    const { run } = this, make = (text, work, more) => el("button", { class: `btn ${more || ""}`, text, onclick: work });
    const parts = [];
    if (this.steer && run.alive) {
      const held = run.state === "paused" || run.state === "pausing";
      if (run.state === "waiting") parts.push(make("Retry now", () => this.tell("retry")));
      else parts.push(held ? make("Continue", () => this.tell("continue"), "main") : make("Pause", () => this.tell("pause")));
      parts.push(make("Hint", () => this.tell("hint")), make("Limit", () => this.tell("limit")), make("Stop", () => this.tell("stop"), "stop"));
    } else if (this.steer && run.asks) parts.push(make("Answer", () => this.tell("answer"), "main"));
    document.body.classList.toggle("steering", parts.length > 0);
    this.orders.hidden = !parts.length;
    this.orders.replaceChildren(...parts);
  }

  async tell(order) {
    const { run } = this;
    const asked = {
      pause: () => ask("Pause this run?", "It pauses after this iteration.", "Pause"),
      continue: () => ask("Continue this run?", "The next iteration starts at once.", "Continue"),
      retry: () => ask("Retry now?", "The run stops waiting for the limit and tries again.", "Retry"),
      hint: () => ask("Give the agent a hint", "The next iteration gets your words.", "Send", { field: "text", placeholder: "Look at the failing test first" }),
      answer: () => ask("Answer the agent", run.question, "Answer and resume", { field: "text" }),
      limit: () => ask("Change a limit", "Iterations (200), cost ($5) or time (2h).", "Change", { field: "line", placeholder: "$5" }),
      stop: () => ask("Stop this run?", "It stops after this iteration. You can resume it later.", "Stop", { stop: true, check: "stop the agent now" }),
    };
    const answer = await asked[order]();
    if (!answer) return;
    const wish = { order };
    if (["hint", "answer", "limit"].includes(order)) wish.words = answer.words;
    if (order === "stop") wish.now = answer.checked;
    // Whoever answers wants to see what comes of it.
    if (order === "answer") this.sticky = true;
    try { note(await source.order(this.id, wish)); } catch (error) { note(error.message); }
  }
}

const marked = (line, words) => {
  const at = line.toLowerCase().indexOf(words.toLowerCase());
  return at < 0 ? [line] : [line.slice(0, at), el("mark", { text: line.slice(at, at + words.length) }), line.slice(at + words.length)];
};

const route = async () => {
  const [, kind, id, ...place] = location.hash.split("/");
  try {
    if (kind === "run" || source.file) {
      const wanted = source.file ? (await source.run()).id : id;
      if (view?.id === wanted) { await view.go(place); return; }
      view?.close();
      view = new Run(wanted);
      await view.start(place);
    } else if (kind === "batch") {
      view?.close();
      view = new Batch(id);
      await view.start();
    } else {
      view?.close();
      view = new Home();
      await view.start();
    }
  } catch (error) { $("main").replaceChildren(el("div", { class: "empty", text: error.message })); }
};

// Time passes without a word from the server.
setInterval(() => {
  const now = Date.now();
  document.querySelectorAll("[data-since]").forEach((node) => { node.textContent = duration(Math.floor((now - node.dataset.since) / 1000) * 1000); });
  document.querySelectorAll("[data-base]").forEach((node) => { node.textContent = duration(Math.floor((+node.dataset.base + now - node.dataset.started) / 1000) * 1000); });
}, 1000);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("dialog").open || /^(INPUT|TEXTAREA)$/.test(event.target.tagName) || !(view instanceof Run)) return;
  const nodes = [...view.nodes.values()], here = nodes.findIndex((node) => node.button === document.activeElement);
  const keys = {
    "/": () => view.field.focus(),
    j: () => nodes[Math.min(here + 1, nodes.length - 1)]?.button.focus(),
    k: () => nodes[Math.max(here - 1, 0)]?.button.focus(),
    p: () => view.steer && view.run.alive && view.tell(["paused", "pausing"].includes(view.run.state) ? "continue" : "pause"),
    h: () => view.steer && view.run.alive && view.tell("hint"),
    "?": () => ask("Keys", "/ search · j, k next and previous iteration · Enter opens it · p pause or continue · h hint", "Close"),
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); $("main").focus(); });
document.addEventListener("visibilitychange", () => { if (!view || source.file) return; if (document.hidden) view.pause(); else { view.pause(); view.listen(); } });
addEventListener("hashchange", route);
// The token is in a cookie now; it does not stay in the address.
if (!source.file && location.search) history.replaceState(null, "", location.pathname + location.hash);
route();
