#!/usr/bin/env python3
"""The tables of docs/helm.md, made of the chart's values.yaml: of each value its path, default and comment.

    values_table.py            prints them
    values_table.py --write    puts them into docs/helm.md
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
VALUES = ROOT / "charts/tahoma/values.yaml"
PAGE = ROOT / "docs/helm.md"
BEGIN, END = "<!-- values: tests/chart/values_table.py --write -->\n", "<!-- end of values -->\n"
KEY = re.compile(r"^( *)([A-Za-z]+):(?: (.*))?$")
# Their parts are Kubernetes' own.
WHOLE = ("resources", "labels")


def entries(text):
    """Each key with its depth, value as written (None: a section begins) and the comment above it."""
    comment = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("#"):
            comment.append(stripped[1:].removeprefix(" "))
            continue
        match = KEY.match(line)
        if match:
            yield len(match[1]) // 2, match[2], match[3], " ".join(one.strip() for one in comment)
        comment = []


def sections(text):
    """(name, comment, [(path, default, comment)]) of each key of the first level."""
    out, path, whole = [], [], None
    for depth, key, value, comment in entries(text):
        if whole is not None and depth > whole:
            out[-1][2][-1][1].append(f"{key}: {value}")
            continue
        whole = None
        path = [*path[:depth], key]
        if depth == 0:
            out.append((key, comment, []))
        elif value is None and key in WHOLE:
            whole = depth
            out[-1][2].append((".".join(path), [], comment))
        elif value is not None:
            out[-1][2].append((".".join(path), [value], comment))
    return out


def table(text):
    lines = []
    for name, comment, rows in sections(text):
        lines += [f"### {name}", "", *([comment, ""] if comment else []), "| value | default | |", "|---|---|---|"]
        for path, default, meaning in rows:
            shown = ", ".join(default).replace("|", "\\|")
            lines.append(f"| `{path}` | `{shown}` | {meaning.replace('|', chr(92) + '|')} |")
        lines.append("")
    return "\n".join(lines)


def main():
    made = table(VALUES.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{rest.split(END)[1]}", encoding="utf-8")
    else:
        print(made)


if __name__ == "__main__":
    main()
