#!/usr/bin/env python3
"""Pages of docs/reference that are made of the code: flags.md of the programs' help, errors.md of their error codes, crds.md of
the chart's CustomResourceDefinitions.

    TAHOMA_BIN=build/release/bin tests/docs/reference.py            checks the pages; status 1 if one differs
    TAHOMA_BIN=build/release/bin tests/docs/reference.py --write    writes them anew
    TAHOMA_BIN=build/release/bin tests/docs/reference.py --self     checks the checker: planted differences must be found

The pages about a kind have shorter tables of its spec, which tests/tidy/crd_fields.py makes.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

sys.path.insert(0, str(ROOT / "tests/chart"))

import chart

yaml = chart.yaml
FOLDER = ROOT / "docs/reference"
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", "build/release/bin"))
MADE = "Made by `tests/docs/reference.py --write`; a test compares.\n"

# Programs and where they run.
PROGRAMS = {
    "On nodes and beside the API server": ("controller", "dra-plugin", "sim-node"),
    "In pods": ("neuron-ls", "neuron-monitor", "neuron-top", "nccom-test", "trn-run", "trn-mem"),
    "Anywhere": ("trn-trace", "trn-checkpoint"),
}
CONTROLLER_COMMANDS = ("backup", "restore", "--check", "--replay")


def help_of(*command):
    shown = subprocess.run([BIN / command[0], *command[1:]], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {shown.stderr}")
    text = re.sub(r"^(.*?) \d+\.\d+\.\d+:", r"\1:", shown.stdout or shown.stderr)
    return "".join(f"    {line}".rstrip() + "\n" for line in text.rstrip("\n").split("\n"))


def flags_page():
    parts = [f"# Flags\n\nWhat each program prints for `--help`. {MADE}"]
    for where, programs in PROGRAMS.items():
        parts.append(f"\n## {where}\n")
        for program in programs:
            parts.append(f"\n### {program}\n\n{help_of(program, '--help')}")
            if program == "controller":
                parts += [f"\n### controller {name}\n\n{help_of(program, name, '--help')}" for name in CONTROLLER_COMMANDS]
    general = help_of("kubectl-tahoma", "--help")
    parts.append(f"\n## kubectl tahoma\n\n{general}")
    for name in re.findall(r"^      (\w+) +\S", re.search(r"Commands:\n((?:      .*\n)+)", general)[1], re.M):
        if name != "help":
            own = help_of("kubectl-tahoma", "help", name).split("    Flags of every command:")[0].rstrip()
            parts.append(f"\n### kubectl tahoma {name}\n\n{own}\n")
    return "".join(parts)


def sources(*folders):
    """The sources as texts in which adjacent literals are one."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.cc")) + sorted((ROOT / folder).rglob("*.h")):
            yield re.sub(r'(?<!\\)"\s*\n\s*"', "", file.read_text())


def said_by(texts):
    """The first message of each code of EC2, with … for its values: constant -> message."""
    found = {}
    for text in texts:
        for name, message in re.findall(r'Refuse\(\s*(?:ec2::)?(k\w+),\s*"((?:[^"\\]|\\.)*)"', text):
            message = re.sub(r"\{[^}]*\}", "…", message.replace('\\"', '"'))
            found.setdefault(name, message.replace("|", "\\|"))
    return found


def ec2_rows():
    statuses = (ROOT / "controller/ec2/error.cc").read_text()
    of_name = dict(re.findall(r"\{(k\w+)\.name, (\d+)\}", statuses))
    said = said_by(sources("controller/ec2", "controller/reserve", "controller/core/blocks"))
    for header in ("controller/ec2/error.h", "controller/reserve/refusal.h"):
        for name, code in re.findall(r'Ec2Code (k\w+)\{"([^"]+)"', (ROOT / header).read_text()):
            yield code, of_name.get(name, "400"), said.get(name, "")
    for code, status in re.findall(r'\{"(\w+)", (\d+)\}', statuses):
        yield code, status, ""
    yield "InternalError", of_name.get("kInternalError", "500"), "an internal error occurred; the controller's log has it"


