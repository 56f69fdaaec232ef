// Runs the program that a kubeconfig's user gets credentials from, as kubectl does.
//
// Thread safety: any thread.

#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "lib/kube/exec_credential.h"

namespace tahoma::controller {

// Returns the program's standard output; its standard error is ours. Waits for the program's end.
// kNotFound, with the kubeconfig's hint, when there is no such program; kUnavailable when it fails;
// kResourceExhausted when it prints more than 1 MiB.
absl::StatusOr<std::string> RunCredentialProgram(const kube::CredentialCall& call);

}  // namespace tahoma::controller
