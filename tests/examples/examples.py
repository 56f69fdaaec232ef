#!/usr/bin/env python3
"""The examples in the comments that headers begin with, as C++ for a compiler.

    examples.py write OUT.cc GIVEN.txt HEADER…    makes the source in which the headers' examples stand
    examples.py check HEADERS.txt COMPILER        checks that HEADERS.txt, a header a line, lacks no header with an
                                                  example, and this program: planted mistakes must be found
    examples.py drop                              removes the examples that nobody needs, and the names given for them

Only a header that is used outside of its folder needs an example: by a source or header of another folder, tests apart.
An example is a block of a header's first comment that is indented by three spaces or more and stands between
empty lines. It is C++, unless the sentence before it ends in a colon: then it is a table, a picture, or text
of another language. `…` in it stands for what is left out, and compiles as `{}`: a statement that does nothing,
or the empty value of a member.

An example with a function or a test of its own stands at namespace scope, any other one is the body of a function.
Both are in the header's namespace. The names that it uses and does not declare are declared in GIVEN.txt:

    lib/kube/object.h
      #include "lib/base/json.h"
      const Json& pod
      void Tell(const std::string& news)
      struct Peer { int id; }

A compiler's errors name the line of the header, or of GIVEN.txt.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GIVEN = ROOT / "tests/examples/given"
FOLDERS = ("lib/", "sim-node/", "dra-plugin/", "controller/", "tests/support/", "tests/sim/")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

PRELUDE = """\
#include <chrono>

namespace header_examples {
// Takes what an example returns, whatever it is.
struct Returned {
  Returned() = default;
  template <typename T>
  Returned(T&&) {}
};
}  // namespace header_examples

using namespace std::chrono_literals;
"""


class Mistake(Exception):
    """A line that breaks a rule: "path:line: why"."""


def mistake(path, number, why):
    return Mistake(f"{path}:{number}: {why}")


def without_strings_and_comments(line):
    line = re.sub(r'R"\(.*?\)"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'', '""', line)
    return line.split("//")[0].rstrip()


def blocks_of(text):
    """The indented blocks of the comment that a header begins with: [(the sentence before, [(number, line)])]."""
    comment = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        comment.append(line[2:])
    blocks, sentence, in_block, before = [], "", False, ""
    for number, line in enumerate(comment, 1):
        if line.startswith("   ") and (in_block or not before):
            if not in_block:
                blocks.append((sentence, []))
            in_block = True
            filled = blocks[-1][1]
            filled += [(n, "") for n in range(filled[-1][0] + 1 if filled else number, number)]
            filled.append((number, line))
        elif line.strip():
            sentence, in_block = line.strip(), False
        before = line.strip()
    return blocks


def examples_of(path, text):
    """The lines of a header's C++ examples: [(number, line)]."""
    lines = []
    for prose, block in blocks_of(text):
        if not prose.endswith(":"):
            lines += block
        else:
            for number, line in block:
                if without_strings_and_comments(line).endswith(";"):
                    raise mistake(path, number, "looks like C++, but what follows a colon is not compiled; "
                                  "end the sentence before it with a full stop")
    return lines


# A function or a test, as opposed to statements.
DEFINITION = re.compile(r"   (?!(?:if|for|while|switch|else|do|return)\b)(TEST\w*\(|[\w:<>,&*]+(?: [\w:<>,&*]+)* \w+\()"
                        r".*\)(?: const)? \{(?: .*\})?$")


def code_of(line):
    """The line without its `…`, which in strings and comments are left as they are."""
    parts = re.split(r'("(?:\\.|[^"\\])*"|//.*)', line)
    return "".join(part if at % 2 else part.replace("…", "{}") for at, part in enumerate(parts))


TYPE = re.compile(r"(?:struct|class|enum|using) ")


def namespace_of(text):
    """The namespace that a header ends with; "" when it has none."""
    ends = re.findall(r"^}  // namespace ([\w:]+)$", text, re.MULTILINE)
    return ends[-1] if ends else ""


def given_in(path):
    """header -> (the number of its line, [(number, an #include or a declaration)])."""
    given, header = {}, None
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("//"):
            continue
        if not line.startswith(" "):
            header = line.strip()
            if header in given:
                raise mistake(path, number, f"{header} is there twice")
            given[header] = (number, [])
        elif header is None:
            raise mistake(path, number, "a declaration follows the header whose example uses it")
        else:
            given[header][1].append((number, line.strip().rstrip(";")))
    return given


def name_of(declaration):
    """The name that `struct Peer { int id; }`, `const Json& pod` or `void Tell(const News& news)` declares."""
    if TYPE.match(declaration):
        return re.match(r"(?:enum class|\w+) (\w+)", declaration)[1]
    while "<" in declaration:
        declaration = re.sub(r"<[^<>]*>", "", declaration)
    function = re.match(r"[^(]*?\b(\w+)\(", declaration)
    return function[1] if function else re.findall(r"\w+", declaration)[-1]


def words_of(lines):
    return set(re.findall(r"\w+", "\n".join(lines)))


