// The requests that a client of the Kubernetes API sends, as values.
//
//   transport.Send(GetRequest(kPods, {"training", "worker-0"}));
//   transport.SendAll({DeleteRequest(kPods, key), GetRequest(kLeases, other)});   // together
//
// Bodies are values (Request::parsed), so that a server in this process need not parse them.
//
// Scope: making requests. Client (client.h) sends them one by one, with retries; whoever has many
// writes under way at once sends them together and reads the answers with answer.h.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json_fwd.h"
#include "lib/kube/object.h"
#include "lib/kube/resource.h"
#include "lib/kube/transport.h"

namespace tahoma::kube {

enum class PatchType : std::uint8_t { kMerge, kJson, kStrategicMerge, kApply };

struct ListOptions {
  std::string ns = {};  // empty: all namespaces
  std::string label_selector = {};
  std::string field_selector = {};
  std::string resource_version = {};
  int limit = 500;                  // 0: no pages
  std::string continue_token = {};  // from metadata.continue of the page before
};

struct WriteOptions {
  std::string field_manager = {};
  bool dry_run = false;
  bool force = false;  // kApply only
  std::string subresource = {};
};

struct DeleteOptions {
  std::string uid = {};  // preconditions
  std::string resource_version = {};
  std::optional<int> grace_period_seconds = {};
  std::string propagation_policy = {};  // Orphan, Background, Foreground
};

Request GetRequest(const Resource& resource, const ObjectKey& key);
// Asks for one page.
Request ListRequest(const Resource& resource, const ListOptions& options);
Request CreateRequest(const Resource& resource, std::string_view ns, Json object,
                      const WriteOptions& options = {});
Request UpdateRequest(const Resource& resource, const ObjectKey& key, Json object,
                      const WriteOptions& options = {});
Request PatchRequest(const Resource& resource, const ObjectKey& key, PatchType type, Json patch,
                     const WriteOptions& options = {});
Request DeleteRequest(const Resource& resource, const ObjectKey& key,
                      const DeleteOptions& options = {});
// Binds a pod to a node and merges the annotations (an object, or null) into the pod. The server
// answers 409 when the pod is bound already, is being deleted, or has another uid.
Request BindRequest(const ObjectKey& pod, std::string_view uid, std::string_view node,
                    Json annotations);

}  // namespace tahoma::kube
