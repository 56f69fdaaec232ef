#!/usr/bin/env python3
"""The repository's own rules, as a test: layers, cages, lengths, words, and calls that are banned in a folder.

    tests/tidy/tidy.py                    checks every file that git knows; prints each breach, status 1 if any
    tests/tidy/tidy.py --commits RANGE    checks the messages of commits, such as v1.0..HEAD
    tests/tidy/tidy.py --self             checks the checker: planted breaches must be found
    tests/tidy/tidy.py --shrink           takes off the lists of offenders what breaks a rule less or no more

Rules: ARCHITECTURE.md's include rule (LAYERS), third-party headers in their cages (CAGES), functions of at most
70 lines, files of at most 1,200, `#pragma once`, no clock, randomness, environment or sleep outside
lib/base and the programs' app folders, no lock but that of lib/base/mutex.h, no banned words in names, every
source named by its CMakeLists.txt, ARCHITECTURE.md's table of folders as LAYERS, every page and section of docs
that a comment, a page or a script cites is there.

Rules with a list of offenders (RATCHETS): pointing words in comments, comments that begin with What or Of, a type
name that has two definitions in its namespace, classes of many data members. An offender that is listed may not get
worse and leaves the list when it breaks the rule no more, so each list only shrinks. Commits since RULED_SINCE: a
subject `area/detail: what` of at most 72 columns, and a body.
"""

import collections
import pathlib
import posixpath
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 1200
COLUMNS_MAX = 100
POINTING_WORDS_MAX = 8.0  # per 100 words of comments, in files with POINTING_RULE_WORDS of them or more
POINTING_RULE_WORDS = 100
DATA_MEMBERS_MAX = 20
SUBJECT_COLUMNS_MAX = 72
RULED_SINCE = "8febec51d224d78a724ee9c72aec431e759cccdf"  # the last commit before messages were checked

