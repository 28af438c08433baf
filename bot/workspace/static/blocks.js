// Block Kit to elements. `host` says what to do: {names, act(element, block, value), suggest(element, block, typed),
// form: Map of "block/action" to the value typed so far, users, channels, errors: {block_id: text}}.

import { el, emoji, emojiText, link, mention, mrkdwn, safeUrl, spoken, word } from "/page/text.js";

// For attributes and options, which hold characters only.
export const plain = (object) => (object ? object.text.replace(/:([a-z0-9_+-]+):/g, (_, n) => emojiText(n)) : "");
export const shown = (object) => (object ? spoken(object.text) : []);
const text = (object, host) =>
  object.type === "mrkdwn" ? mrkdwn(object.text, host.names) : el("div", { class: "plain" }, shown(object));

export function blocks(list, host) {
  return el("div", { class: "blocks" }, list.map((block) => {
    const draw = BLOCKS[block.type] || unknown;
    const node = draw(block, host);
    node.classList.add("block", `block-${block.type}`);
    return node;
  }));
}
const unknown = (block) => el("div", { class: "unknown" }, `[${block.type}]`);

const BLOCKS = {
  section(block, host) {
    const body = el("div", { class: "section-body" });
    if (block.text) body.append(text(block.text, host));
    if (block.fields) body.append(el("div", { class: "fields" }, block.fields.map((f) => text(f, host))));
    return el("div", {}, body, block.accessory
      ? el("div", { class: "accessory" }, element(block.accessory, block, host)) : null);
  },
  header: (block) => el("h3", {}, shown(block.text)),
  divider: () => el("hr"),
  context: (block, host) => el("div", {}, block.elements.map((item) =>
    item.type === "image" ? image(item, "context-image") : text(item, host))),
  actions: (block, host) => el("div", {}, block.elements.map((item) => element(item, block, host))),
  image: (block, host) => el("figure", {},
    block.title ? el("figcaption", {}, plain(block.title)) : null, image(block, "block-picture")),
  rich_text: (block, host) => el("div", {}, block.elements.map((item) => rich(item, host))),
  markdown: (block) => markdown(block.text),
  table: (block, host) => el("div", { class: "scroll" }, el("table", {}, block.rows.map((row, index) =>
    el("tr", {}, row.map((cell) => el(index === 0 ? "th" : "td", {}, cellOf(cell, host))))))),
  input(block, host) {
    const error = host.errors?.[block.block_id];
    return el("div", { class: error ? "field bad" : "field" },
      el("label", {}, shown(block.label), block.optional ? el("span", { class: "hint" }, ` ${word("optional")}`) : null),
      element(block.element, block, host),
      block.hint ? el("div", { class: "hint" }, plain(block.hint)) : null,
      error ? el("div", { class: "error" }, error) : null);
  },
};

const cellOf = (cell, host) => (cell.type === "rich_text"
  ? cell.elements.map((item) => rich(item, host)) : String(cell.text ?? cell.value ?? ""));

export function image(item, cssClass) {
  const file = item.slack_file;
  const id = file?.id || /-(F[0-9A-Z]+)\//.exec(file?.url || "")?.[1];
  const src = id ? `/page/files/${encodeURIComponent(id)}` : safeUrl(item.image_url || "");
  if (!src) return el("span", { class: "unknown" }, item.alt_text || "[image]");
  const picture = el("img", { src, alt: item.alt_text || "", class: cssClass, loading: "lazy", referrerpolicy: "no-referrer" });
  return cssClass === "context-image" ? picture
    : el("a", { href: src, target: "_blank", rel: "noopener noreferrer" }, picture);
}

const RICH = {
  text: (item) => el("span", {}, spoken(item.text)), link: (item) => link(item.url, item.text || item.url),
  user: (item, host) => mention("@" + host.names.user(item.user_id), item.user_id === host.names.me),
  channel: (item, host) => mention("#" + host.names.channel(item.channel_id)),
  usergroup: (item, host) => mention("@" + host.names.group(item.usergroup_id)),
  broadcast: (item) => mention("@" + item.range, true), emoji: (item) => emoji(item.name),
  date: (item) => item.fallback || new Date(item.timestamp * 1000).toLocaleString(),
  color: (item) => item.value,
};
function richInline(items, host) {
  return items.map((item) => {
    let node = (RICH[item.type] || (() => ""))(item, host);
    const style = item.style || {};
    for (const [name, tag] of [["code", "code"], ["bold", "strong"], ["italic", "em"], ["strike", "s"]]) {
      if (style[name]) node = el(tag, {}, node);
    }
    return node;
  });
}
function rich(item, host) {
  switch (item.type) {
    case "rich_text_list": {
      const list = el(item.style === "ordered" ? "ol" : "ul", {}, item.elements.map((inner) =>
        el("li", {}, richInline(inner.elements, host))));
      list.style.marginInlineStart = `${(item.indent || 0) * 24}px`;
      return list;
    }
    case "rich_text_preformatted": return el("pre", {}, richInline(item.elements, host));
    case "rich_text_quote": return el("blockquote", {}, richInline(item.elements, host));
    default: return el("div", { class: "rich" }, richInline(item.elements || [], host));
  }
}

