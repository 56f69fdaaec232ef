// Finds how to reach a cluster: from kubeconfig files, or from inside a pod.
//
//   TAHOMA_ASSIGN_OR_RETURN(ServerAccess access, LoadKubeconfig("/home/ada/.kube/config"));
//   TAHOMA_ASSIGN_OR_RETURN(access, InClusterAccess("10.96.0.1", "443"));
//   auto transport = HttpTransport::Create(std::move(access));
//
// Scope: reads files; the environment (KUBECONFIG, KUBERNETES_SERVICE_HOST) is read by the program
// and passed in.
//
// Thread safety: pure functions of the files.

#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "lib/kube/exec_credential.h"
#include "lib/kube/http_transport.h"

namespace tahoma::kube {

// `paths` is one file or, as in $KUBECONFIG, several with colons between: of a cluster, user or
// context named in several files the first counts, and so does the first current-context. Missing
// files of several are passed over. `context` empty: the current one. Relative paths inside a file
// are relative to its folder.
// kNotFound when no file can be read or a name is missing, kInvalidArgument for a malformed file,
// kUnimplemented for users whose credentials come from a program where `runner` runs none (exec) or
// from an auth-provider, or that have a password, and for clusters behind a proxy. Fails as the
// program does, too (exec_credential.h).
absl::StatusOr<ServerAccess> LoadKubeconfig(std::string_view paths, std::string_view context = "",
                                            const CredentialRunner& runner = {});

// Returns the text of `field` in the extension `name` of the context's cluster, where programs
// beside kubectl keep what is theirs; empty when there is none. Fails as LoadKubeconfig does.
absl::StatusOr<std::string> KubeconfigExtension(std::string_view paths, std::string_view context,
                                                std::string_view name, std::string_view field);

inline constexpr std::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// Host and port are $KUBERNETES_SERVICE_HOST and $KUBERNETES_SERVICE_PORT. kFailedPrecondition
// when they are empty or the folder is not that of a service account.
absl::StatusOr<ServerAccess> InClusterAccess(
    std::string_view host, std::string_view port,
    const std::string& folder = std::string(kServiceAccountFolder));

// Does the one where there are paths, and else the other. `environment` reads a variable, as
// lib/base/environment.h does.
absl::StatusOr<ServerAccess> FindAccess(
    std::string_view paths, absl::FunctionRef<std::string(const char* name)> environment);

}  // namespace tahoma::kube