def line_of(number, path):
    """The directive by which a compiler's errors name that line, in a file that is there."""
    where = ROOT / path
    return f'#line {number} "{os.path.relpath(where) if where.exists() else path}"\n'


def source_of(headers, texts, given, given_path):
    """The source with the examples of the headers, whose texts are `texts`."""
    includes, bodies = [], []
    for header in headers:
        text = texts[header]
        lines = examples_of(header, text)
        if not lines:
            continue
        includes.append(f'#include "{header}"\n')
        types, names = [], []
        words = words_of(without_strings_and_comments(line) for _, line in lines)
        for number, line in given.get(header, (0, []))[1]:
            if line.startswith("#include"):
                includes.append(line_of(number, given_path) + line + "\n")
                continue
            if name_of(line) not in words | words_of(other for _, other in given[header][1] if other != line):
                raise mistake(given_path, number, f"the example of {header} does not use {name_of(line)}")
            (types if TYPE.match(line) else names).append(line_of(number, given_path) + line)
        bodies.append(body_of(header, namespace_of(text), lines, types, names, len(bodies)))
    if any("TAHOMA_" in body for body in bodies):
        includes.append('#include "lib/base/status.h"\n')
    return "".join(includes) + PRELUDE + "".join(bodies)


def body_of(header, namespace, lines, types, names, place):
    """The example in its namespace, after the given types; the given names are parameters where that is possible."""
    text = line_of(lines[0][0], header)
    for at, (number, line) in enumerate(lines):
        if at and number != lines[at - 1][0] + 1:
            text += line_of(number, header)
        text += "  " + code_of(line) + "\n"
    if any(DEFINITION.match(without_strings_and_comments(line)) for _, line in lines):
        inside = "".join(name.replace("\n", "\nextern ") + ";\n" for name in names) + text
    else:
        returns = re.search(r"\breturn (?!;)|TAHOMA_RETURN|TAHOMA_ASSIGN", text)
        result, end = ("::header_examples::Returned", "return {};\n") if returns else ("void", "")
        inside = f"namespace {{\n{result} Example(\n" + ",\n".join(names) + f") {{\n{text}{end}}}\n}}\n"
    inside = f"namespace Example{place} {{\n" + "".join(kind + ";\n" for kind in types) + inside + "}\n"
    return f"\nnamespace {namespace} {{\n{inside}}}\n" if namespace else f"\n{inside}"


def write(out, given_path, headers):
    given_path = os.path.relpath(given_path, ROOT)
    headers = [os.path.relpath(header, ROOT) for header in headers]
    texts = {header: (ROOT / header).read_text() for header in headers}
    pathlib.Path(out).write_text(source_of(headers, texts, given_in(given_path), given_path))


def without_examples(path, text):
    """The text of a header without its C++ examples."""
    lines = text.splitlines(keepends=True)
    gone = set()
    for prose, block in blocks_of(text):
        if prose.endswith(":"):
            continue
        first, last = block[0][0], block[-1][0]
        after_blank = last < len(lines) and lines[last].strip() == "//"
        gone |= set(range(first, last + 2)) if after_blank else set(range(first - 1, last + 1))
    kept = "".join(line for number, line in enumerate(lines, 1) if number not in gone)
    if examples_of(path, kept):
        raise mistake(path, 1, "its example could not be removed")
    return kept


def used_outside(texts):
    """The headers that a file of another folder includes; files of tests count for headers of tests only."""
    return {header for path, text in texts.items() for header in INCLUDE.findall(text)
            if os.path.dirname(header) != os.path.dirname(path)
            and (header.startswith("tests/") or not path.startswith("tests/"))}


def without_given(text, headers):
    """The text of a file of given names without what is given for these headers."""
    kept, drop = [], False
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.startswith((" ", "//")):
            drop = line.strip() in headers
        if not drop:
            kept.append(line)
    return "".join(kept)


def known_texts():
    """Every source and header that git knows: path -> text."""
    known = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.h", "*.cc"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return {path: (ROOT / path).read_text() for path in known if (ROOT / path).is_file()}


def needless(texts):
    """The headers whose example nobody needs."""
    used = used_outside(texts)
    return {path for path, text in texts.items() if path.endswith(".h") and path.startswith(FOLDERS)
            and path not in used and examples_of(path, text)}


def drop():
    texts = known_texts()
    headers = needless(texts)
    for header in headers:
        (ROOT / header).write_text(without_examples(header, texts[header]))
    for given in GIVEN.glob("*.txt"):
        given.write_text(without_given(given.read_text(), headers))
    print(f"{len(headers)} headers")


def check(listed):
    """Prints what is missing among the compiled headers or superfluous in the files of given names."""
    compiled = {os.path.relpath(line, ROOT) for line in pathlib.Path(listed).read_text().split()}
    texts = known_texts()
    with_example = {path for path, text in texts.items() if path.endswith(".h") and path.startswith(FOLDERS)
                    and examples_of(path, text)}
    wrong = [f"{path}:1: its example is not compiled, as no library of CMake names it among its HDRS"
             for path in sorted(with_example - compiled)]
    wrong += [f"{path}:1: no other folder includes it, so that it needs no example; `examples.py drop` removes it"
              for path in sorted(needless(texts))]
    for given_path in (os.path.relpath(path, ROOT) for path in sorted(GIVEN.glob("*.txt"))):
        for header, (number, _) in given_in(given_path).items():
            if header not in with_example:
                wrong.append(f"{given_path}:{number}: {header} has no example in C++, or is gone")
    print("\n".join([*wrong, f"{len(with_example)} headers with an example in C++"]))
    return 1 if wrong else 0


