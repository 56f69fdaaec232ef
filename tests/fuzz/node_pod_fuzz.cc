// The inputs of a sim-node's pod runner: pods and claims from an API server, the checkpoint of an
// earlier runner, and CDI files. Whatever they hold, the runner decides without a crash, and its
// checkpoint can be read again.
//
// The first byte is the kind: p a pod, c a claim, s the checkpoint, d a CDI file.

#include <fstream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/podrunner/cdi.h"
#include "sim-node/podrunner/node_pods.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace tahoma;
using namespace tahoma::sim;

NodePods Pods() { return NodePods({.host_ip = "127.0.0.1", .pod_ip = "127.0.0.1"}); }

void CheckCheckpoint(const NodePods& pods) {
  NodePods again = Pods();
  TAHOMA_CHECK_OK(again.Restore(pods.Checkpoint()));
  TAHOMA_CHECK(again.Checkpoint() == pods.Checkpoint());
}

// The pod comes, its claims are read and prepared, and it goes.
void LivePod(const Json& object) {
  NodePods pods = Pods();
  const auto spec = ParsePod(object);
  TAHOMA_CHECK(spec.ok() || !Message(spec.status()).empty());
  (void)ParseHistory(object);
  const WallTime now(std::chrono::seconds(1'000'000));
  const NodeActions actions = pods.OnPod(object, now);
  for (const NodeAction& action : actions) {
    const auto* read = std::get_if<ReadClaims>(&action);
    if (read == nullptr) continue;
    std::vector<ClaimFacts> claims;
    for (const std::string& name : read->names) {
      claims.push_back({.uid = "uid-" + name,
                        .name_space = read->pod.name_space,
                        .name = name,
                        .allocated = true,
                        .drivers = {"neuron.aws.com"},
                        .devices = {},
                        .reserved_for = {read->pod.uid}});
    }
    pods.OnClaimsRead(read->pod.uid, claims, now);
    CheckCheckpoint(pods);
    for (const ClaimFacts& claim : claims) {
      pods.OnClaimPrepared(claim.uid, std::vector<sim::PreparedDevice>{}, now);
    }
  }
  CheckCheckpoint(pods);
  pods.OnPodsSynced(now);
  if (spec.ok()) pods.OnPodGone(spec->uid, now);
}

void ReadSpec(std::string_view text) {
  static const auto* const folder = new tahoma::testing::TempDir;
  std::ofstream(folder->path() + "/claim.json", std::ios::binary | std::ios::trunc) << text;
  const auto edits = ReadCdi(folder->path(), {"neuron.aws.com/device=u-1-neuron-device-0"});
  if (!edits.ok()) {
    TAHOMA_CHECK(absl::IsNotFound(edits.status()) || absl::IsInvalidArgument(edits.status()));
    return;
  }
  for (const auto& [name, value] : edits->env) TAHOMA_CHECK(name.find('=') == std::string::npos);
}

}  // namespace

void FuzzOne(std::string_view input) {
  if (input.empty()) return;
  const std::string_view text = input.substr(1);
  if (input[0] == 'd') return ReadSpec(text);
  if (input[0] == 's') {
    NodePods pods = Pods();
    if (pods.Restore(text).ok()) CheckCheckpoint(pods);
    return;
  }
  const Json object = TryParseJson(text);
  if (object.is_discarded()) return;
  if (input[0] == 'p') return LivePod(object);
  const auto claim = ParseClaimFacts(object);
  TAHOMA_CHECK(claim.ok() || !Message(claim.status()).empty());
}
