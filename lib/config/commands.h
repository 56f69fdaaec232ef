// A program of several commands, each with its own flags, help and examples, as kubectl has them.
//
//   Options o;
//   const config::Commands commands(
//       {.program = "kubectl tahoma", .summary = "Shows the torus."},
//       [&](config::Spec& spec) { spec.String("context", &o.context, "of the kubeconfig"); },
//       {{.name = "gangs", .summary = "Lists gangs.", .examples = "kubectl tahoma gangs -A"},
//        {.name = "why",
//         .summary = "Says why a gang waits.",
//         .declare = [&](config::Spec& spec) {
//           spec.Word("NAME", &o.name, "a gang or a pod", config::Spec::Need::kRequired);
//         }}});
//   TAHOMA_ASSIGN_OR_RETURN(const auto parsed, commands.Parse({"why", "train"}));
//   parsed.command->name == "why";
//
// Flags that all commands share may stand before and after the command's name. No arguments,
// --help, `help` and `help COMMAND` give help; --version gives the version.
//
// Scope: command lines and the words that complete them. The program knows the values of the
// cluster and prints.
//
// Thread safety: const members from one thread, because parsing writes the program's variables.

#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/config/spec.h"

namespace tahoma::config {

struct Command {
  std::string name;
  std::string summary;                                  // a sentence
  std::function<void(Spec& spec)> declare = {};         // its words and its own flags
  std::string examples = {};                            // lines
  std::vector<std::pair<int, std::string>> exits = {};  // statuses besides 0, 1 and 2
  bool hidden = false;                                  // left out of help and completion
};

class Commands {
 public:
  struct About {
    std::string program;
    std::string summary;
  };
  struct Parsed {
    const Command* command = nullptr;  // null: there is only the text
    std::string text = {};             // asked for by --help, help or --version
  };
  struct Completion {
    std::vector<std::pair<std::string, std::string>> words = {};  // and a description, or ""
    // The flag's key ("namespace") or the positional's name ("NAME") whose values the program
    // knows; empty when the words are all.
    std::string wanted = {};
    std::string command = {};  // the one whose line it is
  };

  Commands(About about, std::function<void(Spec& spec)> shared, std::vector<Command> commands);

  // Fills the variables of the shared flags and of the command. kInvalidArgument for a mistake.
  absl::StatusOr<Parsed> Parse(const std::vector<std::string>& arguments) const;

  std::string Help() const;
  std::string HelpOf(const Command& command) const;

  // Completes the last of the arguments, which may be empty.
  Completion Complete(const std::vector<std::string>& arguments) const;

 private:
  const Command* Find(std::string_view name) const;
  Spec SpecOf(const Command* command) const;

  const About about_;
  const std::function<void(Spec& spec)> shared_;
  const std::vector<Command> commands_;
};

}  // namespace tahoma::config
