// Words of the page, Slack's mark-up, emoji, and the one way to build elements. Foreign text only ever becomes
// text nodes.

import { drawsEmoji, hasIcon, icon } from "/page/icons.js";

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "value" && tag !== "option" && tag !== "button") node.value = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "data") for (const [k, v] of Object.entries(value)) node.dataset[k] = v;
    else if (key in node && typeof value !== "string") node[key] = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

const WORDS = {
  en: {
    actAs: "Act as", app: "APP", channels: "Channels", apps: "Apps", home: "Home", messages: "Messages",
    sample: "Sample alert", traffic: "Traffic", theme: "Light or dark", language: "中文",
    webhooks: "Posted to the bot's webhook", firing: "firing", resolved: "resolved",
    asMessage: "Posted as a message of the app", menu: "Channels",
    off: "Slack would have switched event delivery off: nearly all deliveries of an hour failed.", switchOn: "Switch on",
    send: "Send", attach: "Attach a file",
    write: (name) => `Message ${name}`, reply: "Reply…", thread: "Thread", close: "Close",
    alsoSend: (name) => `Also send to ${name}`, onlyYou: "Only visible to you", dismiss: "Dismiss",
    edited: "(edited)", replies: (n) => (n === 1 ? "1 reply" : `${n} replies`), lastReply: "last reply",
    replyInThread: "Reply in thread", react: "Add a reaction", more: "More actions", edit: "Edit message",
    remove: "Delete message", copyLink: "Copy link", copyTs: "Copy ts", save: "Save", cancel: "Cancel",
    submit: "Submit", confirmTitle: "Are you sure?", yes: "Yes", no: "Cancel", today: "Today",
    yesterday: "Yesterday", download: "Download", choose: "Choose an option", optional: "(optional)",
    noHome: "The app has published no Home tab yet.", empty: "Nothing here yet. Say something, or type /rca help.",
    outside: "You are not in this channel.", join: "Join channel", inviteApp: "Add the app", filter: "Filter",
    clear: "Clear", members: (n) => `${n} members`, sent: "sent", failed: "failed", newMessages: "New messages",
    loopback: "Local workspace. It serves this machine only.", offline: "Reconnecting…", select: "Select",
    originally: "This message was deleted.", noBot: "The bot did not take it", repliedInThread: "replied in a thread",
    trouble: "We had some trouble connecting. Try again?", typeToSearch: "Type to search",
    broadcastFrom: "replied to a thread", appMissing: "The app is not in this channel.",
  },
  zh: {
    actAs: "身份", app: "应用", channels: "频道", apps: "应用", home: "主页", messages: "消息",
    sample: "示例告警", traffic: "流量", theme: "浅色或深色", language: "English",
    webhooks: "发送到机器人的 webhook", firing: "触发", resolved: "恢复",
    asMessage: "由应用在频道中发布", menu: "频道",
    off: "一小时内几乎所有投递都失败，Slack 会关闭事件投递。", switchOn: "重新开启",
    send: "发送", attach: "添加文件",
    write: (name) => `发消息到 ${name}`, reply: "回复…", thread: "消息列", close: "关闭",
    alsoSend: (name) => `同时发到 ${name}`, onlyYou: "仅你可见", dismiss: "关闭",
    edited: "（已编辑）", replies: (n) => `${n} 条回复`, lastReply: "最后回复",
    replyInThread: "在消息列中回复", react: "添加表情", more: "更多操作", edit: "编辑消息",
    remove: "删除消息", copyLink: "复制链接", copyTs: "复制 ts", save: "保存", cancel: "取消",
    submit: "提交", confirmTitle: "确定吗？", yes: "确定", no: "取消", today: "今天",
    yesterday: "昨天", download: "下载", choose: "请选择", optional: "（选填）",
    noHome: "应用还没有发布主页。", empty: "这里还没有消息。说点什么，或输入 /rca help。",
    outside: "你不在这个频道里。", join: "加入频道", inviteApp: "添加应用", filter: "筛选",
    clear: "清空", members: (n) => `${n} 位成员`, sent: "已发送", failed: "失败", newMessages: "新消息",
    loopback: "本地工作区，仅供本机使用。", offline: "正在重新连接…", select: "选择",
    originally: "此消息已删除。", noBot: "机器人没有接收", repliedInThread: "在消息列中回复了",
    trouble: "连接出了点问题，要再试一次吗？", typeToSearch: "输入以搜索",
    broadcastFrom: "回复了一个消息列", appMissing: "应用不在这个频道里。",
  },
};

