// The place where a kubeconfig says how to reach the controller's admin API, an extension of its
// cluster:
//
//   clusters[].cluster.extensions: [{name: tahoma.dev/admin, extension: {server: "http://…"}}]
//
// `controller --standalone` writes it, and `kubectl tahoma` sends its questions and the
// credentials of the kubeconfig there.
//
// Thread safety: constants.

#pragma once

#include <string_view>

namespace tahoma::controller {

inline constexpr std::string_view kAdminExtension = "tahoma.dev/admin";
inline constexpr std::string_view kAdminExtensionServer = "server";

}  // namespace tahoma::controller
