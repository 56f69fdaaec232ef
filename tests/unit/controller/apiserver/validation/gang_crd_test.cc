// A Gang is valid by the CustomResourceDefinition, its schema and its CEL together, exactly when it
// is by controller/model/gang_rules.h, and what is wrong is said in the same words.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/model/gang_rules.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& Gangs() {
  static const auto* const kind = new std::shared_ptr<const Kind>(KindOfCrdFile("gangs"));
  return **kind;
}

Json GangOf(const GangRequest& request) {
  Json spec = {{"members", request.members}, {"slices", request.slices}};
  if (request.min_members) spec["minMembers"] = *request.min_members;
  if (!request.shape.empty()) spec["shape"] = request.shape;
  if (request.chips) spec["chips"] = *request.chips;
  if (!request.max_runtime.empty()) spec["maxRuntime"] = request.max_runtime;
  if (!request.min_runtime.empty()) spec["minRuntime"] = request.min_runtime;
  if (!request.preemption_policy.empty()) spec["preemptionPolicy"] = request.preemption_policy;
  Json gang = {{"apiVersion", "tahoma.dev/v1alpha1"},
               {"kind", "Gang"},
               {"metadata", {{"name", "g"}, {"namespace", "default"}}},
               {"spec", std::move(spec)}};
  if (request.failure_policy != "RestartAll") {
    gang["spec"]["failurePolicy"] = request.failure_policy;
  }
  if (request.start_within != "10m") gang["spec"]["startWithin"] = request.start_within;
  ApplyDefaults(*Gangs().schema, gang);
  return gang;
}

void ExpectAgreement(const GangRequest& request, std::map<std::string, int>& seen) {
  const Json gang = GangOf(request);
  SCOPED_TRACE(gang.at("spec").dump());
  const std::vector<GangFault> faults = FaultsOf(request);
  if (!ValidateSchema(*Gangs().schema, gang).empty()) {
    EXPECT_FALSE(faults.empty()) << "the schema refuses it";
    ++seen["schema"];
    return;
  }
  const auto broken = BrokenRules(Gangs(), gang);
  EXPECT_EQ(faults.empty(), broken.empty()) << Describe(faults);
  for (const GangFault& fault : faults) {
    EXPECT_TRUE(std::any_of(broken.begin(), broken.end(),
                            [&](const auto& rule) {
                              return rule.first == "spec." + fault.field &&
                                     fault.why.starts_with(rule.second);
                            }))
        << fault.field << ": " << fault.why;
    ++seen[fault.field + ": " + fault.why.substr(0, 12)];
  }
  if (faults.empty()) ++seen["valid"];
}

TEST(GangCrdTest, EachRuleIsBrokenByAGangOfItsOwn) {
  const std::map<std::string, GangRequest> breaking = {
      {"each side must be 1, 2 or 4", {.shape = "3x5x2"}},
      {"may not be set together with spec.shape, which says how many chips a slice has",
       {.shape = "4x4", .chips = 16}},
      {"must be 1, 2, 4, 8, 16, 32 or 64, or a multiple of 64 up to 65536", {.chips = 12}},
      {"must divide spec.members", {.members = 4, .slices = 3}},
      {"the boxes of 64 chips must divide spec.members: every box has the same number of pods",
       {.members = 3, .chips = 128}},
      {"must be 1 to spec.members", {.members = 2, .min_members = 3}},
      {"may not be set together with spec.shape, spec.chips or spec.slices",
       {.members = 4, .min_members = 2, .shape = "4x4"}}};
  EXPECT_EQ(breaking.size(), Gangs().schema->Field("spec")->rules.size());
  for (const auto& [message, request] : breaking) {
    const auto broken = BrokenRules(Gangs(), GangOf(request));
    ASSERT_EQ(broken.size(), 1U) << message;
    EXPECT_EQ(broken.begin()->second, message);
  }
}

class RandomRequest {
 public:
  explicit RandomRequest(std::uint64_t seed) : rng_(seed) {}

