// Stand-ins for the ports of dra-plugin/claims: a folder, a sim-node and an API server in memory.
//
// Each port call first asks the CrashPlan: after the planned number of calls everything fails and
// changes nothing, as if the program had died there.

#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "dra-plugin/claims/claims.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/wire/messages.h"

namespace tahoma::dra {

class CrashPlan {
 public:
  void CrashAfter(int calls) { left_ = calls; }
  void Never() { left_ = -1; }
  bool Dead() {
    if (left_ < 0) return false;
    return left_-- <= 0 ? (left_ = 0, true) : false;
  }

 private:
  int left_ = -1;
};

class MemoryFiles final : public Files {
 public:
  explicit MemoryFiles(CrashPlan& plan) : plan_(plan) {}
  absl::StatusOr<std::optional<std::string>> Read(std::string_view name) override {
    if (plan_.Dead()) return Internal("crashed");
    const auto found = files.find(std::string(name));
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  absl::Status Write(std::string_view name, std::string_view bytes) override {
    if (plan_.Dead()) return Internal("crashed");
    if (full) return ResourceExhausted("the disk is full");
    files[std::string(name)] = bytes;
    return absl::OkStatus();
  }
  absl::Status Remove(std::string_view name) override {
    if (plan_.Dead()) return Internal("crashed");
    files.erase(std::string(name));
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<std::string>> List() override {
    if (plan_.Dead()) return Internal("crashed");
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files) names.push_back(name);
    return names;
  }
  std::string PathOf(std::string_view name) const override { return fmt::format("/dir/{}", name); }

  std::map<std::string, std::string> files;
  bool full = false;

 private:
  CrashPlan& plan_;
};

// A sim-node that refuses overlap itself, as the real one does.
class FakeNode final : public NodePort {
 public:
  explicit FakeNode(CrashPlan& plan) : plan_(plan) {}
  absl::StatusOr<wire::Inventory> GetInventory() override {
    if (plan_.Dead()) return Internal("crashed");
    if (away) return Unavailable("no connection");
    return inventory;
  }
  absl::StatusOr<std::string> Apply(const wire::ClaimGrant& grant,
                                    const std::string& token) override {
    if (plan_.Dead()) return Internal("crashed");
    if (away) return Unavailable("no connection");
    for (const auto& [uid, other] : held) {
      if (uid == grant.claim_uid) {
        if (other.grant != grant) return AlreadyExists("claim {} has other content", uid);
        return other.token;
      }
      TAHOMA_RETURN_IF_ERROR(wire::CheckDisjoint(other.grant, grant));
    }
    for (const int chip : grant.chips) {
      const wire::Chip& state = inventory.chips.at(static_cast<std::size_t>(chip));
      if (!state.healthy) return FailedPrecondition("chip {} is broken ({})", chip, state.reason);
    }
    const std::string made = token.empty() ? fmt::format("{:032x}", ++tokens) : token;
    held[grant.claim_uid] = {grant, made};
    return made;
  }
  absl::Status Release(const std::string& claim_uid) override {
    if (plan_.Dead()) return Internal("crashed");
    if (away) return Unavailable("no connection");
    held.erase(claim_uid);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<wire::ClaimGrant>> List() override {
    if (plan_.Dead()) return Internal("crashed");
    if (away) return Unavailable("no connection");
    std::vector<wire::ClaimGrant> out;
    for (const auto& [uid, params] : held) out.push_back(params.grant);
    return out;
  }

  wire::Inventory inventory;
  std::map<std::string, wire::ApplyParams> held;
  bool away = false;

 private:
  CrashPlan& plan_;
  int tokens = 0;
};

class FakeSource final : public ClaimSource {
 public:
  absl::StatusOr<std::string> Get(const std::string& name_space, const std::string& name) override {
    ++reads;
    if (away) return Unavailable("no connection");
    const auto found = objects.find(name_space + "/" + name);
    if (found == objects.end()) return NotFound("resourceclaims \"{}\" not found", name);
    return found->second;
  }
  std::map<std::string, std::string> objects;
  bool away = false;
  int reads = 0;
};

inline wire::Inventory TestInventory() {
  wire::Inventory inventory = {
      .generation = 1,
      .node_name = "node-a",
      .instance_type = "trn2u.48xlarge",
      .ultra_server = wire::UltraServer{.id = "us-1", .node_id = 2, .mode = 4},
      .driver_version = "2.26.10.0",
      .workload_socket = "unix:/run/tahoma/pods/workload.sock"};
  for (int i = 0; i < 16; ++i) inventory.chips.push_back({.index = i});
  return inventory;
}

// A ResourceClaim as the API server gives it, with these devices allocated under request "r".
inline Json ClaimObject(const std::string& name, const std::string& uid,
                        const std::vector<std::string>& devices) {
  Json results = Json::array();
  for (const std::string& device : devices) {
    results.push_back(
        {{"request", "r"}, {"driver", "neuron.aws.com"}, {"pool", "node-a"}, {"device", device}});
  }
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", {{"namespace", "default"}, {"name", name}, {"uid", uid}}},
          {"status", {{"allocation", {{"devices", {{"results", results}}}}}}}};
}

inline Json NeuronConfigEntry(int lnc, const std::string& source = "FromClaim") {
  return {{"source", source},
          {"opaque",
           {{"driver", "neuron.aws.com"},
            {"parameters",
             {{"apiVersion", "neuron.aws.com/v1"},
              {"kind", "NeuronConfig"},
              {"logicalNeuronCore", lnc}}}}}};
}

}  // namespace tahoma::dra
