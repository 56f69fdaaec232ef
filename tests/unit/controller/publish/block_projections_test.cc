// CapacityReservations and UltraServers in an API server, as blocks live and hardware fails.

#include "controller/publish/block_projections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "controller/apiserver/http/in_process_transport.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "tests/support/api_fixture.h"
#include "tests/unit/controller/core/request_world.h"

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NoWait final : public kube::Sleeper {
 public:
  bool Sleep(std::chrono::nanoseconds) override { return true; }
};

constexpr char kServers[] = "/apis/tahoma.dev/v1alpha1/ultraservers";
constexpr char kNeuronServers[] =
    "/apis/neuron.aws.com/v1beta1/namespaces/tahoma-system/neuronultraservers";
constexpr char kReservations[] = "/apis/tahoma.dev/v1alpha1/namespaces/team-a/capacityreservations";

class BlockProjectionsTest : public testing::ApiFixture {
 protected:
  BlockProjectionsTest() {
    for (const char* plural : {"capacityreservations", "ultraservers"}) {
      const auto crd = ReadFile(fmt::format("charts/tahoma/crds/tahoma.dev_{}.yaml", plural));
      TAHOMA_CHECK_OK(server_->InstallCrd(*crd));
    }
    for (const char* ns : {"team-a", "tahoma-system"}) {
      Call("POST", "/api/v1/namespaces", Json{{"metadata", {{"name", ns}}}});
    }
    transport_ = std::make_unique<apiserver::InProcessTransport>(*server_, clock_, "test/1");
    Begin();
    world_.Settle();
  }
  void Begin() {
    projections_ = std::make_unique<BlockProjections>(
        *transport_, clock_, sleeper_, Rng(1),
        BlockProjectionsOptions{
            .snapshot = [this] { return world_.core().snapshot(); },
            .own_namespace = "tahoma-system",
            .may_send = [this] { return leads_; },
            .log = [this](const std::string& line) { lines_.push_back(line); }});
    projections_->Step();  // lists
  }
  // Looks, and lists again, until nothing is due.
  void Settle() {
    for (int i = 0; i < 20; ++i) projections_->Look();
  }
  Json Server(const std::string& name) {
    return Call("GET", std::string(kServers) + "/" + name).body.value("status", Json());
  }
  void DefineNeuronUltraServers() {
    const auto crd = ReadFile("charts/tahoma/aws-crds/neuron.aws.com_neuronultraservers.yaml");
    TAHOMA_CHECK_OK(server_->InstallCrd(*crd));
  }
  Json NeuronServer(const std::string& name) {
    return Call("GET", std::string(kNeuronServers) + "/" + name).body;
  }
  Json Reservation(const std::string& name) {
    return Call("GET", std::string(kReservations) + "/" + name).body.value("status", Json());
  }

  RequestWorld world_;
  NoWait sleeper_;
  bool leads_ = true;
  std::vector<std::string> lines_;
  std::unique_ptr<apiserver::InProcessTransport> transport_;
  std::unique_ptr<BlockProjections> projections_;
};

