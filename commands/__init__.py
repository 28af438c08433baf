"""One `/rca` word per file; `bot.registry.collect` gathers them."""