def kubernetes_rows():
    texts = list(sources("controller/apiserver", "controller/access"))
    pairs = {(code, reason) for text in texts
             for code, reason in re.findall(r'(?:Failure|Envelope|GenericError)\(\s*(\d{3}),\s*"([A-Za-z]+)"', text)}
    return sorted(pairs)


def plain(message):
    """A message of the sources with … for its values, fit for a table."""
    return re.sub(r"\{[^}]*\}", "…", message.replace('\\"', '"')).replace("|", "\\|")


def http_of_status():
    """The HTTP status of each absl::StatusCode, as lib/rest has them: "kNotFound" -> "404"."""
    pairs, waiting = {}, []
    for name, status in re.findall(r"case absl::StatusCode::(k\w+):|return (\d{3});", (ROOT / "lib/rest/message.cc").read_text()):
        waiting += [name] if name else []
        if status:
            pairs.update(dict.fromkeys(waiting, status))
            waiting = []
    return pairs


def admin_rows():
    """(HTTP status, code or "", message) of the problems that the admin API answers with."""
    texts = list(sources("controller/admin", "controller/access", "lib/rest"))
    without = set()
    told = set()
    for text in texts:
        without |= set(re.findall(r"\bProblem(?:Of)?\(\s*(\d{3}),", text))
        for status, message in re.findall(r'\bProblem(?:Of)?\(\s*(\d{3}),\s*(?:fmt::format\(\s*)?"((?:[^"\\]|\\.)*)"', text):
            told.add(status)
            yield status, "", plain(message)
        for message in re.findall(r'Problem\(401, given \? "((?:[^"\\]|\\.)*)"', text):
            told.add("401")
            yield "401", "", plain(message)
    yield from ((status, "", "") for status in without - told)
    said = said_by(sources("controller/admin", "controller/reserve", "controller/core/blocks"))
    http = http_of_status()
    for name, code, status in re.findall(r'Ec2Code (k\w+)\{"([^"]+)"(?:,\s*absl::StatusCode::(k\w+))?',
                                         (ROOT / "controller/reserve/refusal.h").read_text()):
        yield http[status or "kInvalidArgument"], f"`{code}`", said.get(name, "")


def limits_of(field):
    """What a value may be, in words of JSON Schema."""
    names = {"minimum": "≥ {}", "maximum": "≤ {}", "minLength": "length ≥ {}", "maxLength": "length ≤ {}", "minItems": "items ≥ {}",
             "maxItems": "items ≤ {}", "maxProperties": "members ≤ {}", "pattern": "`{}`", "format": "{}"}
    parts = [form.format(field[name]) for name, form in names.items() if name in field]
    if "enum" in field:
        parts.insert(0, ", ".join(f"`{value}`" for value in field["enum"]))
    return "; ".join(parts).replace("|", "\\|")


def type_of(field):
    if field.get("x-kubernetes-int-or-string"):
        return "integer or text"
    if field.get("type") == "array":
        return f"list of {type_of(field['items'])}"
    if "additionalProperties" in field:
        return f"map of {type_of(field['additionalProperties'])}"
    return {"string": "text", "boolean": "true or false"}.get(field.get("type"), field.get("type", "any"))


def field_rows(schema, above):
    """A row for each field of an object's schema and of the objects in it, in its order."""
    for name, field in schema.get("properties", {}).items():
        path = f"{above}.{name}" if above else name
        default = "required" if name in schema.get("required", []) else ""
        if "default" in field:
            value = field["default"]
            default = f"`{str(value).lower() if isinstance(value, bool) else value}`"
        says = " ".join(field.get("description", "").split()).replace("|", "\\|")
        yield f"| `{path}` | {type_of(field)} | {default} | {limits_of(field)} | {says} |"
        for part, mark in ((field, ""), (field.get("items"), "[]"), (field.get("additionalProperties"), "{}")):
            if isinstance(part, dict):
                limits = limits_of(part) if mark else ""
                if limits and "properties" not in part:
                    yield f"| `{path}{mark}` | {type_of(part)} |  | {limits} |  |"
                yield from field_rows(part, path + mark)


