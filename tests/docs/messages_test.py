#!/usr/bin/env python3
"""Checks that each message that docs/troubleshooting.md quotes is still in the sources, apart from names and numbers.

    tests/docs/messages_test.py           checks the page; status 1 if a message is gone
    tests/docs/messages_test.py --self    checks the checker: a planted message must be missed

A message stands in backquotes in the first column of a table; `…` stands for what changes. Its other parts must follow
each other in one sentence of a source. A row whose first column goes on after the message quotes another's program.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/troubleshooting.md"
FOLDERS = ("controller", "lib", "sim-node", "dra-plugin", "examples/local")
REACH = 400  # bytes of a source between the first and the last part of a message
ROW = re.compile(r"^\| `+([^`]+)`+ \|", re.M)


def sources():
    """The text of each source with literals joined as the compiler joins them."""
    named = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    files = [ROOT / name for name in named] or [file for folder in FOLDERS for file in (ROOT / folder).rglob("*")]
    for file in files:
        if file.suffix in (".cc", ".h", ".py"):
            yield re.sub(r'"\s*\n?\s*f?"', "", file.read_text().replace('\\"', "'")).replace('\\"', '"')


def pattern_of(message):
    parts = [part.strip() for part in message.replace('"', "'").split("…")]
    parts = [part for part in parts if len(part) > 1]
    # A value may stand between two parts, and code that chooses between two endings.
    return re.compile((r"(?s:.{0,%d}?)" % REACH).join(re.escape(part) for part in parts))


def missing(messages, texts):
    return [message for message in messages if not any(pattern_of(message).search(text) for text in texts)]


def main():
    texts = list(sources())
    if sys.argv[1:] == ["--self"]:
        planted = "the moon is … of cheese"
        return 0 if missing([planted], texts) == [planted] and not missing(["couldn't find key … in …"], texts) else 1
    messages = ROW.findall(PAGE.read_text())
    gone = missing(messages, texts)
    print(f"{len(messages)} messages, {len(gone)} not in the sources")
    for message in gone:
        print(f"docs/troubleshooting.md: no source says: {message}")
    return 1 if gone or len(messages) < 40 else 0


if __name__ == "__main__":
    sys.exit(main())
