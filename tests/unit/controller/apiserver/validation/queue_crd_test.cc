// A Queue is valid by the CustomResourceDefinition, its schema and its CEL together, exactly when
// controller/core/facts/queue_object.h finds no broken rule.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "controller/apiserver/schema/schema.h"
#include "controller/apiserver/validation/defaults.h"
#include "controller/apiserver/validation/validation.h"
#include "controller/core/facts/queue_object.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/apiserver/validation/crd_file.h"

namespace tahoma::controller::apiserver {
namespace {

const Kind& Queues() {
  static const auto* const kind = new std::shared_ptr<const Kind>(KindOfCrdFile("queues"));
  return **kind;
}

Json QueueOf(const Json& spec, const std::string& name = "research") {
  Json queue = {{"apiVersion", "tahoma.dev/v1alpha1"},
                {"kind", "Queue"},
                {"metadata", {{"name", name}}},
                {"spec", spec}};
  ApplyDefaults(*Queues().schema, queue);
  return queue;
}

std::string InvalidBy(const Json& queue) { return ParseQueue(queue)->spec->invalid; }

TEST(QueueCrdTest, EachRuleIsBrokenByAQueueOfItsOwnAndSaysTheSame) {
  const Json chips = {{"trn2.48xlarge", 64}}, more = {{"trn2.48xlarge", 65}};
  struct Case {
    std::string field, message;
    Json spec;
  };
  const std::vector<Case> cases = {
      {"spec.parent", "must name another queue", {{"parent", "research"}}},
      {"spec.guaranteed",
       "must name instance types, such as trn2.48xlarge",
       {{"guaranteed", {{"trn2", 1}}}}},
      {"spec.limit", "must name instance types, such as trn2.48xlarge", {{"limit", {{"", 1}}}}},
      {"spec.borrowingLimit",
       "must name instance types, such as trn2.48xlarge",
       {{"borrowingLimit", {{"TRN2.48xlarge", 1}}}}},
      {"spec.guaranteed",
       "must be at most spec.limit of the same instance type",
       {{"guaranteed", more}, {"limit", chips}}},
      {"spec.lendingLimit",
       "must be at most spec.guaranteed of the same instance type",
       {{"guaranteed", chips}, {"lendingLimit", more}}},
      {"spec.lendingLimit",
       "must be at most spec.guaranteed of the same instance type",
       {{"lendingLimit", chips}}},
      {"spec.halfLife", "must be more than 0, such as 168h", {{"halfLife", "0h"}}},
      {"spec.defaultMaxRuntime",
       "must be more than 0, such as 36h",
       {{"defaultMaxRuntime", "00s"}}},
      {"spec.maxRuntime", "must be more than 0, such as 36h", {{"maxRuntime", "0m"}}},
      {"spec.defaultMaxRuntime",
       "must be at most spec.maxRuntime",
       {{"defaultMaxRuntime", "61m"}, {"maxRuntime", "1h"}}},
      {"spec.defaultFor",
       "must be among spec.namespaces, or these must have *",
       {{"defaultFor", {"team-b"}}, {"namespaces", {"team-a"}}}}};
  for (const Case& one : cases) {
    const Json queue = QueueOf(one.spec);
    EXPECT_EQ(BrokenRules(Queues(), queue),
              (std::multimap<std::string, std::string>{{one.field, one.message}}))
        << one.spec.dump();
    EXPECT_NE(InvalidBy(queue).find(one.field + ": " + one.message), std::string::npos)
        << InvalidBy(queue);
  }
  const Json named = QueueOf(Json::object(), "a.b");
  EXPECT_EQ(BrokenRules(Queues(), named).count("metadata"), 1U);
  EXPECT_EQ(InvalidBy(named),
            "metadata: must be 1 to 63 of a-z, 0-9 and -, as gangs name it in spec.queue");
}

TEST(QueueCrdTest, AnObjectIsReadAsItIsWritten) {
  const Json queue = QueueOf({{"parent", "fleet"},
                              {"weight", 3},
                              {"guaranteed", {{"trn2.48xlarge", 64}, {"trn1.32xlarge", 16}}},
                              {"limit", {{"trn2.48xlarge", 128}}},
                              {"borrowingLimit", {{"trn2.48xlarge", 32}}},
                              {"lendingLimit", {{"trn2.48xlarge", 16}}},
                              {"halfLife", "24h"},
                              {"namespaces", {"team-a", "*"}},
                              {"defaultFor", {"team-b"}},
                              {"kueueNames", {"user-queue"}},
                              {"volcanoNames", {"Volcano_1"}},
                              {"defaultMaxRuntime", "90m"},
                              {"maxRuntime", "36h"},
                              {"maxWaiting", 100},
                              {"maxRunning", 8},
                              {"patience", 512},
                              {"stop", "Drain"}});
  EXPECT_TRUE(ValidateCreate(Queues(), queue).empty());
  const auto spec = ParseQueue(queue)->spec;
  EXPECT_EQ(spec->invalid, "");
  QueueSpec expected;
  expected.name = "research";
  expected.parent = "fleet";
  expected.weight = 3;
  expected.guaranteed = {{"trn2.48xlarge", 64}, {"trn1.32xlarge", 16}};
  expected.limit = {{"trn2.48xlarge", 128}};
  expected.borrowing_limit = {{"trn2.48xlarge", 32}};
  expected.lending_limit = {{"trn2.48xlarge", 16}};
  expected.half_life = std::chrono::hours(24);
  expected.namespaces = {"team-a", "*"};
  expected.default_for = {"team-b"};
  expected.kueue_names = {"user-queue"};
  expected.volcano_names = {"Volcano_1"};
  expected.default_max_runtime = std::chrono::minutes(90);
  expected.max_runtime = std::chrono::hours(36);
  expected.most_waiting = 100;
  expected.most_running = 8;
  expected.patience = 512;
  expected.stop = QueueStop::kDrain;
  EXPECT_EQ(*spec, expected);
  QueueSpec plain;
  plain.name = "research";
  EXPECT_EQ(*ParseQueue(QueueOf(Json::object()))->spec, plain);
}

class RandomSpec {
 public:
  explicit RandomSpec(std::uint64_t seed) : rng_(seed) {}