def rules_of(schema, above):
    """(path, message) of each rule of a schema and of the schemas in it."""
    for rule in schema.get("x-kubernetes-validations", []):
        yield above + rule.get("fieldPath", ""), rule.get("message", rule["rule"])
    for name, field in schema.get("properties", {}).items():
        yield from rules_of(field, f"{above}.{name}" if above else name)
        if "items" in field:
            yield from rules_of(field["items"], f"{above}.{name}[]" if above else f"{name}[]")


def crd_lines(crd):
    spec = crd["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        short = ", ".join(f"`{name}`" for name in names.get("shortNames", []))
        extra = f", short {short}" if short else ""
        yield f"\n## {names['kind']}\n"
        yield (f"`{spec['group']}/{version['name']}`, `{names['plural']}`{extra}; "
               f"{'in a namespace' if spec['scope'] == 'Namespaced' else 'of the cluster'}. "
               f"{' '.join(schema.get('description', '').split())}\n")
        yield "| field | type | default | limits | meaning |"
        yield "|---|---|---|---|---|"
        shown = {name: field for name, field in schema["properties"].items() if name not in ("apiVersion", "kind", "metadata")}
        yield from field_rows({"properties": shown, "required": schema.get("required", [])}, "")
        rules = list(rules_of(schema, ""))
        if rules:
            yield "\nRules:\n"
            yield from (f"- `{path or 'the object'}`: {' '.join(message.split())}" for path, message in rules)


def crds_page():
    lines = [f"# Fields of our kinds\n\nEach field of the CustomResourceDefinitions in `charts/tahoma/crds`, with AWS's own kinds of "
             f"`charts/tahoma/aws-crds` at the end; `kubectl explain` says the same. `[]` is an item of a list, `{{}}` a value of a map. {MADE}".rstrip()]
    for folder in ("crds", "aws-crds"):
        for file in sorted((ROOT / "charts/tahoma" / folder).glob("*.yaml")):
            lines += crd_lines(yaml.safe_load(file.read_text()))
    return "\n".join(lines) + "\n"


def errors_page():
    rows = sorted(set(ec2_rows()))
    problems = sorted(set(admin_rows()))
    lines = ["# Error codes\n", f"What clients test for. {MADE}", "## Kubernetes' API, standalone\n",
             "A failure is a `Status` with `code` and `reason` as Kubernetes has them; `message` and `details` say what is wrong.\n",
             "| code | reason |", "|---|---|", *(f"| {code} | `{reason}` |" for code, reason in kubernetes_rows()), "",
             "## The admin API\n",
             "A failure is a problem of RFC 9457 with `status` and `detail`; `code` says what is wrong with a request "
             "([admin-api.md](../formats/admin-api.md)). Of a code the message is one of several; `…` stands for a value.\n",
             "| HTTP | code | detail |", "|---|---|---|",
             *(f"| {status} | {code} | {message} |" for status, code, message in problems), "",
             "## EC2's API and the conditions of Capacity Blocks\n",
             "The message is one of those that the sources have for the code; `…` stands for a value. "
             "[ec2-api.md](../formats/ec2-api.md#errors) says how errors are sent.\n",
             "| code | HTTP | a message |", "|---|---|---|",
             *(f"| `{code}` | {status} | {message} |" for code, status, message in rows)]
    return "\n".join(lines) + "\n"


def differing(pages):
    return [name for name, text in pages.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text]


def main():
    pages = {"flags.md": flags_page(), "errors.md": errors_page(), "crds.md": crds_page()}
    if sys.argv[1:] == ["--write"]:
        for name, text in pages.items():
            (FOLDER / name).write_text(text)
        return 0
    if sys.argv[1:] == ["--self"]:
        planted = {name: text.replace("controller", "kontroller").replace("NotFound", "NotFond").replace("Gang", "Gong") for name, text in pages.items()}
        return 0 if sorted(differing(planted)) == sorted(pages) else 1
    wrong = differing(pages)
    for name in wrong:
        print(f"docs/reference/{name} differs from the code; tests/docs/reference.py --write mends it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
