"""Two hundred texts that do harm wherever they meet a shell, an option parser or a template."""

from __future__ import annotations

from pathlib import Path

COMMANDS = (
    "; touch {c} ;", "$(touch {c})", "`touch {c}`", "| touch {c}", "|| touch {c} #",
    "& touch {c} &",
    "&& touch {c} #", "> {c}", ">> {c} 2>&1", "${{IFS}}touch${{IFS}}{c}", "<(touch {c})",
    "$(({c}))", "%0atouch {c}", "\\; touch {c} \\;", "!touch {c}", "~/$(touch {c})",
    '--settings={{"hooks":"touch {c}"}}', "-oProxyCommand=touch {c}", "-exec touch {c} ;",
    "--upload-pack=touch {c}", "--use-askpass=touch {c}", "-c core.pager=touch {c}", "@{c}",
    "{{{{ ''.__class__.__mro__ }}}} {c}", "%(asctime)s%n {c}",
)  # fmt: skip
QUOTES = ("{}", "x'{}'", "' {} '", '" {} "', "'\"{}\"'", "\\'{}", "a{}b", "x=1 {}")


def payloads(canary: Path) -> list[str]:
    """Each command in each kind of quotes; `canary` is the file that one of them would make."""
    return [quote.format(command.format(c=canary)) for command in COMMANDS for quote in QUOTES]
