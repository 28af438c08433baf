// The page: keeps a copy of the workspace, redraws what changed, and sends what the person does to /control/….

import { blocks, plain, shown } from "/page/blocks.js";
import { makeComposer } from "/page/composer.js";
import { icon } from "/page/icons.js";
import { author, avatar, messageNode } from "/page/messages.js";
import { menu, toast } from "/page/popups.js";
import { samples } from "/page/samples.js";
import { drawTraffic, noteExchange, resetTraffic } from "/page/traffic.js";
import { dayOf, el, mrkdwn, setZone, switchLanguage, word } from "/page/text.js";

const $ = (id) => document.getElementById(id);
const world = { users: [], channels: [], apps: [], app: {}, groups: [], messages: new Map(), views: {}, homes: {} };
const here = { me: localStorage.getItem("me") || "U0SRE", place: "C0INCIDENTS", thread: null, tab: "home" };
const unread = new Set();
const forms = new Map();
const drawn = new Map();
let modalErrors = {};
let dirty = new Set();
let connected = true;

const names = {
  get me() { return here.me; },
  user: (id) => world.users.find((u) => u.id === id)?.name || id,
  channel: (id) => world.channels.find((c) => c.id === id)?.name || id,
  group: (id) => world.groups.find((g) => g.id === id)?.handle || id,
};
const people = () => world.users.filter((u) => !u.is_bot && u.id !== "USLACKBOT");
const channelOf = (id) => world.channels.find((c) => c.id === id);
const isHome = () => here.place === "home";
const placeChannel = () => (isHome()
  ? world.channels.find((c) => c.with_user === here.me) : channelOf(here.place));
const keyOf = (m) => `${m.channel}|${m.ts}|${m.only_for || ""}`;