  GangRequest Next() {
    GangRequest request;
    request.members = Number({1, 2, 3, 4, 8, 12, 16, 128, 1024, 4096, 4097, 0});
    request.slices = rng_.Chance(1, 2) ? 1 : Number({1, 2, 3, 4, 8, 1024, 1025, 0, -1});
    if (rng_.Chance(1, 3)) {
      request.chips = Number({1, 2, 4, 8, 12, 16, 32, 48, 64, 100, 128, 192, 65536, 65600, 0, -64});
    }
    if (rng_.Chance(1, request.chips ? 8 : 2))
      request.shape = Text({"1", "2", "4", "3", "04", "x"});
    if (rng_.Chance(1, 8)) request.min_members = Number({1, 2, 3, 4, 8, 128, 4096, 4097, 0, -1});
    if (rng_.Chance(1, 4)) {
      request.max_runtime = Text({"1h", "30m", "5s", "0s", "123456789", "0", "h", "-", "1d"});
    }
    if (rng_.Chance(1, 8)) request.min_runtime = Text({"1h", "30m", "5s", "0s", "h", "1d"});
    if (rng_.Chance(1, 8)) {
      constexpr const char* kPolicies[] = {"Never", "PreemptLowerPriority", "never"};
      request.preemption_policy = kPolicies[rng_.Below(3)];
    }
    if (rng_.Chance(1, 8)) request.start_within = Text({"1h", "30m", "5s", "0s", "h", "1d"});
    if (rng_.Chance(1, 8)) {
      constexpr const char* kPolicies[] = {"Replace", "Fail", "Never", ""};
      request.failure_policy = kPolicies[rng_.Below(4)];
    }
    return request;
  }

 private:
  std::int64_t Number(const std::vector<std::int64_t>& choices) {
    return rng_.Chance(1, 8) ? static_cast<std::int64_t>(rng_.Below(200))
                             : choices[rng_.Below(choices.size())];
  }
  // One to four pieces; those of a shape mostly with x between them.
  std::string Text(const std::vector<std::string>& pieces) {
    const bool shape = pieces.back() == "x";
    std::string text;
    for (std::uint64_t left = 1 + rng_.Below(4); left > 0; --left) {
      if (shape && !text.empty() && !rng_.Chance(1, 16)) text += 'x';
      text += pieces[rng_.Below(rng_.Chance(3, 4) ? 3 : pieces.size())];
    }
    return text;
  }

  Rng rng_;
};

TEST(GangCrdTest, TheDefinitionAndTheRulesAgreeOnRandomGangs) {
  std::map<std::string, int> seen;
  RandomRequest requests(17);
  for (int i = 0; i < 20'000 && !::testing::Test::HasFailure(); ++i) {
    ExpectAgreement(requests.Next(), seen);
  }
  EXPECT_EQ(seen.size(), 9U);  // the schema, seven rules and the valid
  for (const auto& [what, times] : seen) EXPECT_GT(times, 50) << what;
}

TEST(GangCrdTest, TheDefinitionAndTheRulesAgreeAtTheBounds) {
  std::map<std::string, int> seen;
  for (const std::string runtime :
       {"999999999h", "1000000000s", "0000000001s", "1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h",
        "1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h1h", "1h ", " 1h", "1H", "+1h"}) {
    ExpectAgreement({.max_runtime = runtime}, seen);
  }
  for (const std::string shape : {"4x4x4", "004x4", "4x4x", "x4", "4xx4", "4x4\n", "1x1x1x1",
                                  "+4x4", "4x4x4x", "44x4", "4 x4", "0x4", "16x16x16"}) {
    ExpectAgreement({.shape = shape}, seen);
  }
  for (const std::int64_t members : {std::int64_t{1}, std::int64_t{4096}, std::int64_t{1} << 40}) {
    ExpectAgreement({.members = members, .slices = members}, seen);
    ExpectAgreement({.members = members, .chips = members * 64}, seen);
    ExpectAgreement({.members = 1024, .chips = members * 16}, seen);
  }
}

// The defect: once a rule was added to the definition, a Gang from before could not even be
// labelled. The answers of rules count only for what has changed (KEP-4008).
TEST(GangCrdTest, ASpecFromBeforeARuleMayStayAsItIs) {
  const Json before = GangOf({.chips = 12});
  Json labelled = before;
  labelled["metadata"]["labels"] = {{"a", "b"}};
  EXPECT_TRUE(ValidateUpdate(Gangs(), before, labelled, "").empty());
  Json changed = before;
  changed["spec"]["priority"] = 5;
  EXPECT_EQ(ValidateUpdate(Gangs(), before, changed, "").size(), 1U);
}

}  // namespace
}  // namespace tahoma::controller::apiserver