# Folder -> folders it may include besides itself and lib/base; a folder of folders stands for all of them.
# Folders named `app` and tests are free.
LAYERS = {
    "lib/base": [],
    "lib/config": [],
    "lib/torus": [],
    "lib/hw": ["lib/torus"],
    "lib/driver": ["lib/hw"],
    "lib/numeric": [],
    "lib/isa": ["lib/numeric"],
    "lib/collective": ["lib/hw", "lib/torus"],
    "lib/wire": ["lib/driver"],
    "lib/kube": [],
    "lib/kube/cel": ["lib/kube/objects", "lib/kube"],
    "lib/kube/objects": ["lib/kube"],
    "lib/rest": [],
    "sim-node/emulator/engine": [],
    "sim-node/emulator/link": ["sim-node/emulator/engine", "lib/hw", "lib/torus"],
    "sim-node/emulator/flit": ["sim-node/emulator/link", "sim-node/emulator/engine", "lib/torus"],
    "sim-node/emulator/chip": ["sim-node/emulator/engine", "lib/hw"],
    "sim-node/emulator/core": ["sim-node/emulator/chip", "sim-node/emulator/engine", "lib/isa", "lib/numeric", "lib/hw"],
    "sim-node/emulator/collective/schedule": ["sim-node/emulator/link", "sim-node/emulator/engine", "lib/collective",
                                              "lib/numeric", "lib/torus"],
    "sim-node/emulator/collective/algorithms": ["sim-node/emulator/collective/schedule", "sim-node/emulator/link",
                                                "lib/collective", "lib/torus"],
    "sim-node/emulator/collective/plan": ["sim-node/emulator/collective/algorithms", "sim-node/emulator/collective/schedule",
                                          "sim-node/emulator/chip", "sim-node/emulator/link", "sim-node/emulator/engine",
                                          "lib/collective", "lib/torus"],
    "sim-node/emulator/collective/domains": ["sim-node/emulator/collective/plan", "sim-node/emulator/collective/algorithms",
                                             "sim-node/emulator/collective/schedule", "sim-node/emulator/link",
                                             "sim-node/emulator/engine", "lib/collective", "lib/torus"],
    "sim-node/emulator/machine": ["sim-node/emulator/core", "sim-node/emulator/collective", "sim-node/emulator/chip",
                                  "sim-node/emulator/link",
                                  "sim-node/emulator/engine", "lib/isa", "lib/numeric", "lib/hw", "lib/torus"],
    "sim-node/fidelity": ["sim-node/emulator", "lib/collective"],
    "sim-node/trace": ["sim-node/emulator", "sim-node/fidelity", "lib/collective", "lib/hw", "lib/config"],
    "sim-node/node": ["sim-node/emulator", "lib/driver", "lib/hw", "lib/torus"],
    "sim-node/participants": ["sim-node/node", "sim-node/emulator", "lib/numeric", "lib/torus"],
    "sim-node/serve": ["sim-node/participants", "sim-node/node", "sim-node/emulator", "lib/isa", "lib/rest", "lib/wire", "lib/hw",
                       "lib/torus"],
    "sim-node/podrunner": ["lib/rest", "lib/kube/objects", "lib/kube", "lib/wire"],
    # Nodes without processes of their own: what a pod runner and a dra-plugin publish, published for thousands.
    "sim-node/fleet": ["dra-plugin/slices", "dra-plugin/inventory", "sim-node/podrunner", "lib/kube/objects", "lib/kube",
                       "lib/wire", "lib/hw"],
    "sim-node/workload": ["lib/isa", "lib/numeric", "lib/wire", "lib/collective", "lib/hw", "lib/config"],
    "dra-plugin/inventory": ["lib/kube/objects", "lib/wire", "lib/driver", "lib/hw"],
    "dra-plugin/claims": ["lib/kube/objects", "lib/kube", "lib/wire", "lib/driver", "lib/hw"],
    "dra-plugin/slices": ["dra-plugin/claims", "dra-plugin/inventory", "lib/kube/objects", "lib/kube", "lib/wire", "lib/driver"],
    "dra-plugin/kubelet": ["dra-plugin/claims", "dra-plugin/inventory", "lib/wire"],
    "dra-plugin/run": ["lib/driver", "dra-plugin/kubelet", "dra-plugin/slices", "dra-plugin/claims", "dra-plugin/inventory", "lib/rest",
                       "lib/kube", "lib/wire"],
    "controller/model": ["lib/kube/objects", "lib/kube", "lib/driver", "lib/hw", "lib/torus"],
    "controller/plan": ["controller/allocate", "controller/model", "lib/kube/cel", "lib/kube/objects", "lib/collective", "lib/driver",
                        "lib/torus"],
    "controller/allocate": ["lib/kube/cel", "lib/kube/objects", "lib/kube"],
    "controller/reserve": ["controller/model", "lib/kube"],
    "controller/share": ["controller/model"],
    "controller/timeline": ["controller/plan", "controller/model"],
    "controller/core/journal": ["controller/reserve", "controller/plan", "controller/share", "controller/model", "lib/driver"],
    "controller/core/facts": ["controller/core/journal", "controller/reserve", "controller/plan", "controller/share", "controller/model",
                              "lib/kube/objects", "lib/kube"],
    "controller/core/writes": ["controller/core/facts", "controller/core/journal", "controller/share", "controller/reserve"],
    "controller/core/commit": ["controller/core/writes", "controller/core/facts", "controller/core/journal", "controller/plan",
                               "controller/share", "controller/model", "lib/kube"],
    "controller/core/blocks": ["controller/core/writes", "controller/core/facts", "controller/core/journal",
                               "controller/reserve", "controller/plan", "controller/model", "lib/kube"],
    "controller/core/queue": ["controller/core/blocks", "controller/core/commit", "controller/core/facts", "controller/core/journal", "controller/timeline", "controller/plan",
                              "controller/share", "controller/model"],
    "controller/core": ["controller/core/queue", "controller/core/blocks", "controller/core/commit", "controller/core/writes",
                        "controller/core/facts", "controller/core/journal", "controller/reserve", "controller/timeline", "controller/plan",
                        "controller/share", "controller/model"],
    "controller/core/forecast": ["controller/core", "controller/core/queue", "controller/core/blocks", "controller/core/facts", "controller/core/journal",
                                 "controller/timeline", "controller/plan", "controller/share", "controller/model"],
    "controller/replay": ["controller/core/forecast", "controller/core", "controller/plan", "controller/share", "controller/model",
                          "lib/config", "lib/hw"],
    "controller/store": ["controller/core/journal"],
    "controller/ingest": ["controller/core", "controller/core/facts", "controller/share", "controller/model", "lib/kube/objects", "lib/kube"],
    "controller/publish": ["controller/core", "controller/core/writes", "controller/core/facts", "controller/core/journal",
                           "controller/share", "controller/reserve", "controller/model", "lib/kube/objects", "lib/kube"],
    "controller/access": ["lib/rest", "lib/kube", "lib/config"],
    "controller/admin": ["controller/access", "controller/core/forecast", "controller/core", "controller/core/blocks", "controller/core/facts",
                         "controller/share", "controller/reserve", "controller/model", "lib/rest", "lib/kube"],
    "controller/ec2": ["controller/admin", "controller/access", "controller/core", "controller/core/blocks",
                       "controller/reserve", "controller/model", "lib/rest", "lib/kube", "lib/hw"],
    "controller/apiserver/schema": ["lib/kube/cel", "lib/kube"],
    "controller/apiserver/validation": ["controller/apiserver/schema", "controller/reserve", "controller/model",
                                        "lib/kube/cel", "lib/kube", "lib/driver"],
    "controller/apiserver/merge": ["controller/apiserver/schema", "lib/kube"],
    "controller/apiserver/printers": ["controller/apiserver/schema", "lib/kube"],
    "controller/apiserver/discovery": ["controller/apiserver/schema"],
    "controller/apiserver/protobuf": ["controller/apiserver/schema", "lib/kube"],
    "controller/apiserver/storage": ["controller/apiserver/merge", "controller/store", "lib/kube"],
    "controller/apiserver/request": ["controller/apiserver/storage", "controller/apiserver/protobuf",
                                     "controller/apiserver/printers", "controller/apiserver/merge",
                                     "controller/apiserver/schema", "lib/rest", "lib/kube"],
    "controller/apiserver/webhooks": ["controller/apiserver/request", "controller/apiserver/storage",
                                      "controller/apiserver/merge", "controller/apiserver/schema", "lib/kube/cel",
                                      "lib/kube"],
    "controller/apiserver/verbs": ["lib/rest", "controller/apiserver/webhooks", "controller/apiserver/request", "controller/apiserver/storage",
                                   "controller/apiserver/protobuf", "controller/apiserver/merge",
                                   "controller/apiserver/validation", "controller/apiserver/schema", "lib/kube"],
    "controller/apiserver/http": ["controller/apiserver/webhooks", "controller/apiserver/verbs", "controller/apiserver/request", "controller/apiserver/storage",
                                  "controller/apiserver/discovery", "controller/apiserver/schema", "controller/access",
                                  "controller/store", "lib/rest", "lib/kube"],
    "controller/apiserver/controllers/workloads": ["controller/apiserver/schema", "lib/kube/objects", "lib/kube"],
    "controller/apiserver/controllers": ["controller/apiserver/controllers/workloads", "controller/apiserver/storage", "controller/apiserver/schema", "lib/kube/objects",
                                         "lib/kube"],
    "controller/ctl": ["controller/ingest", "controller/core/facts", "controller/share", "controller/reserve", "controller/model", "lib/kube"],
    "controller/run": ["controller/admin", "controller/publish", "controller/ingest", "controller/store", "controller/core",
                       "controller/core/journal", "controller/reserve", "controller/plan", "lib/kube"],
    "controller/backup": ["controller/apiserver/storage", "controller/admin", "controller/store", "lib/kube", "lib/config"],
}

