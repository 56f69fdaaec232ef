// Reads a program's configuration: its YAML file, then the flags, which win.
//
//   config::Spec spec = DeclareOptions(options);                 // see lib/config/spec.h
//   if (const std::optional<int> exit = config::Parse(argc, argv, spec)) return *exit;
//
// The file begins with `apiVersion: tahoma.dev/v1alpha1` and the program's `kind`. --help lists
// every key with its kind, default and meaning; --version prints the version.
//
// Scope: command lines and files. Options that depend on each other are checked by the program.
//
// Thread safety: none; called once, at a program's start.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/config/spec.h"

namespace tahoma::config {

inline constexpr std::string_view kApiVersion = "tahoma.dev/v1alpha1";

// Fills the variables that `spec` points to. Returns nothing when the program should go on, else
// the status it should end with: 0 after --help or --version (printed to stdout), 2 after an error
// (printed to stderr, "program: message").
std::optional<int> Parse(int argc, const char* const* argv, const Spec& spec);

// The same without printing: the text of --help or --version if that was asked for, else empty.
// After an error some variables may already be set.
absl::StatusOr<std::string> ParseArguments(const std::vector<std::string>& arguments,
                                           const Spec& spec);

// Sets what a file's text says; `name` is for messages.
absl::Status ParseFile(std::string_view text, std::string_view name, const Spec& spec);

// Returns the text that --help prints.
std::string Help(const Spec& spec);

// Returns parts of it: " NAME [ID]"; lines for each word; lines for each flag.
std::string UsageWords(const Spec& spec);
std::string WordHelp(const Spec& spec);
std::string FlagHelp(const Spec& spec);

}  // namespace tahoma::config
