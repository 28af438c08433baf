// One message as people see it: author, text or blocks, attachments, files, reactions, thread summary, tools.

import { blocks, image } from "/page/blocks.js";
import { hasIcon, icon } from "/page/icons.js";
import { QUICK, clockOf, el, emoji, fullTime, link, mrkdwn, sizeOf, word } from "/page/text.js";

const COLOURS = ["#5b7cfa", "#0f9d76", "#c2620a", "#a545c4", "#c73e5c", "#2b86b8"];
const BARS = { good: "#2eb67d", warning: "#e8a413", danger: "#d72b3f" };

export function avatar(name, id, face) {
  if (face) return el("span", { class: "avatar app" }, hasIcon(face) ? icon(face) : emoji(face));
  const node = el("span", { class: "avatar" }, [...name.trim()][0].toUpperCase());
  node.style.background = COLOURS[[...id].reduce((sum, c) => sum + c.charCodeAt(0), 0) % COLOURS.length];
  return node;
}

export function author(message, world) {
  if (message.bot_id) {
    const app = world.apps.find((one) => one.bot_id === message.bot_id);
    const face = (message.icons?.emoji || app?.emoji || ":robot_face:").replaceAll(":", "");
    return { name: message.username || app?.name || message.bot_id, id: message.bot_id, isApp: true, face };
  }
  const user = world.users.find((one) => one.id === message.user);
  const face = message.user === "USLACKBOT" ? "robot_face" : null;
  return { name: user?.real_name || message.user || "?", id: message.user || "?", isApp: false, face };
}

export function messageNode(message, context) {
  const { world, host, isCompact, inThread, on } = context;
  const who = author(message, world);
  const isGone = message.subtype === "tombstone";
  if (message.subtype === "channel_join") {
    return el("div", { class: "notice", data: { ts: message.ts } }, mrkdwn(message.text, host.names),
      el("time", { title: fullTime(message.ts) }, clockOf(message.ts)));
  }
  const body = el("div", { class: "body" });
  if (!isCompact) {
    body.append(el("div", { class: "head" },
      el("span", { class: "name" }, who.name),
      who.isApp ? el("span", { class: "badge" }, word("app")) : null,
      el("time", { title: fullTime(message.ts) }, clockOf(message.ts))));
  }
  if (message.only_for) {
    body.append(el("div", { class: "only" }, icon("eye"), " ", word("onlyYou"), " · ",
      el("button", { type: "button", class: "plain-link", onclick: () => on.dismiss(message) }, word("dismiss"))));
  }
  if (message.subtype === "thread_broadcast" && !inThread) {
    body.append(el("button", { type: "button", class: "plain-link broadcast", onclick: () => on.thread(message.thread_ts) },
      word("broadcastFrom")));
  }
  body.append(content(message, host, isGone));
  if (message.reactions?.length) body.append(reactions(message, host, on));
  if (!inThread && message.reply_count) body.append(summary(message, world, on));
  const node = el("article", {
    class: ["message", isCompact ? "compact" : "", message.only_for ? "ephemeral" : "", isGone ? "gone" : ""].join(" "),
    data: { ts: message.ts, channel: message.channel },
  },
  el("div", { class: "gutter" }, isCompact
    ? el("time", { title: fullTime(message.ts) }, clockOf(message.ts)) : avatar(who.name, who.id, who.face)),
  body);
  if (!message.only_for && !isGone) node.append(tools(message, inThread, host, on));
  return node;
}

function content(message, host, isGone) {
  const node = el("div", { class: "content" });
  if (isGone) { node.append(el("em", {}, word("originally"))); return node; }
  if (message.blocks?.length && !(message.files && !message.blocks.length)) node.append(blocks(message.blocks, host));
  else if (message.text) node.append(mrkdwn(message.text, host.names));
  if (message.edited) node.append(el("span", { class: "edited" }, word("edited")));
  for (const item of message.attachments || []) node.append(attachment(item, host));
  if (message.files) node.append(el("div", { class: "files" }, message.files.map(file)));
  return node;
}