let language = localStorage.getItem("language") ||
  (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export const locale = () => (language === "zh" ? "zh-CN" : "en-GB");
export function word(key, ...args) {
  const found = WORDS[language][key];
  return typeof found === "function" ? found(...args) : found;
}
export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem("language", language);
  document.documentElement.lang = locale();
}
document.documentElement.lang = locale();

const EMOJI = {
  "+1": "👍", "-1": "👎", alarm_clock: "⏰", ambulance: "🚑", arrow_down: "⬇️", arrow_right: "➡️", arrow_up: "⬆️",
  arrows_counterclockwise: "🔄", ballot_box_with_check: "☑️", bar_chart: "📊", bell: "🔔", black_circle: "⚫",
  black_right_pointing_double_triangle_with_vertical_bar: "⏭️", boom: "💥", brain: "🧠", bug: "🐛", bulb: "💡", calendar: "📅", chart_with_downwards_trend: "📉",
  chart_with_upwards_trend: "📈", checkered_flag: "🏁", clipboard: "📋", clock1: "🕐", construction: "🚧", dart: "🎯",
  date: "📅", double_vertical_bar: "⏸️", exclamation: "❗", eyes: "👀", fast_forward: "⏩", file_folder: "📁",
  fire: "🔥", fire_extinguisher: "🧯", gear: "⚙️", grey_question: "❔", hammer_and_wrench: "🛠️", heavy_check_mark: "✔️",
  heavy_minus_sign: "➖", heavy_plus_sign: "➕", point_left: "👈", hourglass: "⌛", hourglass_flowing_sand: "⏳", information_source: "ℹ️", inbox_tray: "📥",
  key: "🔑", label: "🏷️", large_blue_circle: "🔵", large_green_circle: "🟢", large_orange_circle: "🟠",
  large_red_circle: "🔴", large_yellow_circle: "🟡", link: "🔗", lock: "🔒", mag: "🔍", mag_right: "🔎", mega: "📣",
  memo: "📝", microscope: "🔬", no_entry: "⛔", no_entry_sign: "🚫", no_bell: "🔕", ok: "🆗", page_facing_up: "📄", pager: "📟",
  paperclip: "📎", pencil2: "✏️", pushpin: "📌", question: "❓", raised_hand: "✋", red_circle: "🔴", repeat: "🔁",
  robot_face: "🤖", rocket: "🚀", rotating_light: "🚨", satellite: "🛰️", scales: "⚖️", scroll: "📜", shield: "🛡️",
  snail: "🐌", sos: "🆘", sparkles: "✨", speech_balloon: "💬", stethoscope: "🩺", stopwatch: "⏱️", tada: "🎉",
  thinking_face: "🤔", thumbsup: "👍", thumbsdown: "👎", timer_clock: "⏲️", triangular_flag_on_post: "🚩",
  turtle: "🐢", warning: "⚠️", white_check_mark: "✅", white_circle: "⚪", white_large_square: "⬜", wrench: "🔧",
  x: "❌", zap: "⚡", zzz: "💤", one: "1️⃣", two: "2️⃣", three: "3️⃣", four: "4️⃣", five: "5️⃣", six: "6️⃣",
};
const DOTS = { "🔴": "#d72b3f", "🟢": "#2eb67d", "🟡": "#e8c413", "🟠": "#e8801a", "🔵": "#1e8fe1", "⚪": "#b8b8b8", "⚫": "#444" };
const NAMES = new Map(Object.entries(EMOJI).map(([name, sign]) => [sign, name]));
const SIGNS = /\p{Extended_Pictographic}[\uFE0F\u20E3]*/gu;