async function control(path, body) {
  try {
    const response = await fetch(`/control/${path}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ user: here.me, ...body }),
    });
    const answer = await response.json();
    if (!response.ok) toast(answer.error || word("failed"));
    return answer;
  } catch {
    toast(word("offline"));
    return { ok: false };
  }
}

const composer = makeComposer({ world, here, control });

// ---- menus and questions
document.addEventListener("click", (event) => {
  if (!$("menu").contains(event.target) && !event.target.closest("[data-menu], .tools, .overflow")) $("menu").hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  if (!$("menu").hidden) $("menu").hidden = true;
  else if (!$("overlay").hidden) $("overlay").querySelector("[data-close]")?.click();
  else if (here.thread) openThread(null);
});
function confirmed(item, run) {
  if (!item.confirm) return run();
  const { title, text, confirm, deny, style } = item.confirm;
  const close = () => { $("overlay").querySelector(".question")?.remove(); redraw("modal"); };
  $("overlay").append(el("div", { class: "dialog question", role: "alertdialog" },
    el("div", { class: "dialog-head" }, el("h2", {}, plain(title) || word("confirmTitle"))),
    el("div", { class: "dialog-body" }, text?.type === "mrkdwn" ? mrkdwn(text.text, names) : plain(text)),
    el("div", { class: "dialog-foot" },
      el("button", { type: "button", class: "kit-button", data: { close: "" }, onclick: close }, plain(deny) || word("no")),
      el("button", { type: "button", class: `kit-button ${style || "primary"}`, onclick: () => { close(); run(); } },
        plain(confirm) || word("yes")))));
  $("overlay").hidden = false;
  return null;
}

// ---- Block Kit hosts
function baseHost(name) {
  if (!forms.has(name)) forms.set(name, new Map());
  return {
    names, menu, confirmed, form: forms.get(name),
    users: people().map((u) => ({ id: u.id, label: u.real_name })),
    channels: world.channels.filter((c) => c.kind !== "im").map((c) => ({ id: c.id, label: `#${c.name}` })),
  };
}
const valuesOf = (form) => Object.fromEntries(form);
async function settle(promise) {
  const answer = await promise;
  if (answer.error && answer.ok === false) toast(answer.detail || answer.error);
  return answer;
}
function messageHost(message) {
  const host = baseHost(keyOf(message));
  const at = { channel: message.channel, ts: message.ts };
  host.act = (item, block, value) => settle(control("action", {
    ...at, action_id: item.action_id, block_id: block.block_id, value, values: valuesOf(host.form),
  }));
  host.suggest = async (item, block, value) => (await control("suggest", {
    ...at, action_id: item.action_id, block_id: block.block_id, value,
  })).options || [];
  return host;
}
function viewHost(view) {
  const host = baseHost(view.id);
  const at = { view_id: view.id };
  host.errors = modalErrors;
  host.act = (item, block, value) => settle(control("action", {
    ...at, action_id: item.action_id, block_id: block.block_id, value, values: valuesOf(host.form),
  }));
  host.suggest = async (item, block, value) => (await control("suggest", {
    ...at, action_id: item.action_id, block_id: block.block_id, value,
  })).options || [];
  return host;
}

// ---- what people do
const on = {
  thread: (ts) => openThread(ts),
  react: (m, name, isMine) => control("reaction", { channel: m.channel, ts: m.ts, name, remove: isMine }),
  dismiss: (m) => control("delete", { channel: m.channel, ts: m.ts }),
  more(m) {
    const isMine = m.user === here.me && !m.bot_id;
    return [
      ...world.shortcuts.map((s) => ({
        label: [icon("bolt"), ` ${s.name}`], run: () => settle(control("shortcut", { channel: m.channel, ts: m.ts, callback_id: s.callback_id })),
      })),
      { label: word("copyLink"), run: () => navigator.clipboard?.writeText(`${location.origin}/archives/${m.channel}/p${m.ts.replace(".", "")}`) },
      { label: word("copyTs"), run: () => navigator.clipboard?.writeText(m.ts) },
      ...(isMine ? [
        { label: word("edit"), run: () => editMessage(m) },
        { label: word("remove"), isDanger: true, run: () => control("delete", { channel: m.channel, ts: m.ts }) },
      ] : []),
    ];
  },
};
function editMessage(message) {
  const node = document.querySelector(`[data-ts="${CSS.escape(message.ts)}"] .content`);
  const field = el("textarea", { class: "kit-input", rows: 3, value: message.text });
  const done = () => { drawn.clear(); redraw("messages", "thread"); };
  node.replaceChildren(field, el("div", { class: "row" },
    el("button", { type: "button", class: "kit-button", onclick: done }, word("cancel")),
    el("button", {
      type: "button", class: "kit-button primary",
      onclick: async () => { await control("edit", { channel: message.channel, ts: message.ts, text: field.value }); done(); },
    }, word("save"))));
  field.focus();
}
function openThread(ts) {
  here.thread = ts;
  redraw("thread");
}
function go(place) {
  here.place = place;
  here.thread = null;
  here.atBottom = true;
  $("app").classList.remove("with-side");
  unread.delete(place);
  history.replaceState(null, "", place === "home" ? "/" : `/archives/${place}`);
  if (place === "home") openHome(here.tab);
  redraw("all");
}
async function openHome(tab) {
  here.tab = tab;
  await control("home", { tab });
  await load();
}
async function actAs(user) {
  here.me = user;
  localStorage.setItem("me", user);
  setZone(world.users.find((u) => u.id === user)?.tz);
  drawn.clear();
  if (isHome()) await openHome(here.tab);
  redraw("all");
}

// ---- drawing
function redraw(...parts) {
  if (dirty.size === 0) requestAnimationFrame(draw);
  parts.forEach((part) => dirty.add(part));
}
function draw() {
  const parts = dirty;
  dirty = new Set();
  const wants = (part) => parts.has("all") || parts.has(part);
  if (wants("top")) drawTop();
  if (wants("side")) drawSide();
  if (wants("top")) drawOff();
  if (wants("head")) drawHead();
  if (wants("composer")) drawComposer();
  if (wants("messages")) drawMessages();
  if (wants("thread")) drawThread();
  if (wants("modal")) drawModal();
}
function drawTop() {
  const user = world.users.find((u) => u.id === here.me);
  $("top").replaceChildren(
    el("button", {
      type: "button", class: "top-button", id: "show-side", title: word("menu"), "aria-label": word("menu"), data: { menu: "" },
      onclick: () => $("app").classList.toggle("with-side"),
    }, icon("list")),
    el("div", { class: "brand", title: word("loopback") }, el("span", { class: "logo" }, icon("thread")), el("span", { class: "brand-name" }, "Local workspace"),
      el("span", { class: connected ? "dot" : "dot off", title: connected ? "" : word("offline") })),
    el("div", { class: "spring" }),
    el("button", {
      type: "button", class: "top-button accent", data: { menu: "" }, id: "sample-alert",
      onclick: (event) => menu(event.currentTarget, samples(world, control, channelOf(alertChannel()))),
    }, icon("rotating_light"), el("span", { class: "wide-only" }, ` ${word("sample")}`)),
    el("button", {
      type: "button", class: "top-button", id: "traffic-button", title: word("traffic"), onclick: toggleTraffic,
    }, icon("swap"), el("span", { class: "wide-only" }, ` ${word("traffic")}`)),
    el("button", { type: "button", class: "top-button", title: word("theme"), onclick: switchTheme, "aria-label": word("theme"), id: "theme" }, icon("half")),
    el("button", { type: "button", class: "top-button", id: "language", onclick: () => { switchLanguage(); drawn.clear(); redraw("all"); } }, word("language")),
    el("label", { class: "act-as" }, el("span", { class: "wide-only" }, word("actAs")), user ? avatar(user.real_name, user.id) : null,
      el("select", { id: "act-as", "aria-label": word("actAs"), onchange: (event) => actAs(event.target.value) },
        people().map((u) => el("option", { value: u.id, selected: u.id === here.me }, `${u.real_name} · ${u.title}`)))));
}
function drawOff() {
  const bar = $("off");
  bar.hidden = world.is_delivering !== false;
  bar.replaceChildren(word("off"), el("button", {
    type: "button", class: "kit-button", onclick: () => control("subscription", {}),
  }, word("switchOn")));
}
const alertChannel = () => (isHome() || !channelOf(here.place)?.members.includes(world.app.user) ? "C0ALERTS" : here.place);
function drawSide() {
  const entry = (place, label, isOn) => el("button", {
    type: "button", class: ["side-entry", isOn ? "on" : "", unread.has(place) ? "unread" : ""].join(" "),
    data: { place }, onclick: () => go(place),
  }, label);
  const seen = world.channels.filter((c) => c.kind === "channel" || (c.kind === "group" && c.members.includes(here.me)));
  $("side").replaceChildren(
    el("h2", {}, word("channels")),
    ...seen.map((c) => entry(c.id, [el("span", { class: "sigil" }, c.kind === "group" ? icon("lock") : "#"), c.name], c.id === here.place)),
    el("h2", {}, word("apps")),
    entry("home", [el("span", { class: "sigil" }, icon("mag")), world.app.name || "rca"], isHome()),
    el("p", { class: "loopback" }, word("loopback")));
}
function drawHead() {
  if (isHome()) {
    const tab = (name) => el("button", { type: "button", class: here.tab === name ? "tab on" : "tab", onclick: () => openHome(name) }, word(name));
    $("channel-head").replaceChildren(el("h1", {}, world.app.name), el("span", { class: "badge" }, word("app")), tab("home"), tab("messages"));
    return;
  }
  const channel = placeChannel();
  if (!channel) return;
  const isIn = channel.members.includes(here.me);
  const hasApp = channel.members.includes(world.app.user);
  $("channel-head").replaceChildren(...[
    el("h1", {}, channel.kind === "group" ? icon("lock") : "#", ` ${channel.name}`),
    el("span", { class: "topic" }, channel.topic),
    el("span", { class: "spring" }),
    hasApp || !isIn ? null : el("button", {
      type: "button", class: "kit-button", onclick: () => control("join", { user: world.app.user, inviter: here.me, channel: channel.id }),
    }, word("inviteApp")),
    el("span", { class: "hint" }, word("members", channel.members.length)),
  ].filter(Boolean));
}
function visible(filter) {
  return [...world.messages.values()]
    .filter((m) => (!m.only_for || m.only_for === here.me) && filter(m))
    .sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0));
}
function fill(container, list, inThread) {
  const nodes = [];
  let last = null;
  for (const message of list) {
    const day = dayOf(message.ts);
    if (!inThread && (!last || dayOf(last.ts) !== day)) nodes.push(el("div", { class: "day" }, el("span", {}, day)));
    const isCompact = Boolean(last && !inThread && dayOf(last.ts) === day && author(last, world).id === author(message, world).id
      && last.subtype === message.subtype && Number(message.ts) - Number(last.ts) < 300 && !message.only_for && !last.only_for
      && !message.attachments && !(message.blocks?.[0]?.type === "header"));
    const key = `${inThread}|${keyOf(message)}`;
    const signature = JSON.stringify([message, isCompact, here.me]);
    let kept = drawn.get(key);
    if (kept?.signature !== signature) {
      kept = { signature, node: messageNode(message, { world, host: messageHost(message), isCompact, inThread, on }) };
      drawn.set(key, kept);
    }
    nodes.push(kept.node);
    last = message;
  }
  sync(container, nodes);
  stick(container);
}
// Keeps the newest message in sight while the reader is at the end, whatever grows above or beside it.
const ends = new WeakMap();
function stick(container) {
  if (!ends.has(container)) {
    ends.set(container, true);
    const toEnd = () => { if (ends.get(container)) container.scrollTop = container.scrollHeight; };
    container.addEventListener("scroll", () => {
      ends.set(container, container.scrollHeight - container.scrollTop - container.clientHeight < 80);
    });
    container.addEventListener("load", toEnd, true);
    new ResizeObserver(toEnd).observe(container);
  }
  if (here.atBottom) ends.set(container, true);
  if (ends.get(container)) container.scrollTop = container.scrollHeight;
}
// Moves only what changed place, so that images keep their size and inputs keep their focus.
function sync(container, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...container.childNodes]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, index) => {
    if (container.childNodes[index] !== node) container.insertBefore(node, container.childNodes[index] || null);
  });
}
function drawMessages() {
  const container = $("messages");
  if (isHome() && here.tab === "home") {
    const view = world.homes[here.me];
    container.replaceChildren(el("div", { class: "home" }, view
      ? blocks(view.blocks, viewHost(view)) : el("p", { class: "empty" }, word("noHome"))));
    return;
  }
  const channel = placeChannel();
  const list = channel ? visible((m) => m.channel === channel.id
    && (!m.thread_ts || m.thread_ts === m.ts || m.subtype === "thread_broadcast")) : [];
  if (!list.length) {
    container.replaceChildren(el("p", { class: "empty" }, word("empty")));
    return;
  }
  fill(container, list, false);
  here.atBottom = false;
}
function drawThread() {
  const pane = $("thread");
  const channel = placeChannel();
  pane.hidden = !here.thread || !channel;
  $("app").classList.toggle("with-thread", !pane.hidden);
  if (pane.hidden) { pane.replaceChildren(); return; }
  if (pane.dataset.ts !== `${channel.id}${here.thread}${here.me}${document.documentElement.lang}`) {
    pane.dataset.ts = `${channel.id}${here.thread}${here.me}${document.documentElement.lang}`;
    const also = el("input", { type: "checkbox" });
    pane.replaceChildren(
      el("div", { class: "pane-head" }, el("h2", {}, word("thread")), el("span", { class: "hint" }, `#${channel.name}`),
        el("span", { class: "spring" }),
        el("button", { type: "button", class: "icon", "aria-label": word("close"), onclick: () => openThread(null) }, icon("close"))),
      el("div", { class: "thread-messages" }),
      composer(channel, here.thread, word("reply"), also),
      el("label", { class: "also" }, also, word("alsoSend", `#${channel.name}`)));
    here.atBottom = true;
  }
  const list = visible((m) => m.channel === channel.id && (m.ts === here.thread || m.thread_ts === here.thread));
  fill(pane.querySelector(".thread-messages"), list, true);
  here.atBottom = false;
}
function drawComposer() {
  const box = $("composer");
  const channel = placeChannel();
  if (!channel || (isHome() && here.tab === "home")) { box.replaceChildren(); box.dataset.place = ""; return; }
  if (!channel.members.includes(here.me)) {
    box.replaceChildren(el("div", { class: "join" }, word("outside"), el("button", {
      type: "button", class: "kit-button primary", onclick: () => control("join", { channel: channel.id }),
    }, word("join"))));
    box.dataset.place = "";
    return;
  }
  const place = `${channel.id}${here.me}${document.documentElement.lang}`;
  if (box.dataset.place === place) return;
  box.dataset.place = place;
  box.replaceChildren(composer(channel, null, word("write", isHome() ? world.app.name : `#${channel.name}`), null));
}
function drawModal() {
  const stack = world.views[here.me] || [];
  const view = stack[stack.length - 1];
  const overlay = $("overlay");
  const question = overlay.querySelector(".question");
  const modal = overlay.querySelector(".modal");
  const signature = view ? `${view.id}|${view.hash}|${JSON.stringify(modalErrors)}|${document.documentElement.lang}` : "";
  overlay.hidden = !view && !question;
  if (modal?.dataset.signature === signature) return;
  modal?.remove();
  if (!view) { modalErrors = {}; return; }
  const host = viewHost(view);
  const error = el("div", { class: "error modal-error", hidden: true });
  const submit = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    const answer = await control("view_submit", { view_id: view.id, values: valuesOf(host.form) });
    button.disabled = false;
    modalErrors = answer.errors || {};
    if (answer.error) { error.textContent = answer.detail || answer.error; error.hidden = false; }
    redraw("modal");
  };
  overlay.prepend(el("div", { class: "dialog modal", role: "dialog", "aria-modal": "true", data: { signature } },
    el("div", { class: "dialog-head" }, el("span", { class: "avatar app" }, icon("mag")), el("h2", {}, shown(view.title)),
      el("button", { type: "button", class: "icon", "aria-label": word("close"), onclick: () => closeModal(view) }, icon("close"))),
    el("div", { class: "dialog-body" }, blocks(view.blocks, host), error),
    el("div", { class: "dialog-foot" },
      el("button", { type: "button", class: "kit-button", data: { close: "" }, onclick: () => closeModal(view) }, plain(view.close) || word("cancel")),
      view.submit ? el("button", { type: "button", class: "kit-button primary", data: { submit: "" }, onclick: submit }, plain(view.submit)) : null)));
}
function closeModal(view) {
  modalErrors = {};
  forms.delete(view.id);
  control("view_close", { view_id: view.id });
}
function toggleTraffic() {
  const pane = $("traffic");
  pane.hidden = !pane.hidden;
  $("app").classList.toggle("with-traffic", !pane.hidden);
  if (!pane.hidden) drawTraffic(pane, () => control("traffic/clear", {}));
}
function switchTheme() {
  const isDark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
}

