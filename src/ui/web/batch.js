// A batch: its tasks by what happens to them, and orders to it.
const STAGES = ["running", "pausing", "paused", "checking", "merging", "stuck", "waiting", "merged", "skipped"];

class Batch {
  constructor(id) {
    this.id = id;
    document.title = "ralph";
    this.orders = el("div", { class: "steer", role: "group", "aria-label": "Steer the batch" });
    this.top = el("span", { class: "state" });
    $("top").replaceChildren(el("div", { class: "wide bar" }, el("a", { class: "brand", href: "#/", text: "ralph" }), el("span", { class: "sep", text: "/" }), this.top, el("span", { class: "grow" }), this.orders));
    this.el = el("div", { class: "wide" });
    $("main").replaceChildren(this.el);
  }
  async start() { this.show(await source.json(`api/batches/${this.id}`)); this.listen(); }
  async go() {}
  listen() { this.events = server.live(`api/batches/${this.id}/live`, (batch) => this.show(batch)); }
  pause() { this.events?.close(); }
  close() { this.pause(); document.body.classList.remove("steering"); }

  show(batch) {
    this.batch = batch;
    document.title = `${batch.word} · batch in ${batch.project}`;
    this.top.replaceChildren(pill(batch));
    const facts = [`into ${batch.target}`, batch.source && `tasks from ${batch.source}`, batch.counts, batch.cost, batch.started && `started ${day(batch.started) === "Today" ? clock(batch.started) : `${date(batch.started)} ${clock(batch.started)}`}`];
    const groups = STAGES.map((word) => [word, batch.tasks.filter((task) => task.word === word)]).filter(([, tasks]) => tasks.length);
    this.el.replaceChildren(
      el("div", { class: "head" }, el("div", { class: "facts" }, el("span", { text: batch.project })), el("h1", { text: `Batch of ${plural(batch.of, "task")}` }), el("div", { class: "facts" }, facts.filter(Boolean).map((fact) => el("span", { text: fact }))), batch.why ? el("div", { class: `why ${batch.ink}` }, ticks(batch.why)) : ""),
      ...groups.map(([word, tasks]) => el("section", { class: "home", "aria-label": word }, el("h2", { text: `${word} · ${tasks.length}` }), el("div", { class: "list" }, tasks.map((task) => this.task(task))))));
    this.buttons();
  }
  task(task) {
    const words = task.why || (task.needs.length && task.word === "waiting" ? `needs ${task.needs.join(", ")}` : task.title);
    const cells = [el("span", null, pill({ ...task, running: task.word === "running" })), el("span", { class: "goal one", text: task.id }), el("span", { class: "dim one hide", text: words }), el("span", { class: "n hide mono", text: task.commit || "" }), el("span", { class: "n", text: task.cost || "–" })];
    const again = this.batch.steer && this.batch.alive && task.word === "stuck" && el("button", { class: "btn", text: "Retry", onclick: (event) => { event.preventDefault(); this.tell({ command: "retry", task: task.id }, "Retry this task?", `${task.id} runs again.`, "Retry"); } });
    return task.run ? el("a", { class: "task", href: `#/run/${task.run}`, title: words }, cells, again) : el("div", { class: "task", title: words }, cells, again);
  }
  buttons() {
    const { batch } = this, parts = [];
    const make = (text, more, work) => el("button", { class: `btn ${more}`, text, onclick: work });
    if (batch.steer && batch.alive) {
      parts.push(batch.paused ? make("Continue", "main", () => this.tell({ command: "continue", task: null }, "Continue the batch?", "Its tasks continue at once.", "Continue")) : make("Pause", "", () => this.tell({ command: "pause", task: null }, "Pause the batch?", "Its tasks pause after their current iterations, and nothing is merged.", "Pause")));
      parts.push(make("Stop", "stop", () => this.tell({ command: "stop", task: null }, "Stop the batch?", "It stops after the current iterations. `ralph batch resume` continues it.", "Stop", { stop: true })));
    }
    document.body.classList.toggle("steering", parts.length > 0);
    this.orders.hidden = !parts.length;
    this.orders.replaceChildren(...parts);
  }
  async tell(order, title, text, action, options) {
    if (!await ask(title, text, action, options)) return;
    try { note(await server.post(`api/batches/${this.id}/order`, order)); } catch (error) { note(error.message); }
  }
}