# Third-party header (regex on the include) -> folders that may name it; .cc only where marked.
CAGES = {
    r"^<rocksdb/": ["controller/store"],
    r"^<httplib\.h>": ["lib/kube"],
    r"^<yaml-cpp/": ["lib/config"],
    r"^<yaml\.h>": ["lib/kube"],
    r"^<grpc": ["dra-plugin/kubelet", "sim-node/podrunner"],
    r"^[<\"](?!google/).*\.pb\.h": ["dra-plugin/kubelet", "sim-node/podrunner"],
    r"^<google/protobuf/": ["controller/apiserver/protobuf"],
    r"^<CLI/": ["lib/config"],
    r"^<prometheus/": ["lib/rest"],
    r"^<wslay/": ["lib/rest"],
    r"^<zlib\.h>": ["controller/replay", "sim-node/podrunner"],
}
ONLY_IN_SOURCES = r"^<nlohmann/json\.hpp>|^\"lib/base/json\.h\"|^<httplib\.h>|^<grpcpp/|^<yaml-cpp/|^<yaml\.h>|^<CLI/"

# Calls that only lib/base and the app folders may make, and what to use instead.
BANNED_CALLS = {
    r"\bsystem_clock::now\b": "take a tahoma::Clock",
    r"\bsteady_clock::now\b": "take a tahoma::Clock",
    r"\brandom_device\b": "take a tahoma::Rng",
    r"\bgetenv\b|\bFromEnvironment\b": "take the value as an option",
    r"\bsleep_for\b|\busleep\b": "wait on what you wait for",
}
# Only lib/base/mutex.h may name these: clang does not check what they guard (docs/design/0017-mutex.md).
UNCHECKED_LOCKS = re.compile(r"\bstd::(?:\w*mutex|\w*lock_guard|scoped_lock|unique_lock|shared_lock|condition_variable\w*)\b"
                             r"|\babsl::(?:Mutex\w*|CondVar)\b|#\s*include <(?:mutex|shared_mutex|condition_variable)>")
