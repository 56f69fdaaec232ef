#include "lib/config/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "lib/base/status.h"
#include "lib/base/version.h"
#include "lib/config/parse.h"

namespace tahoma::config {
namespace {

constexpr std::string_view kHelp = "help";

bool IsFlag(std::string_view word) { return word.size() > 1 && word.front() == '-'; }

// Returns the field that a whole word such as "--context" or "-n" names; null for any other word.
const Field* FieldOf(const Spec& spec, std::string_view word) {
  for (const Field& field : spec.fields()) {
    if (word == "--" + FlagName(field.key)) return &field;
    for (const auto& [alias, key] : spec.aliases()) {
      if (word == alias && key == field.key) return &field;
    }
  }
  return nullptr;
}

bool TakesNextWord(const Spec& spec, std::string_view word) {
  const Field* const field = FieldOf(spec, word);
  return field != nullptr && field->form != FlagForm::kBool;
}

// Returns the places of the words that are neither flags nor their values.
std::vector<std::size_t> PlainWords(const std::vector<std::string>& arguments, const Spec& spec) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!IsFlag(arguments[i])) {
      places.push_back(i);
    } else if (TakesNextWord(spec, arguments[i])) {
      ++i;
    }
  }
  return places;
}

std::string Indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text += fmt::format("  {}\n", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}  // namespace

Commands::Commands(About about, std::function<void(Spec& spec)> shared,
                   std::vector<Command> commands)
    : about_(std::move(about)), shared_(std::move(shared)), commands_(std::move(commands)) {}

const Command* Commands::Find(std::string_view name) const {
  const auto found = std::ranges::find(commands_, name, &Command::name);
  return found == commands_.end() ? nullptr : &*found;
}

Spec Commands::SpecOf(const Command* command) const {
  Spec spec({.program = about_.program, .kind = "", .summary = about_.summary});
  if (command != nullptr && command->declare) command->declare(spec);
  shared_(spec);
  return spec;
}

absl::StatusOr<Commands::Parsed> Commands::Parse(const std::vector<std::string>& arguments) const {
  const Spec shared = SpecOf(nullptr);
  const std::vector<std::size_t> words = PlainWords(arguments, shared);
  const std::string ask = fmt::format("; `{} help` lists the commands", about_.program);
  if (words.empty()) {
    if (arguments.empty()) return Parsed{.text = Help()};
    TAHOMA_ASSIGN_OR_RETURN(std::string text, ParseArguments(arguments, shared));
    if (text.empty()) return InvalidArgument("a command is missing{}", ask);
    const bool version = text.starts_with(fmt::format("{} {}\n", about_.program, kVersion));
    return Parsed{.text = version ? std::move(text) : Help()};
  }
  const std::string& name = arguments[words.front()];
  std::vector<std::string> rest = arguments;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(words.front()));
  const bool help = name == kHelp;
  if (help && words.size() == 1) return Parsed{.text = Help()};
  const std::string& wanted = help ? arguments[words[1]] : name;
  const Command* const command = Find(wanted);
  if (command == nullptr) {
    std::vector<std::string> names = {std::string(kHelp)};
    for (const Command& known : commands_) {
      if (!known.hidden) names.push_back(known.name);
    }
    const std::string nearest = Nearest(wanted, names);
    return InvalidArgument("unknown command \"{}\"{}", wanted,
                           nearest.empty() ? ask : fmt::format("; did you mean {}?", nearest));
  }
  if (help) return Parsed{.text = HelpOf(*command)};
  absl::StatusOr<std::string> text = ParseArguments(rest, SpecOf(command));
  if (!text.ok()) return Annotate(text.status(), name);
  if (text->empty()) return Parsed{.command = command};
  const bool version = text->starts_with(fmt::format("{} {}\n", about_.program, kVersion));
  return Parsed{.text = version ? *std::move(text) : HelpOf(*command)};
}

std::string Commands::Help() const {
  std::string text = fmt::format("{}\n\nUsage:\n  {} COMMAND [flags]\n\nCommands:\n",
                                 about_.summary, about_.program);
  std::size_t width = kHelp.size();
  for (const Command& command : commands_) {
    if (!command.hidden) width = std::max(width, command.name.size());
  }
  for (const Command& command : commands_) {
    if (command.hidden) continue;
    text += fmt::format("  {:<{}}  {}\n", command.name, width, command.summary);
  }
  text += fmt::format("  {:<{}}  {}\n", kHelp, width, "Shows the help of a command.");
  return text + fmt::format(
                    "\nFlags of every command:\n{}\nExit status:\n"
                    "  0  done\n  1  it could not be done, or not be printed\n"
                    "  2  the command line is wrong\n\n"
                    "`{} help COMMAND` shows a command's own flags, examples and statuses.\n",
                    FlagHelp(SpecOf(nullptr)), about_.program);
}

std::string Commands::HelpOf(const Command& command) const {
  Spec own({.program = about_.program, .kind = "", .summary = command.summary});
  if (command.declare) command.declare(own);
  std::string text = fmt::format("{}\n\nUsage:\n  {} {}{} [flags]\n", command.summary,
                                 about_.program, command.name, UsageWords(own));
  if (!command.examples.empty()) text += "\nExamples:\n" + Indented(command.examples);
  if (!own.positionals().empty()) text += "\nArguments:\n" + WordHelp(own);
  if (!own.fields().empty()) text += "\nFlags:\n" + FlagHelp(own);
  text += "\nFlags of every command:\n" + FlagHelp(SpecOf(nullptr));
  text +=
      "\nExit status:\n  0  done\n  1  it could not be done, or not be printed\n"
      "  2  the command line is wrong\n";
  for (const auto& [status, meaning] : command.exits) {
    text += fmt::format("  {}  {}\n", status, meaning);
  }
  return text;
}

Commands::Completion Commands::Complete(const std::vector<std::string>& arguments) const {
  if (arguments.empty()) return {};
  const std::string& last = arguments.back();
  const std::vector<std::string> before(arguments.begin(), arguments.end() - 1);
  const std::vector<std::size_t> words = PlainWords(before, SpecOf(nullptr));
  Completion completion;
  const auto offer = [&](const std::string& word, const std::string& description) {
    if (!word.empty() && word.starts_with(last)) completion.words.emplace_back(word, description);
  };
  const Command* const command = words.empty() ? nullptr : Find(before[words.front()]);
  const Spec spec = SpecOf(command);
  if (!before.empty() && TakesNextWord(spec, before.back())) {
    const Field& field = *FieldOf(spec, before.back());
    for (const std::string& choice : field.choices) offer(choice, "");
    if (field.choices.empty()) completion.wanted = field.key;
  } else if (last.starts_with('-')) {
    for (const Field& field : spec.fields()) offer("--" + FlagName(field.key), field.description);
  } else if (words.empty() || before[words.front()] == kHelp) {
    for (const Command& known : commands_) {
      if (!known.hidden) offer(known.name, known.summary);
    }
    if (words.empty()) offer(std::string(kHelp), "Shows the help of a command.");
  } else if (command != nullptr) {
    const std::size_t place = PlainWords(before, spec).size() - 1;
    if (place < spec.positionals().size()) {
      const Spec::Positional& word = spec.positionals()[place];
      for (const std::string& choice : word.choices) offer(choice, "");
      if (word.choices.empty()) completion.wanted = word.name;
    }
  }
  if (command != nullptr) completion.command = command->name;
  return completion;
}

}  // namespace tahoma::config
