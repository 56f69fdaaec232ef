// Pods leave devices that are tainted NoExecute, as Kubernetes' device taint eviction has it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/base/json.h"
#include "tests/unit/controller/apiserver/controllers/controllers_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

using std::chrono::seconds;

// A pod that runs on neuron-device-0 of node n, which the test may taint.
class TaintTest : public ControllersTest {
 protected:
  explicit TaintTest(ObjectStore::Options objects = {}) : ControllersTest(objects) {}
  void Run(const Json& tolerations = nullptr) {
    Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
    ASSERT_EQ(status_, 201);
    Publish(1, nullptr);
    MakeTemplate("t");
    const Json pod = MakePod("web", kOneClaim);
    Step();
    claim_ = ClaimOf("web");
    Allocate(claim_, pod, tolerations);
    Bind("web");
    Step();
    ASSERT_TRUE(Exists(kPods + "/web"));
  }
  // The ResourceSlice of node n in a new generation, its first device with the taint.
  void Publish(int generation, const Json& taint, const char* driver = "neuron.aws.com") {
    Json device = {{"name", "neuron-device-0"}};
    if (!taint.is_null()) device["taints"] = Json::array({taint});
    const std::string name = fmt::format("n-{}-{}", generation, driver);
    const Json made =
        Call("POST", kSlices,
             {{"metadata", {{"name", name}}},
              {"spec",
               {{"driver", driver},
                {"nodeName", "n"},
                {"pool", {{"name", "n"}, {"generation", generation}, {"resourceSliceCount", 1}}},
                {"devices", Json::array({device})}}}});
    ASSERT_EQ(status_, 201) << made;
  }
  // Whether a pod with a toleration of so many seconds leaves at once.
  bool EvictedWith(std::int64_t tolerated_seconds) {
    ++rounds_;
    if (rounds_ == 1) {
      Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
      MakeTemplate("t");
      Publish(1, Broken());
    }
    const std::string name = fmt::format("p{}", rounds_);
    const Json pod = MakePod(name, kOneClaim);
    Step();
    Allocate(ClaimOf(name), pod,
             Json::array({{{"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", tolerated_seconds}}}));
    Bind(name);
    return Evicted(name);
  }
  bool Evicted(const std::string& pod = "web") {
    Step();
    const Json object = Get(kPods + "/" + pod);
    if (status_ == 404) return true;
    return ValueAt(object, {"metadata", "deletionTimestamp"}).is_string();
  }

  static Json Broken(const char* effect = "NoExecute") {
    return {{"key", "tahoma.dev/unhealthy"}, {"value", "dma-error"}, {"effect", effect}};
  }
  static inline const std::string kSlices = "/apis/resource.k8s.io/v1/resourceslices";
  std::string claim_;
  int rounds_ = 0;
};

TEST_F(TaintTest, APodOnADeviceThatBreaksIsDeletedAndSaysWhy) {
  Run();
  Publish(2, Broken());
  EXPECT_TRUE(Evicted());
  const Json pod = Get(kPods + "/web");
  ASSERT_EQ(status_, 200) << "it has its grace period";
  Json told;
  for (const Json& condition : pod["status"]["conditions"]) {
    if (condition["type"] == "DisruptionTarget") told = condition;
  }
  ASSERT_TRUE(told.is_object()) << pod;
  EXPECT_EQ(told["status"], "True");
  EXPECT_EQ(told["reason"], "DeletionByDeviceTaintManager");
  const Json events = Get("/api/v1/namespaces/default/events")["items"];
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["reason"], "DeviceTaintManagerEviction");
  EXPECT_EQ(events[0]["involvedObject"]["uid"], pod["metadata"]["uid"]);
  EXPECT_EQ(Step(), 0) << "nothing is left to do";
}

