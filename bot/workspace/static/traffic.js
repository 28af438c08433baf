// The inspector: every call of the app and every delivery to it, newest first.

import { icon } from "/page/icons.js";
import { el, secondsOf, word } from "/page/text.js";

const KEPT = 300;
let exchanges = [];
let pane = null;
let wanted = "";

export function resetTraffic() { exchanges = []; }
export function noteExchange(exchange) {
  exchanges.push(exchange);
  if (exchanges.length > KEPT) exchanges = exchanges.slice(-KEPT);
  const list = pane && !pane.hidden ? pane.querySelector(".exchanges") : null;
  if (list && fits(exchange)) list.prepend(row(exchange));
}
const fits = (exchange) => !wanted || JSON.stringify(exchange).toLowerCase().includes(wanted);

export async function drawTraffic(container, clear) {
  pane = container;
  const answer = await (await fetch("/control/traffic?after=0")).json();
  exchanges = answer.traffic.slice(-KEPT);
  const list = el("div", { class: "exchanges" });
  const refill = () => list.replaceChildren(...exchanges.filter(fits).reverse().map(row));
  container.replaceChildren(
    el("div", { class: "pane-head" }, el("h2", {}, icon("swap"), ` ${word("traffic")}`),
      el("input", {
        type: "search", class: "kit-input", placeholder: word("filter"), value: wanted,
        oninput: (event) => { wanted = event.target.value.toLowerCase(); refill(); },
      }),
      el("span", { class: "spring" }),
      el("button", { type: "button", class: "kit-button", onclick: () => { clear(); exchanges = []; refill(); } }, word("clear"))),
    list);
  refill();
}

function row(exchange) {
  const isIn = exchange.direction === "from_app";
  const answer = exchange.answer;
  const isBad = isIn ? answer?.ok === false || exchange.status >= 400 || exchange.status === 0
    : !(exchange.status >= 200 && exchange.status < 300);
  const shown = exchange.status || (answer ? "" : "–");
  return el("details", { class: isBad ? "exchange bad" : "exchange" },
    el("summary", {},
      el("span", { class: "when" }, secondsOf(exchange.at)),
      el("span", { class: isIn ? "way in" : "way out" }, isIn ? "app → workspace" : "workspace → app"),
      el("strong", {}, exchange.what),
      el("span", { class: "hint" }, [shown, isIn && answer?.error, exchange.note].filter(Boolean).join(" · ")),
      el("span", { class: "spring" }),
      el("span", { class: "hint" }, `${(exchange.duration_s * 1000).toFixed(1)} ms`)),
    el("div", { class: "bodies" },
      el("pre", {}, JSON.stringify(exchange.request, null, 2)),
      el("pre", {}, typeof answer === "string" ? answer : JSON.stringify(answer, null, 2))));
}
