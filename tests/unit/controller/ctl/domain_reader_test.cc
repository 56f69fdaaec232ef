// One UltraServer or instance is read by selectors. Reading the whole fleet is the oracle: the
// domain must be drawn as it is drawn from that.

#include "controller/ctl/domain_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/apiserver/http/in_process_transport.h"
#include "controller/ctl/draw.h"
#include "controller/ctl/fleet_reader.h"
#include "dra-plugin/inventory/pool.h"
#include "dra-plugin/slices/slice_json.h"
#include "lib/base/json.h"
#include "lib/hw/catalogue.h"
#include "tests/support/api_fixture.h"

namespace tahoma::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";

// Counts requests by what they ask for.
class Counting final : public kube::Transport {
 public:
  explicit Counting(kube::Transport& below) : below_(below) {}
  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    asked.push_back(request.target);
    return below_.Send(request);
  }
  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle) override {
    return below_.Stream(request, sink, idle);
  }

  std::vector<std::string> asked;

 private:
  kube::Transport& below_;
};

class DomainReaderTest : public testing::ApiFixture {
 protected:
  // A node of an UltraServer, or a lone one for z = -1. `labelled`: as the pod runner labels it.
  void AddNode(const std::string& name, const std::string& ultra = "", int z = -1,
               bool labelled = true) {
    wire::Inventory inventory;
    inventory.node_name = name;
    inventory.instance_type = z < 0 ? "trn2.48xlarge" : "trn2u.48xlarge";
    inventory.driver_version = "2.26.10.0";
    if (z >= 0) inventory.ultra_server = {.id = ultra, .node_id = z};
    const int chips = hw::FindInstanceType(inventory.instance_type)->chip_count();
    for (int chip = 0; chip < chips; ++chip) inventory.chips.push_back({.index = chip, .lnc = 2});
    Json node = {{"metadata", {{"name", name}}}};
    if (z >= 0 && labelled) {
      node["metadata"]["labels"] = {{"topology.k8s.aws/ultraserver-id", ultra}};
    }
    const testing::Answer made = Call("POST", "/api/v1/nodes", node);
    ASSERT_EQ(made.status, 201) << made.text;
    const auto slices = dra::CutIntoSlices(*dra::BuildPool(inventory, {}));
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Json slice = dra::SliceObject({name, made.body["metadata"]["uid"]},
                                          {.slice_count = slices.size()}, slices[i], i);
      const testing::Answer put = Call("POST", "/apis/resource.k8s.io/v1/resourceslices", slice);
      ASSERT_EQ(put.status, 201) << put.text;
    }
  }
  void AddUltraServer(const std::string& id, bool labelled = true) {
    for (int z = 0; z < 4; ++z) AddNode(id + "-n" + std::to_string(z), id, z, labelled);
  }

  // A pod, on that node unless it is empty, with a chip of `holds`.
  void AddPod(const std::string& name, const std::string& node, const std::string& holds) {
    Json pod = PodOf(name);
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    const testing::Answer made = Call("POST", kPods, pod);
    ASSERT_EQ(made.status, 201) << made.text;
    const Json request = {{"name", "chips"}, {"exactly", {{"deviceClassName", "neuron.aws.com"}}}};
    const testing::Answer claim =
        Call("POST", kClaims,
             Json{{"metadata", {{"name", name}}},
                  {"spec", {{"devices", {{"requests", Json::array({request})}}}}}});
    ASSERT_EQ(claim.status, 201) << claim.text;
    const Json result = {{"request", "chips"},
                         {"driver", "neuron.aws.com"},
                         {"pool", holds},
                         {"device", "neuron-device-5"}};
    const Json user = {{"resource", "pods"}, {"name", name}, {"uid", made.body["metadata"]["uid"]}};
    const testing::Answer held =
        Patch(std::string(kClaims) + "/" + name + "/status", "merge-patch+json",
              {{"status",
                {{"allocation", {{"devices", {{"results", Json::array({result})}}}}},
                 {"reservedFor", Json::array({user})}}}});
    ASSERT_EQ(held.status, 200) << held.text;
  }

  std::optional<std::string> DrawnFromAll(const std::string& name) {
    apiserver::InProcessTransport transport(*server_, clock_, "test");
    const auto fleet = ReadFleet(transport);
    TAHOMA_CHECK_OK(fleet.status());
    return DrawDomain(fleet->cluster, fleet->notes, name);
  }
  std::optional<std::string> Drawn(const std::string& name) {
    apiserver::InProcessTransport transport(*server_, clock_, "test");
    Counting counting(transport);
    const auto fleet = ReadDomain(counting, name);
    TAHOMA_CHECK_OK(fleet.status());
    asked_ = counting.asked;
    return DrawDomain(fleet->cluster, fleet->notes, name);
  }
  // Whether a list of all objects of that kind was asked for.
  bool AskedForAll(const std::string& plural) const {
    return std::any_of(asked_.begin(), asked_.end(), [&](const std::string& target) {
      return target.find("/" + plural + "?limit=") != std::string::npos;
    });
  }

  std::vector<std::string> asked_;
};

TEST_F(DomainReaderTest, AnUltraServerIsDrawnAsFromTheWholeFleet) {
  AddUltraServer("us-0");
  AddUltraServer("us-1");
  AddNode("lone");
  AddPod("a", "us-0-n1", "us-0-n1");
  AddPod("b", "us-1-n2", "us-1-n2");
  AddPod("c", "lone", "lone");
  for (const std::string name : {"us-0", "us-1", "us-1-n3", "lone"}) {
    const auto drawn = Drawn(name);
    ASSERT_TRUE(drawn) << name;
    EXPECT_EQ(*drawn, DrawnFromAll(name)) << name;
    EXPECT_FALSE(AskedForAll("nodes")) << name;
    EXPECT_FALSE(AskedForAll("resourceslices")) << name;
    EXPECT_FALSE(AskedForAll("pods")) << name;
  }
  EXPECT_THAT(*Drawn("us-0"), HasSubstr("A  pod default/a  pods a"));
  EXPECT_THAT(*Drawn("us-0"), Not(HasSubstr("us-1")));
}

TEST_F(DomainReaderTest, APodThatIsNotBoundYetIsNamed) {
  AddUltraServer("us-0");
  AddPod("early", "", "us-0-n0");
  EXPECT_THAT(Drawn("us-0").value_or(""), HasSubstr("A  pod default/early  pods early"));
  EXPECT_EQ(Drawn("us-0"), DrawnFromAll("us-0"));
}

// As where nothing but AWS's driver says which UltraServer a node is in.
TEST_F(DomainReaderTest, WithoutLabelsTheWholeFleetIsRead) {
  AddUltraServer("us-0", false);
  AddPod("a", "us-0-n1", "us-0-n1");
  for (const std::string name : {"us-0", "us-0-n2"}) {
    const auto drawn = Drawn(name);
    ASSERT_TRUE(drawn) << name;
    EXPECT_EQ(*drawn, DrawnFromAll(name));
    EXPECT_THAT(*drawn, HasSubstr("z=3 us-0-n3"));
    EXPECT_TRUE(AskedForAll("nodes"));
  }
}

TEST_F(DomainReaderTest, NobodyOfThatNameIsNotDrawn) {
  AddUltraServer("us-0");
  EXPECT_FALSE(Drawn("us-7"));
  EXPECT_FALSE(Drawn("no label value!"));
}

}  // namespace
}  // namespace tahoma::controller
