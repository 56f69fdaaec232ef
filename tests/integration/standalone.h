// `controller --standalone` on a folder, as a child of a test that calls its HTTP API, and the
// objects of such tests.
//
//   Standalone controller(folder, RealController);
//   MakeNode(controller.api(), "node-0");
//   MakeGang(controller.api(), "train");
//   ASSERT_TRUE(controller.Eventually([&] { return BoundPods(controller.api(), "train") == 2; }));
//
// Thread safety: belongs to one thread.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json_fwd.h"
#include "lib/kube/http_transport.h"
#include "lib/kube/transport.h"
#include "tests/support/child_program.h"

namespace tahoma::testing {

inline constexpr int kChipsPerNode = 16;
inline constexpr const char* kCrdFolder = "charts/tahoma/crds";
inline constexpr const char* kPods = "/api/v1/namespaces/default/pods";
inline constexpr const char* kGangs = "/apis/tahoma.dev/v1alpha1/namespaces/default/gangs";
inline constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

class Standalone {
 public:
  // The command line for a folder and the file with the listening addresses.
  using CommandLine = std::function<std::vector<std::string>(const std::string& data,
                                                             const std::string& port_file)>;

  // Returns when the API answers, or the program has ended.
  Standalone(const std::string& folder, const CommandLine& command_line);

  ChildProgram& program() { return *program_; }
  kube::Transport& api() { return *api_; }
  bool started() const { return api_ != nullptr; }
  const std::string& address() const { return address_; }  // host:port of the API
  // Calls `holds` again and again until it returns true, the program has ended, or half a minute
  // has passed.
  bool Eventually(const std::function<bool()>& holds);

 private:
  std::unique_ptr<ChildProgram> program_;
  std::string address_;
  std::unique_ptr<kube::HttpTransport> api_;
};

// The command of the real controller.
std::vector<std::string> RealController(const std::string& data, const std::string& port_file);

// Returns the answer's HTTP status, or 0 without an answer.
int Send(kube::Transport& api, const std::string& method, const std::string& target,
         const Json& body);
// Returns the items of a list, or null without an answer.
Json List(kube::Transport& api, const std::string& target);

// Makes a Ready trn2.48xlarge with the ResourceSlice of its chips. Without a renewal of its lease
// the node becomes unknown when a controller has run for 40 seconds.
void MakeNode(kube::Transport& api, const std::string& name);
// Sets the node's condition Ready, as an agent does after a long silence.
void SayReady(kube::Transport& api, const std::string& node);
// Renews the node's lease, as its kubelet does.
void RenewLease(kube::Transport& api, const std::string& node, WallTime now);
// Renews a lease that exists. False when the server did not accept the renewal.
bool TryRenewLease(kube::Transport& api, const std::string& node, WallTime now);
// Keeps pods away that do not tolerate the taint with this key.
void Taint(kube::Transport& api, const std::string& node, const std::string& key);
// The ResourceClaimTemplate "chips-<count>".
void MakeTemplate(kube::Transport& api, int chips);

// Makes a claim without a template, unless the claim exists. False without an answer.
bool MakeClaim(kube::Transport& api, const std::string& name, int chips);

struct GangShape {
  int members = 2;
  int slices = 2;
  std::string shape = "4x4";
  int chips_per_pod = 16;
  bool own_claims = false;     // the pods' claims are made by hand, not from the template
  std::string tolerates = {};  // the key of a taint
};
// Makes a Gang and its pods "<name>-0" … (own_claims: with claims of the same names), and leaves
// existing objects alone. False when a request got no answer.
bool MakeGang(kube::Transport& api, const std::string& name, const GangShape& shape = {});

// Counts the gang's pods that are bound and not being deleted.
int BoundPods(kube::Transport& api, const std::string& gang);
// Counts the claims made for the gang's pods that are allocated and reserved for their pods.
int HeldClaims(kube::Transport& api, const std::string& gang);
// Counts the claims with an allocation.
int AllocatedClaims(kube::Transport& api);
// Counts the events with the reason.
int EventsOf(kube::Transport& api, const std::string& reason);
// Ends bound pods that are being deleted, as kubelets do.
void EndDeletedPods(kube::Transport& api);
// Deletes the gang, its pods and its own claims, as if the kubelets had ended the pods at once.
void DeleteGang(kube::Transport& api, const std::string& name, int members = 2);

}  // namespace tahoma::testing
