// Sample alerts: each sender in both of its ways, to the bot's webhook (firing and over) and as a message in a channel.

import { icon } from "/page/icons.js";
import { toast } from "/page/popups.js";
import { word } from "/page/text.js";

export function samples(world, control, channel) {
  const senders = world.apps.filter((app) => app.bot_id !== world.app.bot_id);
  const face = (app) => icon(app.emoji.replaceAll(":", ""));
  const posts = (app, isResolved) => ({
    label: [face(app), ` ${app.name}: ${word(isResolved ? "resolved" : "firing")}`],
    run: () => webhook(control, app.name.toLowerCase(), isResolved),
  });
  return [
    { head: word("webhooks") }, ...senders.flatMap((app) => [posts(app, false), posts(app, true)]),
    { head: `${word("asMessage")} · #${channel.name}` },
    ...senders.map((app) => ({
      label: [face(app), ` ${app.name}`],
      run: () => control("alert_bot_message", { app: app.bot_id, channel: channel.id }),
    })),
  ];
}

async function webhook(control, sender, isResolved) {
  const answer = await control("webhook", { sender, resolved: isResolved });
  toast(answer.ok ? `${sender}: HTTP ${answer.status}` : `${word("noBot")}: ${answer.status || answer.error}`);
}