TEST_F(BlockProjectionsTest, AnUltraServerShowsItsHealthAndWhoseItIs) {
  Settle();
  Json server = Server("us-0");
  EXPECT_EQ(server.at("health"), "OK");
  EXPECT_EQ(server.at("use"), "Idle");
  EXPECT_EQ(server.at("chips").at("free"), 64);
  EXPECT_EQ(server.at("nodes").size(), 4U);
  world_.Buy("train");
  Settle();
  const Block block = world_.BlockOf("train");
  EXPECT_EQ(Server("us-0").value("keptFrom", Server("us-1").value("keptFrom", "")),
            FormatTime(block.start()));
  world_.MoveTo(block.start() - std::chrono::minutes(5));
  Settle();
  const std::string host = world_.BlockOf("train").hosts.at(0);
  EXPECT_EQ(Server(host).at("nextOwner").at("capacityBlock"), "train");
  world_.MoveTo(block.start());
  Settle();
  server = Server(host);
  EXPECT_EQ(server.at("use"), "Block");
  EXPECT_EQ(server.at("owner").at("namespace"), "team-a");
  EXPECT_EQ(server.at("owner").at("endDate"), FormatTime(block.end));
  EXPECT_FALSE(server.contains("nextOwner"));
  world_.MoveTo(world_.BlockOf("train").end);
  Settle();
  EXPECT_EQ(Server(host).at("use"), "Idle");
  EXPECT_FALSE(Server(host).contains("owner"));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(BlockProjectionsTest, AReservationFollowsItsBlock) {
  world_.Buy("train");
  Settle();
  const std::string id = world_.BlockOf("train").reservation;
  EXPECT_EQ(Reservation(id).at("state"), "scheduled");
  EXPECT_EQ(Reservation(id).at("totalInstanceCount"), 4);
  EXPECT_EQ(Reservation(id).at("availableInstanceCount"), 0);
  EXPECT_EQ(Reservation(id).at("capacityBlock"), "train");
  world_.MoveTo(world_.BlockOf("train").start());
  Settle();
  EXPECT_EQ(Reservation(id).at("state"), "active");
  EXPECT_EQ(Reservation(id).at("availableInstanceCount"), 4);
  world_.MoveTo(world_.BlockOf("train").end);
  world_.Delete("capacityblocks", "team-a", "train");
  world_.Settle();
  Settle();
  EXPECT_THAT(Call("GET", kReservations).names(), IsEmpty());
}

TEST_F(BlockProjectionsTest, AStatusThatAnotherClientWroteIsRestored) {
  Settle();
  EXPECT_EQ(Patch(std::string(kServers) + "/us-0", "merge-patch+json",
                  {{"status", {{"health", "Impaired"}, {"cell", "mine"}}},
                   {"metadata", {{"labels", {{"note", "mine"}}}}}})
                .status,
            200);
  Call("DELETE", std::string(kServers) + "/us-1");
  Call("POST", kServers, Json{{"metadata", {{"name", "us-9"}}}});
  Begin();
  Settle();
  EXPECT_EQ(Server("us-0").at("health"), "OK");
  EXPECT_NE(Server("us-0").value("cell", ""), "mine");
  const Json metadata = Call("GET", std::string(kServers) + "/us-0").body.at("metadata");
  EXPECT_EQ(metadata.at("labels").at("note"), "mine");  // is nobody's business
  EXPECT_THAT(Call("GET", kServers).names(), ElementsAre("us-0", "us-1"));
}

TEST_F(BlockProjectionsTest, NothingIsWrittenWhenNothingChangesOrAnotherLeads) {
  Settle();
  const std::string version = Call("GET", kServers).body.at("metadata").at("resourceVersion");
  Begin();
  Settle();
  EXPECT_EQ(Call("GET", kServers).body.at("metadata").at("resourceVersion"), version);
  leads_ = false;
  world_.RemoveUltraServer(1);
  world_.Settle();
  Settle();
  EXPECT_THAT(Call("GET", kServers).names(), ElementsAre("us-0", "us-1"));
  leads_ = true;
  Settle();
  EXPECT_THAT(Call("GET", kServers).names(), ElementsAre("us-0"));
}

TEST_F(BlockProjectionsTest, ALookWritesABoundedNumber) {
  RequestWorld many{60};
  many.Settle();
  BlockProjections projections(
      *transport_, clock_, sleeper_, Rng(1),
      BlockProjectionsOptions{.snapshot = [&] { return many.core().snapshot(); }});
  projections.Step();
  for (std::size_t looks = 1; looks <= 3; ++looks) {
    projections.Look();
    EXPECT_EQ(Call("GET", kServers).names().size(),
              std::min<std::size_t>(60, looks * kProjectionsTogether));
  }
}

TEST_F(BlockProjectionsTest, ANeuronUltraServerIsKeptWhereTheKindIsDefined) {
  Settle();
  EXPECT_EQ(Call("GET", kNeuronServers).status, 404);
  DefineNeuronUltraServers();
  Settle();
  EXPECT_THAT(Call("GET", kNeuronServers).names(), IsEmpty());  // not listed yet
  Begin();
  Settle();
  EXPECT_THAT(Call("GET", kNeuronServers).names(), ElementsAre("us-0", "us-1"));
  Json server = NeuronServer("us-1");
  EXPECT_EQ(server.at("spec").at("instanceType"), "trn2u.48xlarge");
  EXPECT_EQ(server.at("spec").at("topology").at(2).at("nodeName"), "us-1-n2");
  EXPECT_EQ(server.at("status").at("state"), "Ready");
  EXPECT_EQ(server.at("status").at("observedGeneration"), 1);
  world_.RemoveUltraServer(0);
  world_.RemoveNode("us-1-n2");
  world_.Settle();
  Settle();
  EXPECT_THAT(Call("GET", kNeuronServers).names(), ElementsAre("us-1"));
  server = NeuronServer("us-1");
  EXPECT_EQ(server.at("spec").at("topology").size(), 3U);
  EXPECT_EQ(server.at("status").at("state"), "Degraded");
  EXPECT_EQ(server.at("metadata").at("generation"), 2);
  EXPECT_EQ(server.at("status").at("observedGeneration"), 2);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(BlockProjectionsTest,
       ANeuronUltraServerThatAnotherClientWroteIsRestoredAndNothingElseTouched) {
  DefineNeuronUltraServers();
  const std::string elsewhere = "/apis/neuron.aws.com/v1beta1/namespaces/team-a/neuronultraservers";
  const auto make = [&](const std::string& in, const char* name) {
    const Json object = {{"apiVersion", "neuron.aws.com/v1beta1"},
                         {"kind", "NeuronUltraServer"},
                         {"metadata", {{"name", name}}},
                         {"spec", Json::object()}};
    const auto answer = Call("POST", in, object);
    EXPECT_EQ(answer.status, 201) << answer.text;
  };
  make(elsewhere, "us-9");
  make(kNeuronServers, "us-9");
  Begin();
  Settle();
  const Json before = NeuronServer("us-0");
  const std::string path = std::string(kNeuronServers) + "/us-0";
  const auto patch = [&](const std::string& at, const Json& body) {
    EXPECT_EQ(Patch(at, "merge-patch+json", body).status, 200);
  };
  patch(path, {{"spec", {{"topology", Json::array()}}}});
  patch(path + "/status", {{"status", {{"state", "Degraded"}}}});
  Begin();
  Settle();
  const Json after = NeuronServer("us-0");
  EXPECT_EQ(after.at("spec"), before.at("spec"));
  EXPECT_EQ(after.at("status").at("state"), "Ready");
  EXPECT_EQ(after.at("status").at("observedGeneration"), after.at("metadata").at("generation"));
  EXPECT_EQ(after.at("status").at("conditions"), before.at("status").at("conditions"));
  EXPECT_THAT(Call("GET", kNeuronServers).names(), ElementsAre("us-0", "us-1"));
  EXPECT_THAT(Call("GET", elsewhere).names(), ElementsAre("us-9"));
  const std::string version = Call("GET", kNeuronServers).body.at("metadata").at("resourceVersion");
  Begin();
  Settle();
  EXPECT_EQ(Call("GET", kNeuronServers).body.at("metadata").at("resourceVersion"), version);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST(UltraServerNameTest, AnIdThatKubernetesDoesNotAllowGetsADigest) {
  EXPECT_EQ(UltraServerName("us-0"), "us-0");
  const std::string name = UltraServerName("US_7/x");
  EXPECT_EQ(name.substr(0, 10), "us-us-7-x-");
  EXPECT_NE(name, UltraServerName("us_7/x"));
}

}  // namespace
}  // namespace tahoma::controller
