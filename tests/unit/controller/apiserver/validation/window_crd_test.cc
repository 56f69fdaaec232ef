// A MaintenanceWindow is valid by the CustomResourceDefinition, its schema and its CEL together,
// exactly when controller/core/facts/window_object.h finds no broken rule.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/core/facts/window_object.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

constexpr const char* kOne = "2026-12-01T01:00:00Z";
constexpr const char* kThree = "2026-12-01T03:00:00Z";

const Kind& WindowKind() {
  static const auto* const kind =
      new std::shared_ptr<const Kind>(KindOfCrdFile("maintenancewindows"));
  return **kind;
}

Json WindowOf(const Json& spec) {
  Json window = {{"apiVersion", "tahoma.dev/v1alpha1"},
                 {"kind", "MaintenanceWindow"},
                 {"metadata", {{"name", "night-fix"}}},
                 {"spec", spec}};
  ApplyDefaults(*WindowKind().schema, window);
  return window;
}

std::string WindowInvalidBy(const Json& window) { return ParseWindow(window)->spec->invalid; }

TEST(WindowCrdTest, EachRuleIsBrokenByAWindowOfItsOwnAndSaysTheSame) {
  struct Case {
    std::string field, message;
    Json spec;
  };
  const std::vector<Case> cases = {
      {"spec", "must have nodes or ultraServers", {{"from", kOne}, {"until", kThree}}},
      {"spec",
       "must have nodes or ultraServers",
       {{"from", kOne}, {"until", kThree}, {"nodes", Json::array()}}},
      {"spec.until",
       "must be later than spec.from",
       {{"from", kThree}, {"until", kOne}, {"nodes", {"n"}}}},
      {"spec.until",
       "must be later than spec.from",
       {{"from", kOne}, {"until", kOne}, {"ultraServers", {"us-0"}}}},
      {"spec.warning",
       "must be more than 0, such as 1h",
       {{"from", kOne}, {"until", kThree}, {"nodes", {"n"}}, {"warning", "0m"}}}};
  for (const Case& one : cases) {
    const Json window = WindowOf(one.spec);
    EXPECT_EQ(BrokenRules(WindowKind(), window),
              (std::multimap<std::string, std::string>{{one.field, one.message}}))
        << one.spec.dump();
    EXPECT_NE(WindowInvalidBy(window).find(one.field + ": " + one.message), std::string::npos)
        << WindowInvalidBy(window);
  }
}

TEST(WindowCrdTest, AnObjectIsReadAsItIsWritten) {
  const Json window = WindowOf({{"nodes", {"node-a", "ip-10-0-0-1.ec2.internal"}},
                                {"ultraServers", {"us-0"}},
                                {"from", kOne},
                                {"until", kThree},
                                {"warning", "15m"},
                                {"reason", "new cables"},
                                {"drain", true}});
  EXPECT_TRUE(ValidateCreate(WindowKind(), window).empty());
  WindowSpec expected;
  expected.name = "night-fix";
  expected.nodes = {"node-a", "ip-10-0-0-1.ec2.internal"};
  expected.ultra_servers = {"us-0"};
  expected.from = *ParseTime(kOne);
  expected.until = *ParseTime(kThree);
  expected.warning = std::chrono::minutes(15);
  expected.reason = "new cables";
  expected.drain = true;
  EXPECT_EQ(*ParseWindow(window)->spec, expected);
}

TEST(WindowCrdTest, ThePhaseFollowsFromTheTimeAlone) {
  const auto spec =
      ParseWindow(WindowOf({{"nodes", {"n"}}, {"from", kOne}, {"until", kThree}}))->spec;
  const WallTime from = spec->from;
  EXPECT_EQ(PhaseAt(*spec, from - std::chrono::minutes(61)), WindowPhase::kScheduled);
  EXPECT_EQ(PhaseAt(*spec, from - std::chrono::minutes(60)), WindowPhase::kWarned);
  EXPECT_EQ(PhaseAt(*spec, from), WindowPhase::kActive);
  EXPECT_EQ(PhaseAt(*spec, spec->until - std::chrono::nanoseconds(1)), WindowPhase::kActive);
  EXPECT_EQ(PhaseAt(*spec, spec->until), WindowPhase::kOver);
}

class RandomWindow {
 public:
  explicit RandomWindow(std::uint64_t seed) : rng_(seed) {}

  Json Next() {
    Json spec = Json::object();
    const auto maybe = [&](const char* field, std::uint64_t of, auto make) {
      if (!rng_.Chance(1, of)) spec[field] = make();
    };
    const auto time = [&] {
      return Pick({kOne, kThree, "2026-12-01T02:00:00Z", "2026-12-01T02:00:00.5Z",
                   "2026-12-01T02:00:00+01:00", "2026-13-01T02:00:00Z", "2026-12-01", "",
                   "2026-12-01T24:00:00Z", "2026-12-01t02:00:00Z", "2026-12-01T02:00:00Z "});
    };
    maybe("from", 16, time);
    maybe("until", 16, time);
    maybe("nodes", 2, [&] { return Names(); });
    maybe("ultraServers", 2, [&] { return Names(); });
    maybe("warning", 2, [&] { return Pick({"1h", "15m", "1s", "0s", "1d", "", "h", "1h30m"}); });
    maybe("reason", 2, [&] { return Pick({"cables", "", std::string(256, 'x')}); });
    if (rng_.Chance(1, 4)) spec["drain"] = rng_.Chance(1, 2);
    return spec;
  }

 private:
  std::string Pick(const std::vector<std::string>& choices) {
    return choices[rng_.Below(rng_.Chance(3, 4) ? std::min<std::size_t>(3, choices.size())
                                                : choices.size())];
  }
  Json Names() {
    Json names = Json::array();
    for (std::uint64_t left = rng_.Below(3); left > 0; --left) {
      names.push_back(
          Pick({"node-a", "node-b", "a.b", "", "-a", "a_b", std::string(254, 'a'), "A1"}));
    }
    return names;
  }

  Rng rng_;
};

TEST(WindowCrdTest, TheDefinitionAndTheControllerAgreeOnRandomWindows) {
  RandomWindow windows(17);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
    const Json window = WindowOf(windows.Next());
    const auto causes = ValidateCreate(WindowKind(), window);
    const std::string by_controller = WindowInvalidBy(window);
    EXPECT_EQ(causes.empty(), by_controller.empty())
        << window.dump() << ": " << by_controller
        << (causes.empty() ? "" : " / " + causes.front().field + " " + causes.front().message);
    ++(causes.empty() ? valid : invalid);
  }
  EXPECT_GT(valid, 500);
  EXPECT_GT(invalid, 1000);
}

TEST(WindowCrdTest, ADamagedWindowIsInvalidAndSaysWhy) {
  EXPECT_FALSE(ParseWindow(ParseJson("{}")).ok());
  for (const char* text :
       {R"({"metadata": {"name": "w"}})", R"({"metadata": {"name": "w"}, "spec": 3})",
        R"({"metadata": {"name": "w"}, "spec": {"nodes": ["n"], "from": "2026-02-30T00:00:00Z",
            "until": "2026-12-01T00:00:00Z"}})",
        R"({"metadata": {"name": "w"}, "spec": {"nodes": 3}})"}) {
    const auto window = ParseWindow(ParseJson(text));
    ASSERT_TRUE(window.ok()) << text;
    EXPECT_NE(window->spec->invalid, "") << text;
    EXPECT_EQ(PhaseAt(*window->spec, {}), WindowPhase::kInvalid);
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