# A reader of JSON costs each file that has one a second or two to compile. fields.cc looks at the depth while it reads.
OWN_JSON_READER = re.compile(r"(?<!\w)[Jj]son::parse\(")
MAY_READ_JSON = ("lib/base/json.cc", "lib/wire/fields.cc")
# A rate or a wait of the hardware stands once, in lib/hw, with its source; a flag's limit or a test's number is none.
HARDWARE_CONSTANT = re.compile(r"\bconstexpr\b[^;=]*\bk\w*(?:BytesPerSecond|EngineRate|DmaStart|HopTime|CommandTime|"
                               r"PacketCost|CcCores|EnginesOf\w+|LinkRate|NicRate|HbmBytes)\w*\s*=\s*[^;]*\d")
HARDWARE_FOLDERS = ("sim-node/", "lib/collective/", "controller/", "dra-plugin/")
BANNED_WORDS = re.compile(r"\b(?:class|struct|enum class)\s+\w*(Manager|Handler|Helper|Util|Utils|Common)\b")


def folder_of(path):
    """The longest folder of LAYERS that holds the file, or None."""
    best = None
    for folder in LAYERS:
        if path.startswith(folder + "/") and (best is None or len(folder) > len(best)):
            best = folder
    return best


def rooms_of(name):
    """The folders of LAYERS that a name stands for: itself, or those in it."""
    return [name] if name in LAYERS else [room for room in LAYERS if room.startswith(name + "/")]


