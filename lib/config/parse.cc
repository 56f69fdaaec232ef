#include "lib/config/parse.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/config/value.h"

namespace tahoma::config {
namespace {

struct Flag {
  std::string name;  // "--ultra-server.id"
  const Field* field;
};

void CollectFlags(const Fields& fields, const std::string& prefix, std::vector<Flag>& flags) {
  for (const Field& field : fields.fields()) {
    const std::string name = prefix + FlagName(field.key);
    if (field.section) {
      CollectFlags(*field.section, name + ".", flags);
    } else {
      flags.push_back({"--" + name, &field});
    }
  }
}

std::vector<Flag> AllFlags(const Spec& spec) {
  std::vector<Flag> flags;
  CollectFlags(spec, "", flags);
  return flags;
}

std::string NamesOf(const Flag& flag, const Spec& spec) {
  std::string names = flag.name;
  for (const auto& [alias, key] : spec.aliases()) {
    if (key == flag.field->key) names = fmt::format("{},{}", alias, names);
  }
  return names;
}

Value Scalar(std::string_view text) {
  Value value;
  value.kind = Value::Kind::kScalar;
  value.scalar = std::string(text);
  return value;
}

// Lists and maps grow when their flag is repeated.
bool MayRepeat(const Field& field) {
  return field.form == FlagForm::kWords || field.form == FlagForm::kPairs ||
         field.form == FlagForm::kYaml;
}

// Returns a flag's text as the value that a file would have given.
absl::StatusOr<Value> TextValue(const Field& field, const std::string& text) {
  if (field.form == FlagForm::kText || field.form == FlagForm::kBool) return Scalar(text);
  if (field.form == FlagForm::kYaml || text.starts_with('[') || text.starts_with('{')) {
    return ParseYaml(text);
  }
  Value value;
  value.kind = field.form == FlagForm::kWords ? Value::Kind::kList : Value::Kind::kMap;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    if (value.kind == Value::Kind::kList) {
      value.items.push_back(Scalar(word));
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return InvalidArgument("\"{}\" is not a pair; expected name=value,name=value", word);
    }
    value.entries.push_back({std::string(word.substr(0, equals)), Scalar(word.substr(equals + 1))});
  }
  return value;
}

// Returns all texts of a flag, in order, as a single value.
absl::StatusOr<Value> FlagValue(const Field& field, const std::vector<std::string>& texts) {
  Value all;
  for (const std::string& text : texts) {
    TAHOMA_ASSIGN_OR_RETURN(Value part, TextValue(field, text));
    if (texts.size() == 1) return part;
    if (part.kind == Value::Kind::kScalar ||
        (all.kind != Value::Kind::kNull && part.kind != all.kind)) {
      return InvalidArgument("\"{}\" cannot be added to what it was given before", text);
    }
    all.kind = part.kind;
    std::ranges::move(part.items, std::back_inserter(all.items));
    for (Entry& entry : part.entries) {
      if (std::ranges::find(all.entries, entry.key, &Entry::key) != all.entries.end()) {
        return InvalidArgument("\"{}\" is given twice", entry.key);
      }
      all.entries.push_back(std::move(entry));
    }
  }
  return all;
}

absl::Status CheckHead(Value& file, const std::string& name, const Spec& spec) {
  const Where where{.source = name, .path = ""};
  const std::map<std::string, std::string> head{{"apiVersion", std::string(kApiVersion)},
                                                {"kind", spec.about().kind}};
  for (const auto& [key, wanted] : head) {
    const auto at = std::ranges::find(file.entries, key, &Entry::key);
    if (at == file.entries.end()) {
      return where.Error(file, fmt::format("{} is missing; expected \"{}: {}\"", key, key, wanted));
    }
    if (at->value.scalar != wanted) {
      return where.Below(key).Error(
          at->value, fmt::format("\"{}\" is not supported; expected {}", at->value.scalar, wanted));
    }
    file.entries.erase(at);
  }
  return absl::OkStatus();
}

absl::Status LoadFile(const std::string& name, const Spec& spec) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return NotFound("--config: cannot read {}", name);
  std::string text(kMaxTextBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return NotFound("--config: cannot read {}; is it a file?", name);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return ParseFile(text, name, spec);
}

// The command line as text, before its options are read.
struct CommandLine {
  bool help = false;
  bool version = false;
  std::string config;
  std::map<std::string, std::vector<std::string>> given;  // by flag
  std::vector<std::string> words;
};

absl::Status UnknownArgument(const std::string& argument, const std::vector<Flag>& flags) {
  std::vector<std::string> known{"--config", "--help", "--version"};
  for (const Flag& flag : flags) {
    if (!flag.field->gone) known.push_back(flag.name);
  }
  const std::string nearest = Nearest(argument.substr(0, argument.find('=')), known);
  if (nearest.empty()) return InvalidArgument("unknown argument {}; --help lists all", argument);
  return InvalidArgument("unknown argument {}; did you mean {}?", argument, nearest);
}

absl::StatusOr<CommandLine> ReadCommandLine(std::vector<std::string> arguments, const Spec& spec,
                                            const std::vector<Flag>& flags) {
  CommandLine line;
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.add_flag("--help,-h", line.help);
  app.add_flag("--version", line.version);
  if (!spec.about().kind.empty()) app.add_option("--config", line.config);
  std::map<std::string, std::vector<std::string>> texts;
  std::map<std::string, CLI::Option*> options;
  for (const Flag& flag : flags) {
    std::vector<std::string>& given = texts[flag.name];
    const std::string names = NamesOf(flag, spec);
    if (MayRepeat(*flag.field)) {
      options[flag.name] = app.add_option(names, given)->allow_extra_args(false);
      continue;
    }
    std::string& text = given.emplace_back();
    options[flag.name] = flag.field->form == FlagForm::kBool ? app.add_flag(names + "{true}", text)
                                                             : app.add_option(names, text);
  }
  if (!spec.positionals().empty() || spec.rest() != nullptr) {
    app.add_option("words", line.words)->expected(0, 1 << 20);
  }
  std::reverse(arguments.begin(), arguments.end());
  try {
    app.parse(arguments);
  } catch (const CLI::Error& error) {
    return InvalidArgument("{}", error.what());
  }
  for (const std::string& extra : app.remaining()) return UnknownArgument(extra, flags);
  for (const auto& [name, option] : options) {
    if (option->count() > 0) line.given[name] = texts[name];
  }
  return line;
}

absl::Status SetWords(std::vector<std::string> words, const Spec& spec) {
  std::size_t used = 0;
  for (const Spec::Positional& positional : spec.positionals()) {
    if (used < words.size()) {
      const std::string& word = words[used++];
      if (!positional.choices.empty() &&
          std::ranges::find(positional.choices, word) == positional.choices.end()) {
        return InvalidArgument("{}: \"{}\" is not what belongs here; expected one of {}",
                               positional.name, word, fmt::join(positional.choices, ", "));
      }
      *positional.value = word;
    } else if (positional.need == Spec::Need::kRequired) {
      return InvalidArgument("{} is missing ({})", positional.name, positional.description);
    }
  }
  if (used < words.size() && spec.rest_words() == nullptr) {
    return InvalidArgument("unknown argument {}; --help lists all", words[used]);
  }
  if (spec.rest_words() != nullptr) {
    spec.rest_words()->assign(words.begin() + static_cast<std::ptrdiff_t>(used), words.end());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseFile(std::string_view text, std::string_view name, const Spec& spec) {
  absl::StatusOr<Value> file = ParseYaml(text);
  if (!file.ok()) return Annotate(file.status(), name);
  const std::string source(name);
  if (file->kind != Value::Kind::kMap) {
    return InvalidArgument("{}: expected a YAML map that begins with apiVersion and kind", source);
  }
  TAHOMA_RETURN_IF_ERROR(CheckHead(*file, source, spec));
  return spec.Set(*file, {.source = source, .path = ""});
}

std::string UsageWords(const Spec& spec) {
  std::string text;
  for (const auto& word : spec.positionals()) {
    text += word.need == Spec::Need::kRequired ? " " + word.name : " [" + word.name + "]";
  }
  if (spec.rest() != nullptr) text += " [" + spec.rest()->name + "...]";
  return text;
}

std::string WordHelp(const Spec& spec) {
  std::string text;
  for (const auto& word : spec.positionals()) {
    text += fmt::format("  {}\n        {}\n", word.name, word.description);
  }
  if (spec.rest() != nullptr) {
    text += fmt::format("  {}\n        {}\n", spec.rest()->name, spec.rest()->description);
  }
  return text;
}

std::string FlagHelp(const Spec& spec) {
  std::string text;
  for (const Flag& flag : AllFlags(spec)) {
    if (flag.field->gone) continue;
    const std::string& preset = flag.field->default_text;
    text += fmt::format("  {}  ({}{}{})\n        {}\n", NamesOf(flag, spec), flag.field->kind,
                        MayRepeat(*flag.field) ? "; may be repeated" : "",
                        preset.empty() ? "" : "; default " + preset, flag.field->description);
  }
  return text;
}

std::string Help(const Spec& spec) {
  const Spec::About& about = spec.about();
  std::string text = fmt::format("{} {}: {}\n\nUsage: {} [flags]{}\n\n{}", about.program, kVersion,
                                 about.summary, about.program, UsageWords(spec), WordHelp(spec));
  if (!about.kind.empty()) {
    text += fmt::format(
        "  --config FILE\n        YAML (apiVersion: {}, kind: {}); every flag below is a key of "
        "it, "
        "and wins over it\n",
        kApiVersion, about.kind);
  }
  return text + FlagHelp(spec) + "  --version\n  --help, -h\n";
}

absl::StatusOr<std::string> ParseArguments(const std::vector<std::string>& arguments,
                                           const Spec& spec) {
  const std::vector<Flag> flags = AllFlags(spec);
  TAHOMA_ASSIGN_OR_RETURN(const CommandLine line, ReadCommandLine(arguments, spec, flags));
  if (line.help) return Help(spec);
  if (line.version) return fmt::format("{} {}\n", spec.about().program, kVersion);
  if (!line.config.empty()) TAHOMA_RETURN_IF_ERROR(LoadFile(line.config, spec));
  for (const Flag& flag : flags) {
    const auto given = line.given.find(flag.name);
    if (given == line.given.end()) continue;
    const absl::StatusOr<Value> value = FlagValue(*flag.field, given->second);
    if (!value.ok()) return Annotate(value.status(), flag.name);
    TAHOMA_RETURN_IF_ERROR(flag.field->set(*value, {.source = "", .path = flag.name}));
  }
  TAHOMA_RETURN_IF_ERROR(SetWords(line.words, spec));
  return std::string();
}

std::optional<int> Parse(int argc, const char* const* argv, const Spec& spec) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const absl::StatusOr<std::string> parsed = ParseArguments(arguments, spec);
  if (!parsed.ok()) {
    fmt::print(stderr, "{}: {}\n", spec.about().program, Message(parsed.status()));
    return 2;
  }
  if (parsed->empty()) return std::nullopt;
  fmt::print(stdout, "{}", *parsed);
  return 0;
}

}  // namespace tahoma::config
