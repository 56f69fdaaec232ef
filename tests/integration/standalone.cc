#include "tests/integration/standalone.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/hw/catalogue.h"
#include "tests/support/patience.h"

namespace tahoma::testing {
namespace {

constexpr std::chrono::seconds kPatience = Patience(30);

// "listenAddress: 127.0.0.1:1234" of a port file; empty when there is none yet.
std::string AddressIn(const std::string& port_file) {
  std::ifstream in(port_file);
  std::string key;
  std::string address;
  in >> key >> address;
  return key == "listenAddress:" ? address : "";
}

const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

Json LeaseSpec(const std::string& node, WallTime renewed) {
  return {{"holderIdentity", node},
          {"leaseDurationSeconds", 40},
          {"renewTime", FormatMicroTime(renewed)}};
}

bool IsBound(const Json& pod) {
  return pod["spec"].contains("nodeName") && !pod["metadata"].contains("deletionTimestamp");
}

bool Exists(int status) { return status == 201 || status == 409; }

Json ClaimSpec(int chips) {
  const Json request = {{"name", "neurons"},
                        {"exactly",
                         {{"deviceClassName", "neuron.aws.com"},
                          {"allocationMode", "ExactCount"},
                          {"count", chips}}}};
  return Json::object({{"devices", {{"requests", Json::array({request})}}}});
}

}  // namespace

Standalone::Standalone(const std::string& folder, const CommandLine& command_line) {
  const std::string port_file = folder + "/ports";
  std::filesystem::remove(port_file);
  program_ =
      std::make_unique<ChildProgram>(command_line(folder + "/data", port_file), folder + "/log");
  const auto is_up = [&] {
    address_ = AddressIn(port_file);
    return !address_.empty();
  };
  if (!Eventually(is_up)) return;
  auto api = kube::HttpTransport::Create({.server = "http://" + address_});
  TAHOMA_CHECK_OK(api.status());
  api_ = *std::move(api);
}

bool Standalone::Eventually(const std::function<bool()>& holds) {
  return program_->WaitUntil(holds, kPatience);
}

std::vector<std::string> RealController(const std::string& data, const std::string& port_file) {
  return {Bin("controller"),  "--standalone", "--data-dir",      data,
          "--listen-address", "127.0.0.1:0",  "--admin-address", "127.0.0.1:0",
          "--crd-dir",        kCrdFolder,     "--port-file",     port_file};
}

int Send(kube::Transport& api, const std::string& method, const std::string& target,
         const Json& body) {
  const auto answer =
      api.Send({.method = method,
                .target = target,
                .headers = {{"Content-Type", method == "PATCH" ? "application/merge-patch+json"
                                                               : "application/json"}},
                .body = body.is_null() ? "" : body.dump()});
  return answer.ok() ? answer->status : 0;
}

Json List(kube::Transport& api, const std::string& target) {
  const auto answer = api.Send({.target = target});
  if (!answer.ok() || answer->status != 200) return nullptr;
  return ParseJson(answer->body)["items"];
}

void SayReady(kube::Transport& api, const std::string& node) {
  const Json ready = {{{"type", "Ready"}, {"status", "True"}}};
  TAHOMA_CHECK(Send(api, "PATCH", "/api/v1/nodes/" + node + "/status",
                    {{"status", {{"conditions", ready}}}}) == 200);
}

void MakeNode(kube::Transport& api, const std::string& name) {
  const hw::InstanceType& type = *hw::FindInstanceType("trn2.48xlarge");
  wire::Inventory inventory;
  inventory.node_name = name;
  inventory.instance_type = type.name;
  inventory.driver_version = "2.26.10.0";
  for (int chip = 0; chip < type.chip_count(); ++chip) {
    inventory.chips.push_back({.index = chip, .healthy = true, .lnc = 2});
  }
  const Json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
  TAHOMA_CHECK(Send(api, "POST", "/api/v1/nodes", node) == 201);
  SayReady(api, name);
  const auto made = api.Send({.target = "/api/v1/nodes/" + name});
  const std::string uid = ParseJson(made->body)["metadata"]["uid"];
  const dra::PoolOptions chips = {.publish = {.lnc1 = false, .lnc2 = false, .node = false}};
  const auto slices = dra::CutIntoSlices(*dra::BuildPool(inventory, chips));
  for (std::size_t i = 0; i < slices.size(); ++i) {
    TAHOMA_CHECK(
        Send(api, "POST", "/apis/resource.k8s.io/v1/resourceslices",
             dra::SliceObject({name, uid}, {.slice_count = slices.size()}, slices[i], i)) == 201);
  }
}

bool TryRenewLease(kube::Transport& api, const std::string& node, WallTime now) {
  return Send(api, "PATCH", kLeases + "/" + node, {{"spec", LeaseSpec(node, now)}}) == 200;
}

void RenewLease(kube::Transport& api, const std::string& node, WallTime now) {
  if (TryRenewLease(api, node, now)) return;
  const int made =
      Send(api, "POST", kLeases, {{"metadata", {{"name", node}}}, {"spec", LeaseSpec(node, now)}});
  TAHOMA_CHECK(made == 201);
}

void Taint(kube::Transport& api, const std::string& node, const std::string& key) {
  const Json taint = {{"key", key}, {"effect", "NoSchedule"}};
  TAHOMA_CHECK(Send(api, "PATCH", "/api/v1/nodes/" + node,
                    {{"spec", {{"taints", Json::array({taint})}}}}) == 200);
}

void MakeTemplate(kube::Transport& api, int chips) {
  const Json object = {{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceClaimTemplate"},
                       {"metadata", {{"name", "chips-" + std::to_string(chips)}}},
                       {"spec", {{"spec", ClaimSpec(chips)}}}};
  TAHOMA_CHECK(Send(api, "POST",
                    "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
                    object) == 201);
}

bool MakeClaim(kube::Transport& api, const std::string& name, int chips) {
  return Exists(Send(api, "POST", kClaims,
                     {{"apiVersion", "resource.k8s.io/v1"},
                      {"kind", "ResourceClaim"},
                      {"metadata", {{"name", name}}},
                      {"spec", ClaimSpec(chips)}}));
}

bool MakeGang(kube::Transport& api, const std::string& name, const GangShape& shape) {
  const Json gang = {
      {"apiVersion", "tahoma.dev/v1alpha1"},
      {"kind", "Gang"},
      {"metadata", {{"name", name}}},
      {"spec", {{"members", shape.members}, {"shape", shape.shape}, {"slices", shape.slices}}}};
  if (!Exists(Send(api, "POST", kGangs, gang))) return false;
  const std::string chips = "chips-" + std::to_string(shape.chips_per_pod);
  for (int i = 0; i < shape.members; ++i) {
    const std::string member = fmt::format("{}-{}", name, i);
    if (shape.own_claims && !MakeClaim(api, member, shape.chips_per_pod)) return false;
    const Json source = {shape.own_claims ? "resourceClaimName" : "resourceClaimTemplateName",
                         shape.own_claims ? member : chips};
    Json tolerations = Json::array();
    if (!shape.tolerates.empty()) {
      tolerations.push_back({{"key", shape.tolerates}, {"operator", "Exists"}});
    }
    const Json pod = {{"apiVersion", "v1"},
                      {"kind", "Pod"},
                      {"metadata", {{"name", member}, {"labels", {{"tahoma.dev/gang", name}}}}},
                      {"spec",
                       {{"schedulerName", "tahoma"},
                        {"tolerations", tolerations},
                        {"containers",
                         {{{"name", "main"},
                           {"image", "none"},
                           {"resources", {{"claims", {{{"name", "neurons"}}}}}}}}},
                        {"resourceClaims", {{{"name", "neurons"}, source}}}}}};
    if (!Exists(Send(api, "POST", kPods, pod))) return false;
  }
  return true;
}

int BoundPods(kube::Transport& api, const std::string& gang) {
  int bound = 0;
  for (const Json& pod : List(api, std::string(kPods) + "?labelSelector=tahoma.dev/gang=" + gang)) {
    bound += IsBound(pod) ? 1 : 0;
  }
  return bound;
}

int HeldClaims(kube::Transport& api, const std::string& gang) {
  int held = 0;
  for (const Json& claim : List(api, kClaims)) {
    const Json status = claim.value("status", Json::object());
    if (!status.contains("allocation")) continue;
    for (const Json& consumer : status.value("reservedFor", Json::array())) {
      held += consumer["name"].get<std::string>().starts_with(gang + "-") ? 1 : 0;
    }
  }
  return held;
}

int AllocatedClaims(kube::Transport& api) {
  int allocated = 0;
  for (const Json& claim : List(api, kClaims)) {
    allocated += claim.value("status", Json::object()).contains("allocation") ? 1 : 0;
  }
  return allocated;
}

int EventsOf(kube::Transport& api, const std::string& reason) {
  int count = 0;
  for (const Json& event : List(api, "/api/v1/namespaces/default/events")) {
    count += event.value("reason", "") == reason ? 1 : 0;
  }
  return count;
}

void EndDeletedPods(kube::Transport& api) {
  for (const Json& pod : List(api, kPods)) {
    if (!pod["metadata"].contains("deletionTimestamp")) continue;
    const std::string name = pod["metadata"]["name"];
    Send(api, "DELETE", fmt::format("{}/{}?gracePeriodSeconds=0", kPods, name), nullptr);
  }
}

void DeleteGang(kube::Transport& api, const std::string& name, int members) {
  for (int i = 0; i < members; ++i) {
    Send(api, "DELETE", fmt::format("{}/{}-{}?gracePeriodSeconds=0", kPods, name, i), nullptr);
    Send(api, "DELETE", fmt::format("{}/{}-{}", kClaims, name, i), nullptr);
  }
  Send(api, "DELETE", fmt::format("{}/{}", kGangs, name), nullptr);
}

}  // namespace tahoma::testing