  Json Next() {
    Json spec = Json::object();
    const auto maybe = [&](const char* field, auto make) {
      if (rng_.Chance(1, 4)) spec[field] = make();
    };
    const auto chips = [&] { return Chips(); };
    const auto time = [&] {
      return Pick({"1h", "60m", "3600s", "0h", "000m", "999999h", "1000000h", "99999999s",
                   "100000000m", "h", "1d", "", "1h30m", "-1h", " 1h", "1h\n"});
    };
    const auto names = [&] { return Names(); };
    maybe("parent", [&] { return Pick({"fleet", "research", "Fleet", "", "a.b", "-a", "a-"}); });
    maybe("weight", [&] { return Number({1, 2, 0, -1, 1'000'000, 1'000'001}); });
    for (const char* field : {"guaranteed", "limit", "borrowingLimit", "lendingLimit"}) {
      maybe(field, chips);
    }
    for (const char* field : {"halfLife", "maxRuntime", "defaultMaxRuntime"}) maybe(field, time);
    for (const char* field : {"namespaces", "defaultFor", "kueueNames", "volcanoNames"}) {
      maybe(field, names);
    }
    maybe("maxWaiting", [&] { return Number({0, 1, -1, 1'000'000, 1'000'001}); });
    maybe("maxRunning", [&] { return Number({0, 1, -1, 1'000'000, 1'000'001}); });
    maybe("patience", [&] { return Number({0, 1, -1, 1'000'000'000, 1'000'000'001}); });
    maybe("stop", [&] { return Pick({"Hold", "Drain", "hold", "", "No"}); });
    return spec;
  }
  std::string Name() { return Pick({"research", "research", "a", "a.b", std::string(64, 'a')}); }

 private:
  std::string Pick(const std::vector<std::string>& choices) {
    return choices[rng_.Below(rng_.Chance(3, 4) ? std::min<std::size_t>(3, choices.size())
                                                : choices.size())];
  }
  Json Number(const std::vector<std::int64_t>& choices) {
    if (rng_.Chance(1, 32)) return "1";
    return choices[rng_.Below(rng_.Chance(3, 4) ? 2 : choices.size())];
  }
  Json Chips() {
    Json chips = Json::object();
    for (const char* type : {"trn2.48xlarge", "trn1.32xlarge"}) {
      if (rng_.Chance(1, 2)) chips[type] = Number({16, 32, 0, 64, -1, 100'000'000, 100'000'001});
    }
    if (rng_.Chance(1, 16)) chips[Pick({"trn2.a", "trn2", "", "a.b.c", "."})] = 1;
    if (rng_.Chance(1, 32)) {
      for (int i = 0; i < 16; ++i) chips["t." + std::to_string(i)] = 1;
    }
    return chips;
  }
  Json Names() {
    Json names = Json::array();
    for (std::uint64_t left = rng_.Below(3); left > 0; --left) {
      names.push_back(Pick({"team-a", "team-b", "*", "team_c", "", std::string(64, 'a')}));
    }
    return names;
  }

  Rng rng_;
};

TEST(QueueCrdTest, TheDefinitionAndTheControllerAgreeOnRandomQueues) {
  RandomSpec specs(17);
  int valid = 0, invalid = 0;
  for (int i = 0; i < 10'000 && !::testing::Test::HasFailure(); ++i) {
    const Json queue = QueueOf(specs.Next(), specs.Name());
    const auto causes = ValidateCreate(Queues(), queue);
    const std::string by_controller = InvalidBy(queue);
    EXPECT_EQ(causes.empty(), by_controller.empty())
        << queue.dump() << ": " << by_controller
        << (causes.empty() ? "" : " / " + causes.front().field + " " + causes.front().message);
    ++(causes.empty() ? valid : invalid);
  }
  EXPECT_GT(valid, 1000);
  EXPECT_GT(invalid, 1000);
}

TEST(QueueCrdTest, WhatIsNoQueueIsAnErrorAndADamagedOneIsInvalid) {
  for (const char* text : {"null", "[]", "{}", "3", R"({"metadata": []})"}) {
    EXPECT_FALSE(ParseQueue(ParseJson(text)).ok()) << text;
  }
  for (const char* text :
       {R"({"metadata": {"name": "q"}})", R"({"metadata": {"name": "q"}, "spec": 3})",
        R"({"metadata": {"name": "q"}, "spec": {"guaranteed": [1]}})",
        R"({"metadata": {"name": "q"}, "spec": {"namespaces": {"a": 1}}})",
        R"({"metadata": {"name": "q"}, "spec": {"halfLife": 3}})",
        R"({"metadata": {"name": "q"}, "spec": {"guaranteed": {"a.b": 1.5}}})"}) {
    const auto queue = ParseQueue(ParseJson(text));
    ASSERT_TRUE(queue.ok()) << text;
    EXPECT_NE(queue->spec->invalid, "") << text;
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
