"""The shell's side of the bot: one `rca-bot` word per file, each with a Typer `app`."""