function markdown(source) {
  const root = el("div", { class: "markdown" });
  let list = null;
  source.split(/```/).forEach((part, index) => {
    if (index % 2) { root.append(el("pre", {}, part.replace(/^\w*\n/, ""))); return; }
    for (const line of part.split("\n")) {
      const heading = /^(#{1,4}) (.*)$/.exec(line);
      const entry = /^\s*(?:[-*]|\d+\.) (.*)$/.exec(line);
      if (!entry) list = null;
      if (heading) root.append(el(`h${Math.min(heading[1].length + 2, 6)}`, {}, markdownInline(heading[2])));
      else if (entry) {
        if (!list) root.append((list = el("ul")));
        list.append(el("li", {}, markdownInline(entry[1])));
      } else if (line.trim()) root.append(el("p", {}, markdownInline(line)));
    }
  });
  return root;
}
function markdownInline(line) {
  return line.split(/(\*\*[^*]+\*\*|`[^`]+`|\[[^\]]+\]\([^)\s]+\))/).map((part) => {
    if (part.startsWith("**")) return el("strong", {}, part.slice(2, -2));
    if (part.startsWith("`")) return el("code", {}, part.slice(1, -1));
    const found = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(part);
    return found ? link(found[2], found[1]) : part;
  });
}

const key = (item, block) => `${block.block_id}/${item.action_id}`;

export function element(item, block, host) {
  const draw = ELEMENTS[item.type];
  if (!draw) return el("span", { class: "unknown" }, `[${item.type}]`);
  const node = draw(item, block, host);
  node.dataset.action = item.action_id || "";
  node.dataset.block = block.block_id || "";
  return node;
}

// What is typed is kept, so that a redraw loses nothing; outside inputs every choice is told to the app at once.
function keeper(item, block, host, initial) {
  const name = key(item, block);
  const isQuiet = block.type === "input" && !block.dispatch_action;
  return {
    value: host.form.has(name) ? host.form.get(name) : initial,
    set(value) { host.form.set(name, value); },
    choose(value) {
      host.form.set(name, value);
      if (!isQuiet) host.confirmed(item, () => host.act(item, block, value));
    },
  };
}
const choice = (option) => option?.value ?? null;