// Text for attributes and options; nodes for everything else.
export const emojiText = (name) => (EMOJI[name] && drawsEmoji ? EMOJI[name] : `:${name}:`);
export function emoji(name) {
  const sign = EMOJI[name];
  if (!sign) return `:${name}:`;
  return drawsEmoji ? sign : drawnEmoji(sign, name);
}
function drawnEmoji(sign, name) {
  const node = dot(sign) || (hasIcon(name) ? icon(name) : null);
  return el("span", { class: node ? "drawn" : "shortcode", title: `:${name}:` }, node || `:${name}:`);
}
function dot(sign) {
  if (!(sign in DOTS)) return null;
  const node = el("span", { class: "emoji-dot" });
  node.style.background = DOTS[sign];
  return node;
}
// Plain text with emoji, both as :names: and as characters.
export function spoken(text) {
  const named = text.replace(/:([a-z0-9_+-]+):/g, (all, name) => EMOJI[name] || all);
  if (drawsEmoji) return [named];
  const parts = [];
  let end = 0;
  for (const match of named.matchAll(SIGNS)) {
    const name = NAMES.get(match[0]) || NAMES.get(match[0].replace(/\uFE0F/g, ""));
    if (!name && !(match[0] in DOTS)) continue;
    parts.push(named.slice(end, match.index), drawnEmoji(match[0], name));
    end = match.index + match[0].length;
  }
  return [...parts, named.slice(end)];
}
export const QUICK = ["pushpin", "bulb", "scales", "hammer_and_wrench", "ballot_box_with_check", "eyes",
  "white_check_mark", "+1"];

export const unescape = (text) =>
  text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

export function safeUrl(url) {
  try {
    const parsed = new URL(url);  // absolute only: a relative one is no address of Slack's
    return ["http:", "https:", "mailto:"].includes(parsed.protocol) ? parsed.href : null;
  } catch { return null; }
}
export function link(url, label) {
  const href = safeUrl(url);
  return href
    ? el("a", { href, target: "_blank", rel: "noopener noreferrer" }, label)
    : document.createTextNode(label);
}

// `names` says what ids mean: {user(id), channel(id), group(id), me}
export function mrkdwn(text, names) {
  const root = el("div", { class: "mrkdwn" });
  const parts = String(text).split(/```/);
  parts.forEach((part, index) => {
    if (index % 2 === 1 && index < parts.length - 1) {
      root.append(el("pre", {}, tokensAsText(part.replace(/^\n/, ""), names)));
    } else {
      paragraphs(root, (index % 2 === 1 ? "```" : "") + part, names);
    }
  });
  return root;
}

function paragraphs(root, text, names) {
  let quote = null;
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const match = /^(?:&gt;|>) ?(.*)$/.exec(line);
    if (match) {
      if (!quote) root.append((quote = el("blockquote")));
      else quote.append(el("br"));
      inline(quote, match[1], names);
    } else {
      const afterBlock = quote !== null || root.lastChild?.nodeName === "PRE";
      quote = null;
      if (index > 0 && !afterBlock) root.append(el("br"));
      inline(root, line, names);
    }
  });
}