// ---- the live copy
// A snapshot may be older than the notes that arrive while it is fetched, so those are taken again after it.
let loading = null;
let isStale = false;
const meanwhile = [];
function load() {
  if (loading) isStale = true;
  else loading = fetchAll().finally(() => { loading = null; });
  return loading;
}
async function fetchAll() {
  do {
    isStale = false;
    const snapshot = await (await fetch("/page/state")).json();
    Object.assign(world, snapshot, { messages: new Map(snapshot.messages.map((m) => [keyOf(m), m])) });
  } while (isStale);
  if (!people().some((u) => u.id === here.me)) here.me = people()[0].id;
  setZone(world.users.find((u) => u.id === here.me)?.tz);
  meanwhile.splice(0).forEach(apply);
  redraw("all");
}
function take(note) {
  if (loading && ["message", "deleted", "views"].includes(note.kind)) meanwhile.push(note);
  return apply(note);
}
function apply(note) {
  switch (note.kind) {
    case "message": {
      const m = note.message;
      const isNew = !world.messages.has(keyOf(m));
      world.messages.set(keyOf(m), m);
      const isHere = placeChannel()?.id === m.channel;
      const place = channelOf(m.channel)?.kind === "im" ? "home" : m.channel;
      if (!channelOf(m.channel)) return load();
      if (isNew && !isHere && (!m.only_for || m.only_for === here.me)) { unread.add(place); redraw("side"); }
      return redraw("messages", "thread");
    }
    case "deleted":
      for (const key of [...world.messages.keys()]) if (key.startsWith(`${note.channel}|${note.ts}|`)) world.messages.delete(key);
      if (here.thread === note.ts) here.thread = null;
      return redraw("messages", "thread");
    case "views":
      world.views[note.user] = note.views;
      if (note.home) world.homes[note.user] = note.home;
      return redraw("modal", ...(isHome() ? ["messages"] : []));
    case "traffic": return noteExchange(note.exchange);
    // What happened between the snapshot and the stream is in neither.
    case "hello": return note.revision === world.revision ? null : load();
    case "reload": return load();
    default: return null;
  }
}
function listen() {
  const stream = new EventSource("/page/stream");
  stream.onmessage = (event) => take(JSON.parse(event.data));
  stream.onopen = async () => {
    if (!connected) await load();
    connected = true;
    redraw("top");
  };
  stream.onerror = () => { connected = false; redraw("top"); };
}
function fromAddress() {
  const match = /^\/archives\/([A-Z0-9]+)(?:\/p(\d+))?/.exec(location.pathname);
  if (!match || !channelOf(match[1])) return;
  here.place = match[1];
  here.atBottom = true;
  const thread = new URLSearchParams(location.search).get("thread_ts");
  if (thread) here.thread = thread;
  const ts = match[2] && `${match[2].slice(0, -6)}.${match[2].slice(-6)}`;
  redraw("all");
  if (ts) {
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const node = document.querySelector(`[data-ts="${CSS.escape(ts)}"]`);
      node?.scrollIntoView({ block: "center" });
      node?.classList.add("marked");
    }));
  }
}

document.documentElement.dataset.theme = localStorage.getItem("theme") || "";
here.atBottom = true;
await load();
fromAddress();
resetTraffic();
listen();
