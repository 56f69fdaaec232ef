#!/usr/bin/env python3
"""The tables of docs that say what a field of our custom resources means, in the words of its CustomResourceDefinition.

    tests/tidy/crd_fields.py            checks every table; status 1 if one differs
    tests/tidy/crd_fields.py --write    writes the tables anew
    tests/tidy/crd_fields.py --self     checks the checker: planted differences must be found

A table stands below a line of its page that names the kind: `<!-- fields of Gang.spec -->`. Every kind with a spec has one
table, and every field a description.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

try:
    import yaml
except ImportError:
    found = subprocess.run([ROOT / ".ci/python", "--find"], capture_output=True, text=True, check=False)
    if found.returncode != 0 or found.stdout.strip() == sys.executable:
        print(f"SKIPPED: no Python package 'yaml': {found.stderr.strip()}")
        sys.exit(77)
    os.execv(found.stdout.strip(), [found.stdout.strip(), *sys.argv])

CRDS = [ROOT / "charts/tahoma/crds", ROOT / "charts/tahoma/aws-crds"]
MARKER = re.compile(r"^<!-- fields of (\w+)\.spec -->\n((?:\n?(?:\|.*\n)+)?)", re.MULTILINE)
HEAD = ["| field | default | meaning |", "|---|---|---|"]


def specs():
    """The schema of each kind's spec: kind -> schema."""
    found = {}
    for file in sorted(file for folder in CRDS for file in folder.glob("*.yaml")):
        crd = yaml.safe_load(file.read_text())
        for version in crd["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            if "spec" in schema["properties"]:
                found[crd["spec"]["names"]["kind"]] = schema["properties"]["spec"]
    return found


def fields_of(schema, above=""):
    """(path, default, description) of each field of an object's schema, in its order."""
    for name, field in schema.get("properties", {}).items():
        default = "required" if name in schema.get("required", []) and not above else ""
        if "default" in field:
            value = field["default"]
            default = f"`{str(value).lower() if isinstance(value, bool) else value}`"
        yield above + name, default, field.get("description", "").strip()
        yield from fields_of(field, f"{above}{name}.")


def table_of(schema):
    rows = [f"| `{path}` | {default} | {description.replace('|', chr(92) + '|')} |"
            for path, default, description in fields_of(schema)]
    return "\n" + "\n".join(HEAD + rows) + "\n"


def written(text, known):
    """The page with the tables that its markers ask for."""
    return MARKER.sub(lambda match: f"<!-- fields of {match[1]}.spec -->\n"
                      + (table_of(known[match[1]]) if match[1] in known else match[2]), text)


def breaches(pages, known):
    """What is wrong with the pages (path -> text)."""
    seen = []
    for path, text in pages.items():
        seen += [match[1] for match in MARKER.finditer(text)]
        if written(text, known) != text:
            yield f"{path}: its tables differ from charts/tahoma/crds; tests/tidy/crd_fields.py --write mends them"
    for kind, schema in known.items():
        if seen.count(kind) != 1:
            yield f"{seen.count(kind)} pages have the line <!-- fields of {kind}.spec -->; one page has it"
        for path, _, description in fields_of(schema):
            if not description:
                yield f"charts/tahoma/crds: {kind}.spec.{path} has no description"
    for kind in sorted(set(seen) - set(known)):
        yield f"a page has a table of {kind}.spec, which no CustomResourceDefinition has"


def check_self():
    described = {"type": "object", "required": ["a"],
                 "properties": {"a": {"description": "The a.", "type": "string"},
                                "b": {"description": "Whether.", "default": True, "type": "object",
                                      "properties": {"c": {"description": "The c."}}}}}
    known = {"Gang": described}
    marker = "<!-- fields of Gang.spec -->\n"
    page = (f"# A\n\n{marker}\n| field | default | meaning |\n|---|---|---|\n| `a` | required | The a. |\n"
            "| `b` | `true` | Whether. |\n| `b.c` |  | The c. |\n\nMore.\n")
    wrong = [f"a breach in {page}: {what}" for what in breaches({"a.md": page}, known)]
    if written(f"# A\n\n{marker}\nMore.\n", known) != page:
        wrong.append("an empty table was not filled")
    for text in (page.replace("The a.", "An a."), page.replace("required", ""), page.replace("| `b.c` |  | The c. |\n", ""),
                 "# A\n", page + page, page + "<!-- fields of Other.spec -->\n"):
        if not list(breaches({"a.md": text}, known)):
            wrong.append(f"no breach in {text}")
    if not list(breaches({"a.md": f"{marker}\n| field | default | meaning |\n|---|---|---|\n| `a` |  |  |\n"},
                         {"Gang": {"properties": {"a": {}}}})):
        wrong.append("a field without a description was not found")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self"]:
        return check_self()
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "docs/*.md"], check=True,
                            capture_output=True, text=True).stdout.splitlines()
    pages = {path: (ROOT / path).read_text() for path in listed if (ROOT / path).is_file()}
    known = specs()
    if sys.argv[1:] == ["--write"]:
        for path, text in pages.items():
            if written(text, known) != text:
                (ROOT / path).write_text(written(text, known))
        return 0
    wrong = list(breaches(pages, known))
    print("\n".join([*wrong, f"{len(known)} kinds with a spec, {len(wrong)} breaches"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
