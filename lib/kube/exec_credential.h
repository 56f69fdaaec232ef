// Credentials that a program prints, as the field `exec` of a kubeconfig's user asks for
// (client.authentication.k8s.io/v1 and v1beta1).
//
//   TAHOMA_ASSIGN_OR_RETURN(const CredentialCall call,
//                           CredentialCallOf(exec, "/home/ada/.kube", cluster, terminal));
//   TAHOMA_ASSIGN_OR_RETURN(const std::string printed, run(call));   // the program's output
//   TAHOMA_RETURN_IF_ERROR(AddCredential(call, printed, access));
//
// Scope: what is asked and what an answer means; whoever may start programs runs them. An answer's
// end (expirationTimestamp) is not looked at: programs that live long need a token file.
//
// Thread safety: pure functions.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json_fwd.h"
#include "lib/kube/http_transport.h"

namespace tahoma::kube {

struct CredentialCall {
  std::string command;  // looked for in PATH unless it has a slash
  std::vector<std::string> args = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  // beside the caller's own
  bool interactive = false;  // the program may read the caller's terminal
  std::string api_version = {};
  std::string install_hint = {};  // for people who do not have the program
};

// Returns what the program wrote to its standard output; kNotFound when there is no such program.
using RunCredential = std::function<absl::StatusOr<std::string>(const CredentialCall& call)>;

// Who may run programs: nobody without `run`.
struct CredentialRunner {
  RunCredential run = nullptr;
  bool terminal = false;  // the caller's standard input is a terminal
};

// `folder` is the kubeconfig's, to which a command with a slash is relative. `cluster` is shown to
// programs that ask for it (provideClusterInfo). kInvalidArgument for what is no call of a program,
// kFailedPrecondition for a program that needs a terminal where there is none.
absl::StatusOr<CredentialCall> CredentialCallOf(const Json& exec, const std::string& folder,
                                                const Json& cluster, bool terminal);

// Adds token or certificate of the output to `access`. kInvalidArgument when it is no credential.
absl::Status AddCredential(const CredentialCall& call, std::string_view printed,
                           ServerAccess& access);

}  // namespace tahoma::kube
