(() => {
  const faults = [];
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, a = 1] = rgb(getComputedStyle(at).backgroundColor);
      if (a > 0.99 && r != null) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const light = ([r, g, b]) => {
    const part = (value) => { const v = value / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walk.nextNode()) {
    const node = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || seen.has(node) || !node.checkVisibility?.({ opacityProperty: true, visibilityProperty: true })) continue;
    if (node.closest("script, noscript, style, svg, .skip, #note, [disabled]")) continue;
    seen.add(node);
    const [one, other] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5 && !node.matches(".sep, .arrow")) faults.push(`contrast ${contrast.toFixed(2)}: ${node.className} ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  for (const node of document.querySelectorAll("button, a[href], input, textarea, summary, [role=img]")) {
    const name = node.getAttribute("aria-label") || node.labels?.[0]?.textContent.trim() || node.textContent.trim() || node.getAttribute("title");
    if (!name) faults.push(`no name: ${node.outerHTML.slice(0, 80)}`);
  }
  for (const node of document.querySelectorAll("[placeholder]")) {
    if (!node.checkVisibility()) continue;
    const [one, other] = [light(rgb(getComputedStyle(node, "::placeholder").color)), light(behind(node))].sort((a, b) => b - a);
    if ((one + 0.05) / (other + 0.05) < 4.5) faults.push(`contrast of a placeholder: ${node.placeholder}`);
  }
  for (const node of document.querySelectorAll("nav, aside, section, [role=group]")) if (!node.getAttribute("aria-label")) faults.push(`no name: ${node.localName}`);
  for (const dialog of document.querySelectorAll("dialog[open]")) {
    if (!document.getElementById(dialog.getAttribute("aria-labelledby"))?.textContent) faults.push("a dialog without a title");
    if (!dialog.contains(document.activeElement)) faults.push("the focus is not in the dialog");
    const box = dialog.getBoundingClientRect();
    if (box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight) faults.push("a dialog beyond the screen");
  }
  for (const landmark of ["header", "main"]) if (document.querySelectorAll(landmark).length !== 1) faults.push(`not one ${landmark}`);
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  if (!document.documentElement.lang || !document.title) faults.push("no language or title");
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  if (new Set(ids).size !== ids.length) faults.push("an id twice");
  if (document.documentElement.scrollWidth > innerWidth + 1) {
    const wide = [...document.querySelectorAll("main *, header *")].filter((node) => node.getBoundingClientRect().right > innerWidth + 1 && !node.closest("pre, table"));
    faults.push(`wider than the screen: ${wide.slice(0, 4).map((node) => node.className || node.localName)}`);
  }
  return faults;
})()