function attachment(item, host) {
  const box = el("div", { class: "attachment" });
  const colour = BARS[item.color] || (/^#?[0-9a-f]{3,8}$/i.test(item.color || "") ? `#${item.color.replace("#", "")}` : null);
  if (colour) box.style.borderLeftColor = colour;
  if (item.author_name) box.append(el("div", { class: "attachment-author" }, item.author_name));
  if (item.title) {
    box.append(el("div", { class: "attachment-title" }, item.title_link ? link(item.title_link, item.title) : item.title));
  }
  if (item.text) box.append(mrkdwn(item.text, host.names));
  if (item.fields?.length) {
    box.append(el("div", { class: "fields" }, item.fields.map((field) => el("div", { class: field.short ? "" : "wide" },
      el("strong", {}, field.title || ""), mrkdwn(String(field.value ?? ""), host.names)))));
  }
  if (item.blocks?.length) box.append(blocks(item.blocks, host));
  if (item.image_url) box.append(image({ image_url: item.image_url, alt_text: item.fallback }, "block-picture"));
  if (item.footer) box.append(el("div", { class: "hint" }, item.footer));
  if (!box.childNodes.length && item.fallback) box.append(mrkdwn(item.fallback, host.names));
  return el("div", {}, item.pretext ? mrkdwn(item.pretext, host.names) : null, box);
}

function file(item) {
  const href = `/page/files/${encodeURIComponent(item.id)}`;
  const download = el("a", { href, download: item.name, class: "plain-link" }, word("download"));
  if (/^image\/(png|jpeg|gif|webp)$/.test(item.mimetype)) {
    return el("figure", { class: "picture" },
      el("figcaption", {}, item.title || item.name, " · ", download),
      el("a", { href, target: "_blank", rel: "noopener" }, el("img", { src: href, alt: item.alt_txt || item.title || item.name })));
  }
  return el("div", { class: "file" }, el("span", { class: "file-kind" }, (item.filetype || "?").slice(0, 4).toUpperCase()),
    el("div", {}, el("strong", {}, item.title || item.name),
      el("div", { class: "hint" }, `${item.pretty_type || ""} · ${sizeOf(item.size)} · `, download)));
}

function reactions(message, host, on) {
  return el("div", { class: "reactions" }, message.reactions.map((one) => el("button", {
    type: "button", class: one.users.includes(host.names.me) ? "reaction mine" : "reaction",
    title: `${one.users.map(host.names.user).join(", ")} :${one.name}:`,
    onclick: () => on.react(message, one.name, one.users.includes(host.names.me)),
  }, emoji(one.name), " ", String(one.count))));
}

function summary(message, world, on) {
  const faces = message.reply_users.slice(0, 4).map((id) => {
    const who = author(id.startsWith("B") || id === world.app.user ? { bot_id: world.app.bot_id } : { user: id }, world);
    return avatar(who.name, who.id, who.face);
  });
  return el("button", { type: "button", class: "summary", onclick: () => on.thread(message.ts) }, faces,
    el("span", { class: "count" }, word("replies", message.reply_count)),
    el("span", { class: "hint" }, `${word("lastReply")} ${clockOf(message.latest_reply)}`));
}

function tools(message, inThread, host, on) {
  return el("div", { class: "tools" },
    QUICK.slice(0, 3).map((name) => el("button", {
      type: "button", title: `:${name}:`, onclick: () => on.react(message, name, mine(message, name, host)),
    }, hasIcon(name) ? icon(name) : emoji(name))),
    el("button", {
      type: "button", title: word("react"), "aria-label": word("react"),
      onclick: (event) => host.menu(event.currentTarget, QUICK.map((name) => ({
        label: [emoji(name), ` :${name}:`], run: () => on.react(message, name, mine(message, name, host)),
      }))),
    }, icon("smile")),
    inThread ? null : el("button", {
      type: "button", title: word("replyInThread"), "aria-label": word("replyInThread"),
      onclick: () => on.thread(message.thread_ts || message.ts),
    }, icon("thread")),
    el("button", {
      type: "button", title: word("more"), "aria-label": word("more"), class: "more",
      onclick: (event) => host.menu(event.currentTarget, on.more(message)),
    }, icon("dots")));
}
const mine = (message, name, host) =>
  (message.reactions || []).some((one) => one.name === name && one.users.includes(host.names.me));
