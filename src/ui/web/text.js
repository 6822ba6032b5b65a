"use strict";
// Text and numbers for the page. Everything that people or agents wrote becomes text nodes, never markup.
const el = (name, props, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props || {})) {
    if (value == null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "text") node.textContent = value;
    else if (key === "class") node.className = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child != null && child !== false) node.append(child);
  return node;
};
const svg = (name, props, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  if (text != null) node.textContent = text;
  return node;
};
const two = (number) => String(number).padStart(2, "0");
const duration = (ms) => {
  const s = Math.floor(ms / 1000);
  if (s < 1) return `${Math.max(0, Math.round(ms))} ms`;
  if (s < 10) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${two(s % 60)}s`;
  return `${Math.floor(s / 3600)}h${two(Math.floor(s % 3600 / 60))}m`;
};
const about = (n) => n < 1000 ? String(n) : n < 1e6 ? `${Math.floor(n / 1000)}k` : `${(n / 1e6).toFixed(1)}M`;
const money = (usd) => `$${usd < 0.1 && usd > 0 ? usd.toFixed(4) : usd.toFixed(2)}`;
const plural = (n, one) => `${n.toLocaleString("en-US")} ${one}${n === 1 ? "" : "s"}`;
const bytes = (n) => n < 1024 ? `${n} bytes` : n < 1 << 20 ? `${Math.round(n / 1024)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
const clock = (ms) => { const t = new Date(ms); return `${two(t.getHours())}:${two(t.getMinutes())}`; };
const date = (ms) => { const t = new Date(ms); return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`; };
const day = (ms) => {
  const today = date(Date.now());
  if (date(ms) === today) return "Today";
  if (date(ms) === date(Date.now() - 864e5)) return "Yesterday";
  return date(ms);
};

// ralph's own messages: only backticks mean something.
const ticks = (text) => { const parts = text.split("`"); return parts.length % 2 ? parts.map((part, at) => at % 2 ? el("code", { text: part }) : part) : [text]; };

// Markdown: the part of it that agents use. Nothing in it can become an element that is not made here.
const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\*([^*\s][^*\n]*)\*|~~([^~\n]+)~~|\[([^\]\n]{1,300})\]\(([^)\s]{1,2000})\)|(https?:\/\/[^\s<>"')\]]+)/g;
const inline = (text, depth = 0) => {
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > last) parts.push(text.slice(last, found.index));
    const [whole, , code, bold, bold2, italic, struck, label, target, url] = found;
    const inner = (words) => depth < 3 ? inline(words, depth + 1) : [words];
    if (code != null) parts.push(el("code", { text: code }));
    else if (bold || bold2) parts.push(el("strong", null, inner(bold || bold2)));
    else if (italic) parts.push(el("em", null, inner(italic)));
    else if (struck) parts.push(el("s", null, inner(struck)));
    else if (url || /^https?:\/\//i.test(target)) {
      parts.push(el("a", { href: url || target, rel: "noopener noreferrer", target: "_blank", text: label || url }));
    } else parts.push(label ? `${label} (${target})` : whole);
    last = found.index + whole.length;
  }
  if (last < text.length) parts.push(text.slice(last));
  return parts;
};
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
const markdown = (text) => {
  const root = el("div", { class: "md" });
  // A line this long is data, not prose: it is shown as it is.
  if (text.length > 200000 || /[^\n]{20000}/.test(text)) { root.append(el("pre", { text })); return root; }
  const lines = text.split("\n");
  let words = [], list = null;
  const flush = () => { if (words.length) root.append(el("p", null, inline(words.join("\n")).flatMap((part) => typeof part === "string" ? breaks(part) : part))); words = []; };
  const breaks = (part) => part.split("\n").flatMap((line, at) => at ? [el("br"), line] : [line]);
  const close = () => { flush(); list = null; };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    const fence = line.match(/^\s*(```+|~~~+)/);
    let found;
    if (fence) {
      close();
      const code = [];
      while (++at < lines.length && !lines[at].trim().startsWith(fence[1])) code.push(lines[at]);
      root.append(el("pre", null, el("code", { text: code.join("\n") })));
    } else if (!line.trim()) close();
    else if ((found = line.match(/^(#{1,6})\s+(.*)/))) { close(); root.append(el(found[1].length < 3 ? "h3" : "h4", null, inline(found[2]))); }
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { close(); root.append(el("hr")); }
    else if ((found = line.match(/^\s*(?:([-*+])|(\d{1,9})[.)])\s+(.*)/))) {
      flush();
      const kind = found[1] ? "ul" : "ol";
      if (!list || list.localName !== kind) { list = el(kind, found[2] && found[2] !== "1" ? { start: found[2] } : null); root.append(list); }
      const task = found[3].match(/^\[([ xX])\]\s+(.*)/);
      list.append(el("li", null, task ? [task[1] === " " ? "☐ " : "☑ ", ...inline(task[2])] : inline(found[3])));
    } else if ((found = line.match(/^\s*>\s?(.*)/))) { close(); root.append(el("blockquote", null, inline(found[1]))); }
    else if (line.includes("|") && /^\s*\|?[\s:|-]+\|[\s:|-]*$/.test(lines[at + 1] || "") && lines[at + 1].includes("-")) {
      close();
      const table = el("table", null, el("tr", null, cells(line).map((cell) => el("th", null, inline(cell)))));
      at++;
      while (at + 1 < lines.length && lines[at + 1].includes("|")) table.append(el("tr", null, cells(lines[++at]).map((cell) => el("td", null, inline(cell)))));
      root.append(table);
    } else if (list && /^\s{2,}\S/.test(line)) list.lastChild.append(" ", ...inline(line.trim()));
    else { list = null; words.push(line); }
  }
  flush();
  return root;
};
const diffLines = (lines) => el("pre", { class: "diff" }, lines.map((line) => el("span", {
  class: line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : line.startsWith("@@") ? "hunk" : null, text: line || " ",
})));
