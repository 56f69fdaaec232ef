// The cluster that a command of kubectl-tahoma is about, and how its answers are printed.
//
// Thread safety: one thread.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/config/spec.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller {

inline constexpr int kCannot = 1;

// Flags of every command.
struct CommandTarget {
  std::string kubeconfig;
  std::string context;
  std::string server;
  std::string ns;  // empty: the context's, or all where the command says so
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::string color = "auto";
};

void DeclareTarget(config::Spec& spec, CommandTarget& target);

// Returns --kubeconfig, $KUBECONFIG or ~/.kube/config.
std::string KubeconfigPaths(const CommandTarget& target);

// Returns the API server of the kubeconfig with what the flags change.
absl::StatusOr<kube::ServerAccess> AccessOf(const CommandTarget& target);
absl::StatusOr<std::unique_ptr<kube::HttpTransport>> Connect(const CommandTarget& target);

// Flags of commands that ask the admin API.
struct AdminFlags {
  std::string address;
  std::string ca_file;
};
void DeclareAdmin(config::Spec& spec, AdminFlags& flags);

// Returns the admin API, with the credentials of the kubeconfig.
absl::StatusOr<kube::ServerAccess> AdminAccess(const AdminFlags& flags,
                                               const CommandTarget& target);

// Writes a line to stderr.
void Warn(const std::string& line);
// Warns, and returns the exit status for it.
int Fail(const absl::Status& status);

// Writes everything to stdout at once; fails when stdout is full or closed.
absl::Status Print(std::string_view text);
// Prints, in colours where stdout is a terminal and the flags and NO_COLOR allow; returns the exit
// status.
int PrintText(const CommandTarget& target, std::string_view text);
// Prints in the form "json" or "yaml"; returns the exit status.
int PrintValue(const Json& value, std::string_view form);

}  // namespace tahoma::controller