const ELEMENTS = {
  button(item, block, host) {
    const url = item.url && safeUrl(item.url);
    return el("button", {
      type: "button", class: `kit-button ${item.style || ""}`, title: item.accessibility_label || undefined,
      onclick: () => host.confirmed(item, () => {
        if (url) window.open(url, "_blank", "noopener");
        return host.act(item, block, item.value);
      }),
    }, shown(item.text));
  },
  image: (item) => image(item, "accessory-image"),
  overflow(item, block, host) {
    return el("button", {
      type: "button", class: "kit-button overflow", "aria-label": word("more"),
      onclick: (event) => host.menu(event.currentTarget, item.options.map((option) => ({
        label: plain(option.text), run: () => host.confirmed(item, () => host.act(item, block, option.value)),
      }))),
    }, "⋯");
  },
  static_select(item, block, host) {
    const keep = keeper(item, block, host, choice(item.initial_option));
    const groups = item.option_groups || [{ options: item.options }];
    return dropdown(item, keep, groups.map((group) => group.label
      ? el("optgroup", { label: plain(group.label) }, options(group.options, keep.value))
      : options(group.options, keep.value)));
  },
  external_select(item, block, host) {
    const keep = keeper(item, block, host, item.initial_option || null);
    const list = el("div", { class: "suggestions", hidden: true });
    const field = el("input", {
      type: "search", class: "kit-input", placeholder: plain(item.placeholder) || word("typeToSearch"),
      value: keep.value ? plain(keep.value.text) : "",
      oninput: async () => {
        if (field.value.length < (item.min_query_length ?? 3)) { list.hidden = true; return; }
        const offered = await host.suggest(item, block, field.value);
        list.hidden = offered.length === 0;
        list.replaceChildren(...offered.map((option) => el("button", {
          type: "button", onclick: () => { field.value = plain(option.text); list.hidden = true; keep.choose(option); },
        }, plain(option.text))));
      },
    });
    return el("div", { class: "external" }, field, list);
  },
  users_select: (item, block, host) => people(item, block, host, item.initial_user, host.users),
  channels_select: (item, block, host) => people(item, block, host, item.initial_channel, host.channels),
  conversations_select: (item, block, host) =>
    people(item, block, host, item.initial_conversation, [...host.channels, ...host.users]),
  multi_static_select: (item, block, host) => many(item, block, host,
    (item.initial_options || []).map(choice), (item.options || []).map((o) => [o.value, plain(o.text)])),
  multi_users_select: (item, block, host) => many(item, block, host, item.initial_users || [], host.users),
  multi_channels_select: (item, block, host) => many(item, block, host, item.initial_channels || [], host.channels),
  checkboxes(item, block, host) {
    const keep = keeper(item, block, host, (item.initial_options || []).map(choice));
    const boxes = item.options.map((option) => el("input", {
      type: "checkbox", value: option.value, checked: keep.value.includes(option.value),
      onchange: () => keep.choose(boxes.filter((box) => box.checked).map((box) => box.value)),
    }));
    return el("div", { class: "choices" }, item.options.map((option, index) => labelled(boxes[index], option, host)));
  },
  radio_buttons(item, block, host) {
    const keep = keeper(item, block, host, choice(item.initial_option));
    return el("div", { class: "choices" }, item.options.map((option) => labelled(el("input", {
      type: "radio", name: key(item, block), value: option.value, checked: keep.value === option.value,
      onchange: () => keep.choose(option.value),
    }), option, host)));
  },
  plain_text_input(item, block, host) {
    const keep = keeper(item, block, host, item.initial_value ?? "");
    return el(item.multiline ? "textarea" : "input", {
      class: "kit-input", placeholder: plain(item.placeholder), maxlength: String(item.max_length || 3000),
      value: keep.value, rows: item.multiline ? 4 : undefined, autofocus: item.focus_on_load || undefined,
      oninput: (event) => keep.set(event.target.value),
      onkeydown: (event) => {
        if (event.key === "Enter" && block.dispatch_action && !item.multiline) keep.choose(event.target.value);
      },
    });
  },
  number_input: (item, block, host) => typed("number", item, block, host, item.initial_value ?? ""),
  email_text_input: (item, block, host) => typed("email", item, block, host, item.initial_value ?? ""),
  url_text_input: (item, block, host) => typed("url", item, block, host, item.initial_value ?? ""),
  datepicker: (item, block, host) => picked("date", item, block, host, item.initial_date ?? ""),
  timepicker: (item, block, host) => picked("time", item, block, host, item.initial_time ?? ""),
  datetimepicker(item, block, host) {
    const keep = keeper(item, block, host, item.initial_date_time ?? null);
    const shown = keep.value ? new Date((keep.value - new Date().getTimezoneOffset() * 60) * 1000).toISOString().slice(0, 16) : "";
    return el("input", {
      type: "datetime-local", class: "kit-input", value: shown,
      onchange: (event) => keep.choose(event.target.value ? Math.floor(new Date(event.target.value).getTime() / 1000) : null),
    });
  },
};

function options(list, value) {
  return (list || []).map((option) => el("option", { value: option.value, selected: option.value === value }, plain(option.text)));
}
function dropdown(item, keep, children) {
  const label = plain(item.placeholder) || word("choose");
  return el("select", {
    class: "kit-select", "aria-label": label, onchange: (event) => event.target.value && keep.choose(event.target.value),
  }, el("option", { value: "", selected: !keep.value }, label), children);
}
const pairs = (list) => list.map((entry) => (Array.isArray(entry) ? entry : [entry.id, entry.label]));
function people(item, block, host, initial, list) {
  const keep = keeper(item, block, host, initial ?? null);
  return dropdown(item, keep, pairs(list).map(([id, label]) => el("option", { value: id, selected: id === keep.value }, label)));
}
function many(item, block, host, initial, list) {
  const keep = keeper(item, block, host, initial);
  return el("select", {
    class: "kit-select", multiple: true, "aria-label": plain(item.placeholder) || word("choose"),
    onchange: (event) => keep.choose([...event.target.selectedOptions].map((option) => option.value)),
  }, pairs(list).map(([id, label]) => el("option", { value: id, selected: keep.value.includes(id) }, label)));
}
function labelled(box, option, host) {
  return el("label", { class: "choice" }, box, el("span", {}, text(option.text, host),
    option.description ? el("div", { class: "hint" }, plain(option.description)) : null));
}
function typed(type, item, block, host, initial) {
  const keep = keeper(item, block, host, initial);
  return el("input", {
    type, class: "kit-input", value: String(keep.value ?? ""), placeholder: plain(item.placeholder),
    step: item.is_decimal_allowed ? "any" : undefined, oninput: (event) => keep.set(event.target.value),
  });
}
function picked(type, item, block, host, initial) {
  const keep = keeper(item, block, host, initial);
  return el("input", { type, class: "kit-input", value: keep.value || "", onchange: (event) => keep.choose(event.target.value) });
}
