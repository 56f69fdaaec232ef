// The attributes of a request for authorization: a verb on a resource, or on a path.
//
//   const Attributes list{.verb = "list", .resource = "pods", .name_space = "default"};
//   const Attributes metrics{.verb = "get", .path = "/metrics"};
//
// The names are those of Kubernetes (k8s.io/apiserver pkg/authorization/authorizer).
//
// Thread safety: a value.

#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "lib/base/ascii.h"

namespace tahoma::controller {

struct Attributes {
  std::string verb;  // get, list, watch, create, update, patch, delete, deletecollection
  std::string group = {};
  std::string version = {};
  std::string resource = {};  // empty: `path` is asked for
  std::string subresource = {};
  std::string name_space = {};  // empty: the cluster, or all namespaces
  std::string name = {};
  std::string path = {};
  // The node that a list or watch is restricted to by its field selector.
  std::string node_selector = {};

  bool is_resource() const { return !resource.empty(); }
  // Whether the request only looks.
  bool reads() const {
    return verb == "get" || verb == "list" || verb == "watch" || verb == "head" ||
           verb == "options";
  }
};

// Returns the attributes of a request for a path that is no resource's: the verb is the method in
// lower case.
inline Attributes PathAttributes(std::string_view method, std::string path) {
  Attributes wanted{.verb = std::string(method)};
  std::ranges::transform(wanted.verb, wanted.verb.begin(), AsciiLower);
  wanted.path = std::move(path);
  return wanted;
}

}  // namespace tahoma::controller