const INLINE = /(`[^`\n]+`)|(<[^<>\n]+>)|(^|[\s(（，。：；、\u4e00-\u9fff>"'[])([*_~])(?=\S)((?:(?!\4)[^\n])*?\S)\4(?=$|[\s).,:;!?，。：；！？、）\u4e00-\u9fff<"'\]/-])/u;
const WRAP = { "*": "strong", _: "em", "~": "s" };

function inline(parent, text, names) {
  let rest = text;
  for (;;) {
    const match = INLINE.exec(rest);
    if (!match) break;
    const lead = match[3] || "";
    parent.append(...spoken(unescape(rest.slice(0, match.index) + lead)));
    if (match[1]) parent.append(el("code", {}, unescape(match[1].slice(1, -1))));
    else if (match[2]) parent.append(token(match[2].slice(1, -1), names));
    else {
      const wrap = el(WRAP[match[4]]);
      inline(wrap, match[5], names);
      parent.append(wrap);
    }
    rest = rest.slice(match.index + match[0].length);
  }
  parent.append(...spoken(unescape(rest)));
}

function token(body, names) {
  const [target, label] = splitOnce(body, "|");
  if (target.startsWith("@")) return mention("@" + names.user(target.slice(1)), target.slice(1) === names.me);
  if (target.startsWith("#")) return mention("#" + names.channel(target.slice(1)));
  if (target.startsWith("!subteam^")) return mention("@" + names.group(target.slice(9)));
  if (target.startsWith("!date^")) return document.createTextNode(date(target, label));
  if (target.startsWith("!")) return mention("@" + target.slice(1), true);
  return link(unescape(target), unescape(label || target.replace(/^mailto:/, "")));
}

const tokensAsText = (text, names) =>
  unescape(text.replace(/<([^<>\n]+)>/g, (_, body) => {
    const [target, label] = splitOnce(body, "|");
    if (target.startsWith("@")) return "@" + names.user(target.slice(1));
    return label || target;
  }));

function splitOnce(text, separator) {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
export const mention = (text, isMe = false) =>
  el("span", { class: isMe ? "mention me" : "mention" }, text);

let zone;
export const setZone = (name) => { zone = name; };
const format = (options, at) => new Intl.DateTimeFormat(locale(), { timeZone: zone, ...options }).format(at);
export const clockOf = (ts) => format({ hour: "2-digit", minute: "2-digit", hour12: false }, new Date(Number(ts) * 1000));
export const fullTime = (ts) => format({ dateStyle: "full", timeStyle: "long" }, new Date(Number(ts) * 1000));
export const secondsOf = (at) => format(
  { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hour12: false },
  new Date(at * 1000));
export function dayOf(ts) {
  const at = new Date(Number(ts) * 1000);
  const day = format({ dateStyle: "full" }, at);
  if (day === format({ dateStyle: "full" }, new Date())) return word("today");
  if (day === format({ dateStyle: "full" }, new Date(Date.now() - 86400000))) return word("yesterday");
  return day;
}
function date(target, fallback) {
  const [, epoch, pattern] = target.split("^");
  const at = new Date(Number(epoch) * 1000);
  if (!pattern || Number.isNaN(at.getTime())) return unescape(fallback || "");
  return unescape(pattern)
    .replace(/\{date_num\}/g, new Intl.DateTimeFormat("sv-SE", { timeZone: zone }).format(at))
    .replace(/\{date(_long|_short)?_pretty\}/g, (all) => near(at) || all.replace("_pretty", ""))
    .replace(/\{date_long\}/g, format({ dateStyle: "full" }, at))
    .replace(/\{date_short\}/g, format({ dateStyle: "medium" }, at))
    .replace(/\{date\}/g, format({ dateStyle: "long" }, at))
    .replace(/\{time_secs\}/g, format({ timeStyle: "medium", hour12: false }, at))
    .replace(/\{time\}/g, format({ hour: "2-digit", minute: "2-digit", hour12: false }, at))
    .replace(/\{ago\}/g, fallback || "");
}
// The pretty forms say today and yesterday, as Slack's clients do.
function near(at) {
  const day = (moment) => new Intl.DateTimeFormat("sv-SE", { timeZone: zone }).format(moment);
  if (day(at) === day(new Date())) return word("today");
  return day(at) === day(new Date(Date.now() - 86_400_000)) ? word("yesterday") : null;
}
export function sizeOf(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} kB` : `${(bytes / 1048576).toFixed(1)} MB`;
}