def planted(example, given=(), first="Adds.", code="int Add(int a, int b);"):
    """(the text of a header with that example, the names given for it)"""
    lines = ["", *example.split("\n"), ""]
    comment = "".join(f"//   {line}\n" if line else "//\n" for line in lines)
    return f"// {first}\n{comment}// Thread safety: pure.\n\n#pragma once\n{code}\n", list(given)


# An example -> the line of its header that a compiler must complain about.
WRONG = {
    planted("Sum(1, 2);")[0]: 3,
    planted("Add(1, first);")[0]: 3,
    planted("Add(1, 2)    // 3\nAdd(2, 2);")[0]: 3,
    planted("Add(1, 2);\n\nAdd(1);")[0]: 5,
    planted("int Next() {\n  return Sum(1, 2);\n}")[0]: 4,
}
RIGHT = [
    planted("const int sum = Add(1, two);    // …\nif (sum > 3) …", ["int two"],
            code="namespace a {\nint Add(int a, int b);\n}  // namespace a"),
    planted("if (Add(1, 2) > 2) return 5ms;\n\nreturn \"…\";"),
    planted("int Next() { return Add(more, peer.id); }", ["int more", "struct Peer { int id; }", "Peer peer"]),
    planted("one  the first; the last\n  of all", first="Numbers. They are:"),
    planted("Add(1, 2);", first="A list:\n// - with\n//   a part; that is no example\n//\n// Adds."),
]
REFUSED = [  # by this program itself
    planted("Add(1, 2);", first="Adds numbers:"),
    planted("Add(1, 2);    // sum", ["int sum"]),
    planted("Add(1, 2);", ["struct Peer { int id; }"]),
]


def planted_source(text, given):
    return source_of(["a.h"], {"a.h": text}, {"a.h": (1, list(enumerate(given, 2)))}, "given.txt")


def complaint(compiler, text, given):
    """What the compiler says of the example in a header of that text; "" when it takes it."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a.h").write_text(text)
        flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-Wunused-parameter", "-fsyntax-only"]
        done = subprocess.run([compiler, *flags, "-I", folder, "-x", "c++", "-"], input=planted_source(text, given),
                              capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
        return done.stderr if done.returncode else ""


def check_self(compiler):
    """Prints which planted mistakes were not found, and which right examples were refused."""
    wrong = []
    for text, line in WRONG.items():
        said = complaint(compiler, text, [])
        if not re.search(rf"^a\.h:{line}:.*error", said, re.MULTILINE):
            wrong.append(f"no error in line {line} of\n{text}{said}")
    for text, given in RIGHT:
        if said := complaint(compiler, text, given):
            wrong.append(f"refused:\n{text}{said}")
    for text, given in REFUSED:
        try:
            planted_source(text, given)
            wrong.append(f"not refused:\n{text}")
        except Mistake:
            pass
    wrong += check_self_drop()
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def check_self_drop():
    """What examples.py drop would do wrong with planted headers."""
    wrong = []
    for text, kept in {
        planted("Add(1, 2);")[0]: "// Adds.\n//\n// Thread safety: pure.\n\n#pragma once\nint Add(int a, int b);\n",
        "// Adds.\n//\n//   Add(1);\n//\n//   Add(2);\n\nint x;\n": "// Adds.\n\nint x;\n",
        "// The kinds:\n//\n//   one  the first\n//\n// More.\n//\n//   Add(2);\n": "// The kinds:\n//\n//   one  the first\n//\n// More.\n",
    }.items():
        if without_examples("a.h", text) != kept:
            wrong.append(f"drop makes of\n{text}\n{without_examples('a.h', text)}")
    texts = {"lib/a/a.h": "", "lib/a/b.h": "", "lib/a/c.cc": '#include "lib/a/a.h"\n', "lib/b/d.cc": '#include "lib/a/b.h"\n',
             "tests/unit/e.cc": '#include "lib/a/a.h"\n#include "tests/support/f.h"\n'}
    if used_outside(texts) != {"lib/a/b.h", "tests/support/f.h"}:
        wrong.append(f"used outside are {used_outside(texts)}")
    if without_given("a.h\n  int a\nb.h\n  int b\n\nc.h\n", {"b.h"}) != "a.h\n  int a\nc.h\n":
        wrong.append("drop leaves or takes names of other headers")
    return wrong


def main():
    command, *words = sys.argv[1:]
    try:
        if command == "drop":
            return drop()
        if command == "write":
            return write(words[0], words[1], words[2:])
        listed, compiler = words
        return check(listed) or check_self(compiler)
    except Mistake as why:
        print(why, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