def check_includes(path, lines):
    """Layers and cages. Yields (line number, what is wrong)."""
    folder = folder_of(path)
    free = "/app/" in path or path.startswith("tests/")
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+([<"][^>"]+[>"])', line)
        if not match:
            continue
        target = match[1]
        in_tests = path.startswith("tests/")
        for cage, folders in CAGES.items():
            if re.search(cage, target) and folder not in folders and not in_tests:
                yield number, f"{target} may be included only in {', '.join(folders)}"
        own = path == "lib/base/json.h"  # what the others include in the library's place
        if path.endswith(".h") and not in_tests and not own and re.search(ONLY_IN_SOURCES, target):
            yield number, f"{target} may be included only in .cc files"
        layer = folder_of(target.strip('"<>'))
        if free or folder is None or layer is None or target.startswith("<"):
            continue
        if not any(layer in rooms_of(name) for name in (folder, "lib/base", *LAYERS[folder])):
            yield number, f"{folder} may not include {layer}"


def check_lengths(path, lines):
    if len(lines) > FILE_LINES_MAX:
        yield 1, f"{len(lines)} lines; a file has at most {FILE_LINES_MAX}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns; a line has at most {COLUMNS_MAX}"
    start = None
    for number, line in enumerate(lines, 1):
        # Google style: a definition at namespace or class level opens with "{" at the end of a line
        # indented by 0 or 2 and closes with "}" at the same depth.
        if start is None and re.match(r"( {2})?[\w~:<].*\)[^;=]*\{$", line) and not re.match(
                r" *(namespace|class|struct|enum|union)\b", line):
            start = (number, len(line) - len(line.lstrip()))
        elif start is None and re.match(r"( {4,}).*\)[^;=]*\{$", line) and number > 1:
            back = number - 2  # a signature over several lines: find where it begins
            while back >= 0 and lines[back].startswith("    "):
                back -= 1
            if back >= 0 and re.match(r"( {2})?[\w~:<].*\($|( {2})?[\w~:<].*\(.*,$", lines[back]):
                start = (back + 1, len(lines[back]) - len(lines[back].lstrip()))
        if start and line.startswith(" " * start[1] + "}"):
            length = number - start[0] + 1
            if length > FUNCTION_LINES_MAX:
                yield start[0], f"function of {length} lines; at most {FUNCTION_LINES_MAX}"
            start = None


def check_words(path, lines):
    free = "/app/" in path or path.startswith(("lib/base/", "tests/"))
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        for call, instead in BANNED_CALLS.items():
            if not free and re.search(call, code):
                yield number, f"{re.search(call, code)[0]}: {instead}"
        if not path.startswith(("lib/base/mutex.h", "tests/")) and (match := UNCHECKED_LOCKS.search(code)):
            yield number, f"{match[0]}: take Mutex, MutexLock or CondVar of lib/base/mutex.h"
        if path not in MAY_READ_JSON and (match := OWN_JSON_READER.search(code)):
            yield number, f"{match[0]}): take ParseJson or TryParseJson of lib/base/json.h"
        if path.startswith(HARDWARE_FOLDERS) and HARDWARE_CONSTANT.search(code) and "hw::" not in code:
            yield number, "a constant of the hardware stands in lib/hw, with its source"
        if match := BANNED_WORDS.search(code):
            yield number, f"the word {match[1]} says nothing in a name"
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield number, "unfinished work is said in an issue, not in a comment"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield 1, "a header begins with its description and #pragma once"


def check_file(path, text):
    lines = text.splitlines()
    for check in (check_includes, check_lengths, check_words):
        yield from check(path, lines)


def check_registered(paths):
    """Every source is named by the CMakeLists.txt of its folder or of one above it."""
    for path in paths:
        if not path.endswith(".cc"):
            continue
        place = pathlib.Path(path)
        for above in place.parents:
            lists = ROOT / above / "CMakeLists.txt"
            if lists.exists() and place.relative_to(above).as_posix() in lists.read_text():
                break
        else:
            yield path, 1, "no CMakeLists.txt names this file"


def layer_named(name, folder):
    """The folder that a row of ARCHITECTURE.md means by a name: the nearest beside its own or above, or one of lib."""
    beside = [f"{above}/{name}" for above in pathlib.PurePath(folder).parents if above.name]
    for candidate in (*beside, f"lib/{name}", name):
        if rooms_of(candidate):
            return candidate
    return name


def check_architecture(text):
    """ARCHITECTURE.md's table of folders says what LAYERS says."""
    missing = set(LAYERS)
    for number, line in enumerate(text.splitlines(), 1):
        row = re.match(r"\| `([\w/-]+)` \| .* \| ([^|]*) \|$", line)
        if not row or row[1] not in LAYERS:
            continue
        folder = row[1]
        missing.discard(folder)
        told = {layer_named(name, folder) for name in row[2].split(", ") if name != "–"}
        for name in sorted(told ^ set(LAYERS[folder])):
            yield "ARCHITECTURE.md", number, f"the table and tests/tidy/tidy.py differ on whether {folder} may include {name}"
    for folder in sorted(missing):
        yield "ARCHITECTURE.md", 1, f"the table of folders lacks {folder}"


# A page, docs/helm.md#values, or a folder; further sections of the page may follow: ", #upgrade".
CITATION = re.compile(r"(?<![\w/.])(docs/[\w/-]+(?:\.md)?)(#[\w-]+(?:,[\s/]+#[\w-]+)*)?")
MARKDOWN_LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"`[^`\n]*`")  # an expression in it may look like a link
UNNAMED_PAGE = re.compile(r"\b[Rr]eference[:] (?!docs/)|\bDESIGN" r"\b")


def sections_of(text):
    """The anchors of a page's headings, as GitHub makes them."""
    seen = collections.Counter()
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors


def check_citations(path, text, pages):
    """Every cited page is in `pages`: path -> the text of a file, None of a folder or a file that is no page."""
    cited = [(match.start(), match[1].rstrip("/"), re.findall(r"[\w-]+", match[2] or "")) for match in CITATION.finditer(text)]
    if path.endswith(".md"):
        for match in MARKDOWN_LINK.finditer(CODE_SPAN.sub(lambda span: " " * len(span[0]), text)):
            target, _, section = match[1].partition("#")
            if re.match(r"\w+:", match[1]):
                continue
            folder = pathlib.PurePosixPath(path).parent
            target = posixpath.normpath(folder / target) if target else path
            cited.append((match.start(), target, [section] if section else []))
    elif path.endswith((".h", ".cc", ".py", ".cmake")):
        for match in UNNAMED_PAGE.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, f"{match[0]!r}: a citation names a page of docs and its section"
    for start, page, sections in cited:
        number = text.count("\n", 0, start) + 1
        if page not in pages:
            yield number, f"{page} does not exist"
        else:
            for section in set(sections) - sections_of(pages[page] or ""):
                yield number, f"{page} has no section #{section}"


POINTING = re.compile(r"\b(?:it|its|that|those|they|them|ones?|others|what|which|who|whose|so)\b", re.IGNORECASE)
COMMENT = re.compile(r"(?:^|\s)//+(.*)")
NAMELESS_BEGINNING = re.compile(r"\s*(?:What|Of)\b")
TYPE = re.compile(r"(class|struct|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: : [^;{]*)?(?=[ \n]*\{)")
DATA_MEMBER = re.compile(r"  (?!static\b|using\b|return\b)\w.*\b\w+_(?: ABSL_\w+\(\w+\))?(?:;|\{.*\};| = .*;| =)(?: +//.*)?$")


def pointing_words(text):
    """The file's pointing words per 100 words of comments; None where it has few comments."""
    said = " ".join(match[1] for line in text.splitlines() if (match := COMMENT.search(line)))
    words = len(re.findall(r"[A-Za-z][\w'-]*", said))
    return round(100 * len(POINTING.findall(said)) / words, 1) if words >= POINTING_RULE_WORDS else None


def nameless_comments(text):
    """How many comments begin with What or Of."""
    count, inside = 0, False
    for line in text.splitlines():
        match = COMMENT.search(line)
        goes_on = inside and line.lstrip().startswith("//")
        if match and not goes_on and NAMELESS_BEGINNING.match(match[1]):
            count += 1
        inside = bool(match and match[1].strip())  # an empty line of a comment ends a paragraph
    return count


def defined_types(text):
    """(class or struct or …, namespace, name, body) of each type at namespace level; an anonymous namespace is the one around it."""
    namespaces = []
    for match in re.finditer(r"^(?:namespace ([\w:]*) ?\{$|(\})  // namespace.*|" + TYPE.pattern + ")", text, re.MULTILINE):
        if match[2]:
            namespaces = namespaces[:-1]
        elif match[3]:
            one_line = re.compile(r" *\{.*\};$", re.MULTILINE).match(text, match.end())
            end = one_line or re.compile(r"^\}", re.MULTILINE).search(text, match.end())
            yield match[3], "::".join(filter(None, namespaces)), match[4], text[match.end():end.start() if end else None]
        else:
            namespaces.append(match[1])


def many_members(text):
    """(class, its data members) of each class at namespace level."""
    for kind, namespace, name, body in defined_types(text):
        if kind == "class":
            yield f"{namespace}::{name}", len([line for line in body.splitlines() if DATA_MEMBER.match(line)])


def figures_of(texts):
    """Path or name -> figure of each offender, for each rule that has a list of them."""
    figures = {rule: {} for rule in RATCHETS}
    defined = collections.Counter()
    for path, text in texts.items():
        figures["pointing.txt"][path] = pointing_words(text) or 0
        figures["beginnings.txt"][path] = nameless_comments(text)
        if path.startswith("tests/"):
            continue
        defined.update(f"{namespace}::{name}" for _, namespace, name, _ in defined_types(text))
        for name, members in many_members(text):
            figures["members.txt"][name] = max(members, figures["members.txt"].get(name, 0))
    figures["type_names.txt"] = dict(defined)
    return {rule: {key: figure for key, figure in figures[rule].items() if figure > most}
            for rule, (most, _) in RATCHETS.items()}


# List of offenders -> (the figure that is allowed elsewhere, what the figure says).
RATCHETS = {
    "pointing.txt": (POINTING_WORDS_MAX, "pointing words (it, that, which, one, …) in 100 words of comments"),
    "beginnings.txt": (0, "comments that begin with What or Of"),
    "type_names.txt": (1, "types of this name in its namespace, those of .cc files counted"),
    "members.txt": (DATA_MEMBERS_MAX, "data members"),
}


def check_ratchet(rule, today, listed):
    """Compares today's offenders (key -> figure) with the list; the list may only shrink."""
    most, meaning = RATCHETS[rule]
    for key, figure in sorted(today.items()):
        allowed = listed.get(key, most)
        if figure > allowed:
            yield key, 1, f"{figure:g} {meaning}; at most {allowed:g}"
    for key in sorted(listed.keys() - today.keys()):
        yield f"tests/tidy/{rule}", 1, f"{key} breaks the rule no more: take it off (--shrink)"


def read_list(rule):
    lines = (ROOT / "tests/tidy" / rule).read_text().splitlines()
    return {key: float(figure) for key, figure in (line.rsplit(" ", 1) for line in lines)}


def check_message(message):
    """Yields what is wrong with a commit's message."""
    subject, _, body = message.strip().partition("\n")
    if subject.startswith("Merge "):
        return
    if len(subject) > SUBJECT_COLUMNS_MAX:
        yield f"a subject of {len(subject)} columns; at most {SUBJECT_COLUMNS_MAX}"
    if not re.match(r"[\w.-]+(?:/[\w.-]+)+: \S", subject):
        yield "a subject says one area: `area/detail: what`"
    if not body.strip():
        yield "a message has a body: what was before, why, what is after"


def check_commits(commits):
    """Prints what is wrong with the messages of a range; a copy without the history has none."""
    git = ["git", "-C", ROOT]
    begin = commits.partition("..")[0]
    if subprocess.run([*git, "cat-file", "-e", f"{begin}^{{commit}}"], capture_output=True).returncode:
        print(f"commits are not checked: {begin} is not in this copy's history")
        return 0
    log = subprocess.run([*git, "log", "--format=%h%n%B%x00", commits], check=True, capture_output=True, text=True).stdout
    messages = [entry.strip().partition("\n") for entry in log.split("\0") if entry.strip()]
    breaches = [(name, what) for name, _, message in messages for what in check_message(message)]
    for name, what in breaches:
        print(f"commit {name}: {what}")
    print(f"{len(messages)} commits, {len(breaches)} breaches")
    return 1 if breaches else 0


def known_files():
    """Every file that git knows."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"], check=True,
                            capture_output=True, text=True).stdout.splitlines()
    return [p for p in listed if (ROOT / p).is_file()]


def check_all_citations(files):
    pages = {path: (ROOT / path).read_text() if path.endswith(".md") else None for path in files}
    pages.update({str(above): None for path in files for above in pathlib.PurePosixPath(path).parents})
    for path in files:
        if path.startswith(("tests/golden/", "tests/fuzz/corpus/")) or path == "LICENSE":
            continue
        text = (ROOT / path).read_text(errors="replace")
        yield from ((path, number, what) for number, what in check_citations(path, text, pages))


def check_self_citations():
    """(planted breaches that were not found, clean texts in which one was found)"""
    docs = "do" "cs/"  # split, so that this file cites none of them
    pages = {docs + "a.md": "# One\n\n## Two words, and `code`\n\n## One\n", docs + "b": None, "c.md": "## Three\n"}
    wrong = {
        "x.h": f"// ({docs}none.md)\n",
        "y.cc": f"// {docs}a.md#three\n",
        "z.py": f"# {docs}a.md#one, #three\n",
        "wrapped.h": f"// {docs}a.md#one,\n// #three\n",
        "u.h": "// (refer" "ence: torus-and-links 2.2)\n",
        "v.h": "// DESIG" "N D8\n",
        "w.md": f"[a]({docs}none.md)\n",
        docs + "v.md": "[c](../c.md#four)\n",
        "t.md": "[here](#nowhere), [`code`](#nowhere)\n",
        "s.sh": f"# {docs}folder\n",
    }
    right = {
        "x.h": f"// {docs}a.md#one, #one-1; {docs}b/ says more, {docs}a.md#two-words-and-code.\n",
        docs + "a.md": "[c](../c.md#three), [here](#one), [there](https://example.com/docs/none.md#x), `[a](none)`\n",
        "y.py": f"for reference : in f: print('http://host/{docs}none.md')\n",
    }
    pages["x.h"] = None
    return ([f"{path}, a citation" for path, text in wrong.items() if not list(check_citations(path, text, pages))],
            [f"{path}, a citation" for path, text in right.items() if list(check_citations(path, text, pages))])


def check_self_words():
    """(planted breaches that were not found, clean texts in which one was found), of the rules with lists and of messages"""
    few = "// A node has chips and links.\n" * 20
    members = "".join(f"  int a{i}_ = {i};\n" for i in range(20)) + "  A b_ ABSL_GUARDED_BY(mutex_);  // shared\n"
    planted = {
        "pointing.txt": few + "// It is what they say of those that it has.\n" * 2,
        "beginnings.txt": "int a;\n// What a node has.\nint b;  // Of a node.\n//\n// Of links.\n",
        "type_names.txt": "namespace a {\nnamespace {\nclass B final : public C {\n};\n}  // namespace\nstruct B {\n};\n}  // namespace a\n",
        "members.txt": f"namespace a {{\nclass B {{\n  int F() {{ return x_; }}\n{members}}};\n}}  // namespace a\n",
    }
    expected = {"pointing.txt": ("lib/a.cc", 8.6), "beginnings.txt": ("lib/a.cc", 3), "type_names.txt": ("a::B", 2),
                "members.txt": ("a::B", 21)}
    missed = [rule for rule, text in planted.items()
              if figures_of({"lib/a.cc": text})[rule] != dict([expected[rule]])]
    clean = {"lib/a.cc": few + "// A unit, one of many.\n// What goes on in a line is no beginning.\nnamespace a {\nclass B;\nclass B {\n"
                         f"{members[:members.rindex('  A')]}}};\n}}  // namespace a\nnamespace b {{\nclass B {{\n}};\n}}  // namespace b\n"}
    wrong = [rule for rule, found in figures_of(clean).items() if found]
    for today, listed, breaches in (({"a": 9}, {}, 1), ({"a": 9.1}, {"a": 9}, 1), ({}, {"a": 9}, 1), ({"a": 9}, {"a": 9}, 0),
                                    ({"a": 8.5}, {"a": 9}, 0)):
        found = len(list(check_ratchet("pointing.txt", today, listed)))
        if found != breaches:
            (missed if found < breaches else wrong).append(f"{today} and the list {listed}")
    for message, breaches in (("a/b: c\n\nWhy.\n", 0), ("Merge branch 'x'\n", 0), ("a/b: c\n", 1), ("a: c\n\nWhy.\n", 1),
                              ("a/b, c/d: e\n\nWhy.\n", 1), ("a/b: " + "c" * 68 + "\n\nWhy.\n", 1)):
        found = len(list(check_message(message)))
        if found != breaches:
            (missed if found < breaches else wrong).append(f"the message {message!r}")
    return missed, wrong


def check_self():
    """Each planted breach must be found, and clean text must pass."""
    body = "\n".join(["  f();"] * 71)
    planted = {
        "controller/plan/a.cc": '#include "controller/core/x.h"\n',
        "lib/torus/b.cc": '#include "lib/hw/x.h"\n',
        "lib/kube/c.cc": "#include <rocksdb/db.h>\n",
        "lib/kube/d.h": "#pragma once\n#include <nlohmann/json.hpp>\n",
        "lib/kube/j.h": '#pragma once\n#include "lib/base/json.h"\n',
        "lib/kube/e.cc": f"void F() {{\n{body}\n}}\n",
        "lib/kube/f.cc": "x\n" * 1201,
        "lib/kube/g.cc": "auto t = std::chrono::system_clock::now();\n",
        "lib/kube/h.h": "// no pragma\n",
        "lib/kube/i.cc": "class PodManager {};\n",
        "lib/kube/j.cc": f"void F(int a,\n       int b) {{\n{body}\n}}\n",
        "sim-node/node/k.cc": '#include "sim-node/serve/x.h"\n',
        "lib/kube/l.cc": "// TO" "DO: later\n",
        "lib/kube/n.cc": "const std::lock_guard lock(mutex_);\n",
        "lib/kube/o.cc": "std::unique_lock<std::mutex> lock;\n",
        "lib/kube/p.h": "#pragma once\nstd::condition_variable changed_;\n",
        "controller/app/q.cc": "#include <mutex>\n",
        "controller/app/r.cc": "absl::Mutex mutex_;\n",
        "sim-node/emulator/chip/t.h": "#pragma once\ninline constexpr std::uint64_t kHbmBytesPerSecond = 2'900'000;\n",
        "tests/unit/s.cc": "const Json pod = Json::parse(text);\n",
        "lib/kube/m.cc": f"class A {{\n  void F() {{\n{body}\n  }}\n}};\n",
    }
    missed = [path for path, text in planted.items() if not list(check_file(path, text))]
    clean = {
        "lib/base/mutex.h": "#pragma once\n#include <mutex>\nstd::mutex mutex_;\n",
        "tests/unit/a.cc": "std::mutex mutex;\nconst auto answer = ordered_json::parse(text);\n",
        "lib/base/json.h": "#pragma once\n#include <nlohmann/json.hpp>\n",
        "controller/app/a.cc": '#include "controller/apiserver/x.h"\nauto t = std::chrono::system_clock::now();\n',
        "controller/plan/b.cc": '#include "lib/torus/x.h"\n#include "lib/base/status.h"\nvoid F() {\n  f();\n}\n',
    }
    wrong = [path for path, text in clean.items() if list(check_file(path, text))]
    rows = {folder: f"| `{folder}` | what | {', '.join(layers) or '–'} |" for folder, layers in LAYERS.items()}
    if list(check_architecture("\n".join(rows.values()))):
        wrong.append("ARCHITECTURE.md")
    for change in ("| `lib/torus` | what | hw |", "| `lib/torus` | what | x |", ""):
        if not list(check_architecture("\n".join({**rows, "lib/torus": change}.values()))):
            missed.append(f"ARCHITECTURE.md with {change!r}")
    for more_missed, more_wrong in (check_self_citations(), check_self_words()):
        missed += more_missed
        wrong += more_wrong
    for path in missed:
        print(f"{path}: the planted breach was not found")
    for path in wrong:
        print(f"{path}: a breach was found where there is none")
    return 1 if missed or wrong else 0


def main():
    if sys.argv[1:] == ["--self"]:
        return check_self()
    if sys.argv[1:2] == ["--commits"]:
        return check_commits(sys.argv[2] if len(sys.argv) > 2 else f"{RULED_SINCE}..HEAD")
    files = known_files()
    paths = [path for path in files if path.endswith((".h", ".cc"))]
    texts = {path: (ROOT / path).read_text() for path in paths}
    figures = figures_of(texts)
    if sys.argv[1:] == ["--shrink"]:
        for rule, today in figures.items():
            left = {key: min(figure, today[key]) for key, figure in read_list(rule).items() if key in today}
            (ROOT / "tests/tidy" / rule).write_text("".join(f"{key} {figure:g}\n" for key, figure in sorted(left.items())))
    breaches = [(path, number, what) for path, text in texts.items() for number, what in check_file(path, text)]
    for rule, today in figures.items():
        breaches += check_ratchet(rule, today, read_list(rule))
    breaches += check_registered(paths)
    breaches += check_architecture((ROOT / "ARCHITECTURE.md").read_text())
    breaches += check_all_citations(files)
    for path, number, what in breaches:
        print(f"{path}:{number}: {what}")
    print(f"{len(paths)} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
