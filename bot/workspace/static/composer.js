// The box to write in: messages, commands, names to complete, files.

import { icon } from "/page/icons.js";
import { el, word } from "/page/text.js";

export function makeComposer({ world, here, control }) {
  function composer(channel, threadTs, placeholder, also) {
    const picker = el("input", { type: "file", hidden: true, onchange: () => upload(picker, channel, threadTs) });
    const hints = el("div", { class: "hints", hidden: true });
    const field = el("textarea", {
      rows: 1, placeholder, "aria-label": placeholder,
      oninput: () => { grow(field); suggestNames(field, hints); },
      onkeydown: (event) => {
        if (event.key === "Tab" && !hints.hidden) { event.preventDefault(); hints.firstChild?.click(); }
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); send(); }
      },
    });
    async function send() {
      const text = field.value.trim();
      if (!text) return;
      field.value = "";
      hints.hidden = true;
      grow(field);
      here.atBottom = true;
      const at = { channel: channel.id, text, thread_ts: threadTs || undefined };
      if (text.startsWith("/")) await control("command", at);
      else await control("message", { ...at, broadcast: Boolean(also?.checked) });
      if (also) also.checked = false;
    }
    return el("div", { class: "composer" }, hints, field, el("div", { class: "composer-foot" },
      el("button", { type: "button", class: "icon", title: word("attach"), "aria-label": word("attach"), onclick: () => picker.click() }, icon("clip")), picker,
      el("span", { class: "hint" }, threadTs ? "@rca status" : `${world.commands.join(" ")} help`),
      el("span", { class: "spring" }),
      el("button", { type: "button", class: "kit-button primary send", onclick: send }, word("send"))));
  }
  function grow(field) {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 180)}px`;
  }
  function suggestNames(field, hints) {
    const before = field.value.slice(0, field.selectionStart);
    const match = /(^|\s)([@#])([\w.-]*)$/.exec(before);
    const pool = !match ? [] : match[2] === "@"
      ? world.users.filter((u) => u.id !== "USLACKBOT").map((u) => [u.name, `${u.real_name}`])
      : world.channels.filter((c) => c.kind === "channel").map((c) => [c.name, c.topic]);
    const found = pool.filter(([name]) => name.startsWith(match[3].toLowerCase())).slice(0, 6);
    hints.hidden = found.length === 0;
    hints.replaceChildren(...found.map(([name, label]) => el("button", {
      type: "button",
      onclick: () => {
        const start = before.length - match[3].length;
        field.value = `${before.slice(0, start)}${name} ${field.value.slice(field.selectionStart)}`;
        hints.hidden = true;
        field.focus();
      },
    }, el("strong", {}, match[2] + name), " ", el("span", { class: "hint" }, label))));
  }
  async function upload(picker, channel, threadTs) {
    const [file] = picker.files;
    if (!file) return;
    const bytes = new Uint8Array(await file.arrayBuffer());
    let binary = "";
    for (let i = 0; i < bytes.length; i += 32768) binary += String.fromCharCode(...bytes.subarray(i, i + 32768));
    picker.value = "";
    await control("upload", { channel: channel.id, name: file.name, content_base64: btoa(binary), thread_ts: threadTs || undefined });
  }
  return composer;
}