TEST_F(TaintTest, APodThatIsBoundToADeviceThatBrokeBeforeIsDeleted) {
  Publish(1, Broken());
  MakeTemplate("t");
  const Json pod = MakePod("web", kOneClaim);
  Step();
  Allocate(ClaimOf("web"), pod);
  EXPECT_FALSE(Evicted()) << "it is not bound";
  Bind("web");
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, OtherEffectsOtherDevicesAndOlderGenerationsEvictNobody) {
  Run();
  Publish(2, Broken("NoSchedule"));
  EXPECT_FALSE(Evicted());
  Publish(4, nullptr);
  Publish(3, Broken());
  EXPECT_FALSE(Evicted()) << "generation 4 says that it is repaired";
}

TEST_F(TaintTest, ATolerationKeepsThePod) {
  Run(Json::array(
      {{{"key", "tahoma.dev/unhealthy"}, {"operator", "Exists"}, {"effect", "NoExecute"}},
       {{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 1}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(100000));
  EXPECT_FALSE(Evicted());
}

TEST_F(TaintTest, ATolerationOfAnotherTaintDoesNotKeepThePod) {
  Run(Json::array(
      {{{"key", "tahoma.dev/managed"}, {"operator", "Exists"}, {"effect", "NoSchedule"}},
       {{"key", "tahoma.dev/unhealthy"},
        {"operator", "Equal"},
        {"value", "other"},
        {"effect", "NoExecute"}}}));
  Publish(2, Broken());
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, ATolerationThatDoesNotNameTheEffectDoesNotKeepThePod) {
  Run(Json::array({{{"key", "tahoma.dev/unhealthy"}, {"operator", "Exists"}}}));
  Publish(2, Broken());
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, ATolerationOfSomeSecondsIsGrantedOnce) {
  Run(Json::array({{{"key", "tahoma.dev/unhealthy"},
                    {"operator", "Exists"},
                    {"effect", "NoExecute"},
                    {"tolerationSeconds", 60}}}));
  Json taint = Broken();
  taint["timeAdded"] = FormatTime(clock_.WallNow());
  Publish(2, taint);
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(59));
  Publish(3, taint);  // a driver copies the time from one generation to the next
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Evicted()) << "a new generation does not begin the time again";
}

TEST_F(TaintTest, ARepairWithinTheTimeKeepsThePodAndTheNextBreakBeginsAnew) {
  Run(Json::array({{{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 60}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(30));
  Publish(3, nullptr);
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(60));
  EXPECT_FALSE(Evicted());
  Publish(4, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(60));
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, FinishedPodsAreLeftAlone) {
  Run();
  SetPhase("web", "Succeeded");
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
}

TEST_F(TaintTest, ATolerationLongerThanTheClocksRangeIsForEver) {
  for (const std::int64_t forever : {std::int64_t{100'000'000'000}, INT64_MAX}) {
    SCOPED_TRACE(forever);
    EXPECT_FALSE(EvictedWith(forever));
  }
}

TEST_F(TaintTest, ATolerationOfZeroOrNegativeSecondsKeepsNoPod) {
  EXPECT_TRUE(EvictedWith(0));
  EXPECT_TRUE(EvictedWith(-5));
}

TEST_F(TaintTest, ATaintCountsFromItsTimeAdded) {
  Run(Json::array({{{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 60}}}));
  Json taint = Broken();
  taint["timeAdded"] = FormatTime(clock_.WallNow() - seconds(50));
  Publish(2, taint);
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(9));
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, TheTimeGoesOnWhenTheTaintIsForgottenWithTheSlicesThatHadIt) {
  Run(Json::array({{{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 60}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  Call("DELETE", kSlices + "/n-2-neuron.aws.com");
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(100));
  Publish(3, Broken());
  EXPECT_FALSE(Evicted()) << "the slice was gone meanwhile: the device broke anew";
}

TEST_F(TaintTest, EveryPodOfAClaimThatIsSharedLeaves) {
  Run();
  const Json other = MakePod("other");
  Json claim = Get(kResource + "resourceclaims/" + claim_);
  claim["status"]["reservedFor"].push_back(
      {{"resource", "pods"}, {"name", "other"}, {"uid", other["metadata"]["uid"]}});
  Call("PUT", kResource + "resourceclaims/" + claim_ + "/status", claim);
  ASSERT_EQ(status_, 200);
  Bind("other");
  Publish(2, Broken());
  EXPECT_TRUE(Evicted("web"));
  EXPECT_TRUE(Evicted("other"));
}

TEST_F(TaintTest, APodThatTakesTheNameOfAnEvictedOneIsLeftAlone) {
  Run();
  Call("DELETE", kPods + "/web", {{"gracePeriodSeconds", 0}});
  MakePod("web");
  Bind("web");
  Publish(2, Broken());
  EXPECT_FALSE(Evicted()) << "the claim was reserved for the one before";
}

TEST_F(TaintTest, AfterARestartATaintIsFoundAgain) {
  Run();
  Publish(2, Broken());
  Restart();
  EXPECT_TRUE(Evicted());
}

TEST_F(TaintTest, ATaintOfAFarFutureThatIsToleratedForLongEvictsNobodyNow) {
  Run(Json::array(
      {{{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 3'153'600'000}}}));
  Json taint = Broken();
  taint["timeAdded"] = "2250-01-01T00:00:00Z";
  Publish(2, taint);
  EXPECT_FALSE(Evicted());
}

TEST_F(TaintTest, DevicesOfTwoDriversWithOneNameAreTwo) {
  Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  MakeTemplate("t");
  const Json pod = MakePod("web", kOneClaim);
  Step();
  Json claim = Get(kResource + "resourceclaims/" + ClaimOf("web"));
  const auto device = [](const char* driver, int tolerated_seconds) {
    return Json{{"request", "r"},
                {"driver", driver},
                {"pool", "n"},
                {"device", "neuron-device-0"},
                {"tolerations", Json::array({{{"operator", "Exists"},
                                              {"effect", "NoExecute"},
                                              {"tolerationSeconds", tolerated_seconds}}})}};
  };
  claim["status"] = {
      {"allocation",
       {{"devices",
         {{"results", {device("neuron.aws.com", 1000), device("other.example.com", 60)}}}}}},
      {"reservedFor",
       Json::array({{{"resource", "pods"}, {"name", "web"}, {"uid", pod["metadata"]["uid"]}}})}};
  Call("PUT", kResource + "resourceclaims/" + ClaimOf("web") + "/status", claim);
  ASSERT_EQ(status_, 200);
  Bind("web");
  Publish(1, Broken());
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(30));
  Publish(1, Broken(), "other.example.com");
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(59));
  EXPECT_FALSE(Evicted()) << "the other's device broke later";
  clock_.Advance(seconds(1));
  EXPECT_TRUE(Evicted());
}

// With a log so short that events are forgotten between two looks.
class ForgetfulTaintTest : public TaintTest {
 protected:
  ForgetfulTaintTest() : TaintTest({.log_count_max = 4}) {}
};

TEST_F(ForgetfulTaintTest, ARepairThatIsForgottenEndsTheTimeAllTheSame) {
  Run(Json::array({{{"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 60}}}));
  Publish(2, Broken());
  EXPECT_FALSE(Evicted());
  for (const char* name : {"n-1", "n-2"}) {
    Call("DELETE", kSlices + "/" + name + "-neuron.aws.com");
    ASSERT_EQ(status_, 200);
  }
  for (int i = 3; i < 9; ++i) Publish(i, nullptr);
  EXPECT_FALSE(Evicted());
  clock_.Advance(seconds(100));
  Publish(9, Broken());
  EXPECT_FALSE(Evicted()) << "it broke anew";
  clock_.Advance(seconds(60));
  EXPECT_TRUE(Evicted());
}

}  // namespace
}  // namespace tahoma::controller::apiserver
