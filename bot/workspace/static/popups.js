// The one menu and the one line of notice that the page shows at a time.

import { el } from "/page/text.js";

const $ = (id) => document.getElementById(id);

export function menu(anchor, entries) {
  const node = $("menu");
  node.replaceChildren(...entries.map((entry) => entry.head ? el("div", { class: "menu-head" }, entry.head) : el("button", {
    type: "button", role: "menuitem", class: entry.isDanger ? "danger" : "",
    onclick: () => { node.hidden = true; entry.run(); },
  }, entry.label)));
  node.hidden = false;
  const box = anchor.getBoundingClientRect();
  const top = Math.min(box.bottom + 4, innerHeight - node.offsetHeight - 8);
  node.style.top = `${Math.max(8, top)}px`;
  node.style.left = `${Math.max(8, Math.min(box.left, innerWidth - node.offsetWidth - 8))}px`;
}

export function toast(text) {
  const node = $("toast");
  node.textContent = text;
  node.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { node.hidden = true; }, 5000);
}
