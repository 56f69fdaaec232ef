// Where pods may go that must be beside others, or apart from them.

#include "controller/core/queue/neighbours.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controller/core/core.h"
#include "controller/core/facts/other_pod.h"
#include "controller/core/facts/read_facts.h"
#include "controller/plan/planner.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {
namespace {

using json = Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A term for pods with that label: any value when `values` is empty.
json Term(const std::string& topology_key, const std::string& label,
          const std::vector<std::string>& values = {}) {
  json one = {{"key", label}, {"operator", values.empty() ? "Exists" : "In"}};
  if (!values.empty()) one["values"] = values;
  return {{"topologyKey", topology_key},
          {"labelSelector", {{"matchExpressions", json::array({one})}}}};
}

struct NeighbourWish {
  std::string name;
  json labels = json::object();
  json beside = json::array();
  json apart = json::array();
  json spread = json::array();
  json selector = json::object();
  std::string node = {};
  std::string phase = {};
  std::string ns = "default";
  std::string gang = {};
  json rather_apart = json::array();
  json rather_on = json::array();
};

json JsonOf(const NeighbourWish& wish) {
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  json pod = {{"metadata",
               {{"name", wish.name},
                {"namespace", wish.ns},
                {"uid", "uid-" + wish.name},
                {"labels", wish.labels}}},
              {"spec",
               {{"nodeSelector", wish.selector},
                {"topologySpreadConstraints", wish.spread},
                {"affinity",
                 {{"podAffinity", {{kRequired, wish.beside}}},
                  {"podAntiAffinity", {{kRequired, wish.apart}, {kPreferred, wish.rather_apart}}},
                  {"nodeAffinity", {{kPreferred, wish.rather_on}}}}}}}};
  if (!wish.gang.empty()) pod["metadata"]["labels"]["tahoma.dev/gang"] = wish.gang;
  if (!wish.node.empty()) pod["spec"]["nodeName"] = wish.node;
  if (!wish.phase.empty()) pod["status"]["phase"] = wish.phase;
  return pod;
}

std::shared_ptr<const PodFact> PodOf(const NeighbourWish& wish) {
  auto parsed = ParsePod(JsonOf(wish));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

// The same pod, placed by another scheduler.
std::shared_ptr<const OtherPodTraits> OtherOf(const NeighbourWish& wish) {
  auto parsed = ParseOtherPod(JsonOf(wish));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return std::make_shared<const OtherPodTraits>(*std::move(parsed));
}

// As LeaderWorkerSet's webhook makes the leader of a group that has a place for itself.
NeighbourWish LeaderOf(const std::string& group) {
  json others = Term("pair", "group");
  others["labelSelector"]["matchExpressions"].push_back(
      {{"key", "group"}, {"operator", "NotIn"}, {"values", {group}}});
  return {.name = "leader-" + group,
          .labels = {{"group", group}},
          .beside = json::array({Term("pair", "group", {group})}),
          .apart = json::array({others})};
}

std::shared_ptr<const GangSpec> Alone(const Facts& facts, const PodKey& pod) {
  auto gang = std::make_shared<GangSpec>();
  gang->key = {pod.ns, pod.name};
  gang->single_pod = true;
  MemberSpec& member = gang->members.emplace_back();
  member.pod = pod;
  if (const auto fact = facts.pods.Find(pod)) member.node = fact->demand;
  return gang;
}

class NeighboursTest : public ::testing::Test {
 protected:
  NeighboursTest() {
    AddNode("a0", {{"pair", "a"}});
    AddNode("a1", {{"pair", "a"}});
    AddNode("b0", {{"pair", "b"}});
    AddNode("lone", {});
  }
  void AddNode(const std::string& name, const Labels& labels) {
    NodeFacts node = NodeFactsOf({.name = name, .cores = false});
    node.labels = labels;
    cluster_.PutNode(node);
    nodes_.push_back(name);
  }
  bool Put(const NeighbourWish& wish) {
    auto pod = PodOf(wish);
    const auto before = facts_.pods.Find(pod->key);
    facts_.pods.Put(pod);
    return neighbours_.OnPod(before.get(), *pod);
  }
  bool Remove(const NeighbourWish& wish) {
    const auto pod = PodOf(wish);
    facts_.pods.Remove(pod->key, "");
    return neighbours_.OnPodGone(*pod);
  }
  bool PutOther(const std::shared_ptr<const OtherPodTraits>& traits, const std::string& node) {
    cluster_.AddUse(node, traits->needs);
    return neighbours_.OnOtherPod(traits, *cluster_.FindNode(node));
  }
  bool RemoveOther(const std::shared_ptr<const OtherPodTraits>& traits, const std::string& node) {
    const bool concerns = neighbours_.OnOtherPodGone(traits, *cluster_.FindNode(node));
    cluster_.SubtractUse(node, traits->needs);
    return concerns;
  }
  std::shared_ptr<const GangSpec> Alone(const PodKey& pod) const {
    return controller::Alone(facts_, pod);
  }
  std::shared_ptr<const GangSpec> Together(const std::vector<std::string>& pods) const {
    auto gang = std::make_shared<GangSpec>();
    gang->key = {"default", "g"};
    for (const std::string& pod : pods) {
      gang->members.push_back(Alone({"default", pod})->members[0]);
    }
    return gang;
  }
  // The nodes on which the pod may be.
  std::vector<std::string> PlacesOf(const PodKey& pod) const {
    const Narrowed narrowed = neighbours_.Narrow(Alone(pod));
    std::vector<std::string> places;
    for (const std::string& name : nodes_) {
      const Node& node = *cluster_.node(*cluster_.FindNode(name)).node;
      if (narrowed.gang->members[0].node.SelectorAdmits(node)) places.push_back(name);
    }
    return places;
  }
  std::vector<std::string> PlacesOf(const std::string& pod) const {
    return PlacesOf(PodKey{"default", pod});
  }

  Facts facts_;
  ClusterState cluster_;
  std::vector<std::string> nodes_;
  JournalBuffer journal_;
  WriteBuffer writes_;
  GangRuns runs_{facts_, cluster_, journal_, writes_, ReadPublishedOptions{}};
  Neighbours neighbours_{facts_, runs_, cluster_};
};

TEST_F(NeighboursTest, APodWithoutTermsGoesAnywhereAndIsLeftAsItIs) {
  Put({.name = "other", .labels = {{"app", "x"}}, .node = "a0"});
  Put({.name = "free", .labels = {{"app", "x"}}});
  const auto gang = Alone({"default", "free"});
  EXPECT_FALSE(neighbours_.Matters(*gang));
  const Narrowed narrowed = neighbours_.Narrow(gang);
  EXPECT_EQ(narrowed.gang, gang);
  EXPECT_EQ(narrowed.why, "");
}

TEST_F(NeighboursTest, AGroupThatWantsAPlaceForItselfAvoidsThatOfAnother) {
  Put(LeaderOf("one"));
  EXPECT_TRUE(neighbours_.Matters(*Alone({"default", "leader-one"})));
  EXPECT_THAT(PlacesOf("leader-one"), ElementsAre("a0", "a1", "b0")) << "where there are pairs";
  NeighbourWish placed = LeaderOf("one");
  placed.node = "a1";
  Put(placed);
  Put(LeaderOf("two"));
  EXPECT_THAT(PlacesOf("leader-two"), ElementsAre("b0"));
  EXPECT_EQ(neighbours_.Narrow(Alone({"default", "leader-two"})).why,
            "beside other pods it may run where pair exists and pair not in (a)");
}

TEST_F(NeighboursTest, WhoIsAvoidedAvoidsToo) {
  NeighbourWish placed = LeaderOf("one");
  placed.node = "a0";
  Put(placed);
  Put({.name = "stranger", .labels = {{"group", "two"}}});
  EXPECT_THAT(PlacesOf("stranger"), ElementsAre("b0", "lone"));
  Put({.name = "worker", .labels = {{"group", "one"}}});
  EXPECT_THAT(PlacesOf("worker"), ElementsAre("a0", "a1", "b0", "lone"));
}

TEST_F(NeighboursTest, APodGoesWhereThoseAreThatItMustBeBeside) {
  const NeighbourWish wish{.name = "cache", .beside = json::array({Term("pair", "app", {"db"})})};
  Put(wish);
  EXPECT_THAT(PlacesOf("cache"), IsEmpty()) << "there is none, and it is not one itself";
  Put({.name = "db", .labels = {{"app", "db"}}, .node = "b0"});
  EXPECT_THAT(PlacesOf("cache"), ElementsAre("b0"));
  Put({.name = "db2", .labels = {{"app", "db"}}, .node = "lone"});
  EXPECT_THAT(PlacesOf("cache"), ElementsAre("b0")) << "lone has no pair";
}

TEST_F(NeighboursTest, PodsOfOtherSchedulersAreJoinedAndAvoidedLikeOurs) {
  const auto database = OtherOf({.name = "db", .labels = {{"app", "db"}}});
  EXPECT_FALSE(PutOther(database, "b0")) << "nobody asks for such pods yet";
  Put({.name = "cache", .beside = json::array({Term("pair", "app", {"db"})})});
  Put({.name = "rival", .apart = json::array({Term("pair", "app", {"db"})})});
  EXPECT_THAT(PlacesOf("cache"), ElementsAre("b0"));
  EXPECT_THAT(PlacesOf("rival"), ElementsAre("a0", "a1", "lone"));
  EXPECT_TRUE(PutOther(database, "a0"));
  EXPECT_THAT(PlacesOf("cache"), ElementsAre("a0", "a1", "b0"));
  EXPECT_TRUE(PutOther(database, "a0")) << "another pod of the same traits";
  EXPECT_TRUE(RemoveOther(database, "a0"));
  EXPECT_THAT(PlacesOf("cache"), ElementsAre("a0", "a1", "b0")) << "one of two is still there";
  EXPECT_TRUE(RemoveOther(database, "a0"));
  EXPECT_TRUE(RemoveOther(database, "b0"));
  EXPECT_THAT(PlacesOf("cache"), IsEmpty());
  EXPECT_THAT(PlacesOf("rival"), ElementsAre("a0", "a1", "b0", "lone"));
}

TEST_F(NeighboursTest, APodOfAnotherSchedulerKeepsThoseAwayWhomItAvoids) {
  const auto jealous =
      OtherOf({.name = "db", .apart = json::array({Term("pair", "app", {"noisy"})})});
  EXPECT_TRUE(PutOther(jealous, "a1"));
  Put({.name = "noisy", .labels = {{"app", "noisy"}}});
  Put({.name = "quiet", .labels = {{"app", "quiet"}}});
  Put({.name = "stranger", .labels = {{"app", "noisy"}}, .ns = "other"});
  EXPECT_THAT(PlacesOf("noisy"), ElementsAre("b0", "lone"));
  EXPECT_THAT(PlacesOf("quiet"), ElementsAre("a0", "a1", "b0", "lone"));
  EXPECT_THAT(PlacesOf(PodKey{"other", "stranger"}), ElementsAre("a0", "a1", "b0", "lone"));
}

TEST_F(NeighboursTest, PodsOfOtherSchedulersCountWhereAPodMustBeSpread) {
  const auto web = OtherOf({.name = "web-0", .labels = {{"app", "web"}}});
  json constraint = Term("pair", "app", {"web"});
  constraint["maxSkew"] = 1;
  Put({.name = "web-9", .labels = {{"app", "web"}}, .spread = json::array({constraint})});
  PutOther(web, "a0");
  PutOther(web, "unknown-node");
  EXPECT_THAT(PlacesOf("web-9"), ElementsAre("b0"));
  PutOther(web, "b0");
  EXPECT_THAT(PlacesOf("web-9"), ElementsAre("a0", "a1", "b0"));
  // As for kube-scheduler, a pod that is being deleted counts no longer.
  json going = JsonOf({.name = "web-1", .labels = {{"app", "web"}}});
  going["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z";
  PutOther(std::make_shared<const OtherPodTraits>(*ParseOtherPod(going)), "a1");
  EXPECT_THAT(PlacesOf("web-9"), ElementsAre("a0", "a1", "b0"));
  PutOther(web, "a1");
  EXPECT_THAT(PlacesOf("web-9"), ElementsAre("b0"));
}

TEST_F(NeighboursTest, AntiAffinityOfAnotherSchedulersPodThatCannotBeFollowedIsLeftOut) {
  json term = Term("pair", "app", {"noisy"});
  term["namespaceSelector"] = {{"matchLabels", {{"team", "a"}}}};
  const auto traits =
      OtherOf({.name = "db", .labels = {{"app", "db"}}, .apart = json::array({term})});
  EXPECT_THAT(traits->apart, IsEmpty());
  EXPECT_EQ(traits->labels, (Labels{{"app", "db"}}));
}

TEST_F(NeighboursTest, ThoseThatComeMoveOrEndMayMakeRoom) {
  Put(LeaderOf("two"));
  NeighbourWish one = LeaderOf("one");
  one.node = "a0";
  EXPECT_TRUE(Put(one));
  EXPECT_FALSE(Put(one)) << "it is as it was";
  EXPECT_THAT(PlacesOf("leader-two"), ElementsAre("b0"));
  one.phase = "Succeeded";
  EXPECT_TRUE(Put(one));
  EXPECT_THAT(PlacesOf("leader-two"), ElementsAre("a0", "a1", "b0"));
  EXPECT_TRUE(Remove(one));
  EXPECT_FALSE(Put({.name = "nobody", .labels = {{"app", "x"}}, .node = "a0"}));
}

TEST_F(NeighboursTest, TermsAboutPodsOfTheGangItselfBecomeRules) {
  const json workers = Term("rack", "role", {"worker"});
  const json launcher = Term("pair", "role", {"launcher"});
  for (const char* name : {"w0", "w1"}) {
    Put({.name = name,
         .labels = {{"role", "worker"}},
         .beside = json::array({launcher}),
         .apart = json::array({workers}),
         .gang = "g"});
  }
  Put({.name = "l", .labels = {{"role", "launcher"}}, .gang = "g"});
  const Narrowed narrowed = neighbours_.Narrow(Together({"l", "w0", "w1"}));
  EXPECT_EQ(narrowed.why, "");
  ASSERT_EQ(narrowed.gang->rules.size(), 2U);
  const PlaceRule& apart = narrowed.gang->rules[0];
  EXPECT_EQ(apart.Describe(), "podAntiAffinity on rack");
  EXPECT_THAT(apart.askers, ElementsAre(1U, 2U));
  EXPECT_THAT(apart.selected, ElementsAre(1U, 2U));
  const PlaceRule& beside = narrowed.gang->rules[1];
  EXPECT_EQ(beside.Describe(), "podAffinity on pair");
  EXPECT_THAT(beside.selected, ElementsAre(0U));
  EXPECT_THAT(beside.places, IsEmpty());
  EXPECT_FALSE(beside.one_place);
}

TEST_F(NeighboursTest, AGangThatLooksForItsOwnLikeGoesToOnePlaceUnlessOthersAreThere) {
  const json like = Term("pair", "app", {"x"});
  for (const char* name : {"p0", "p1"}) {
    Put({.name = name, .labels = {{"app", "x"}}, .beside = json::array({like}), .gang = "g"});
  }
  const auto rules = neighbours_.Narrow(Together({"p0", "p1"})).gang->rules;
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_TRUE(rules[0].one_place);
  Put({.name = "other", .labels = {{"app", "x"}}, .node = "b0"});
  const Narrowed narrowed = neighbours_.Narrow(Together({"p0", "p1"}));
  EXPECT_THAT(narrowed.gang->rules, IsEmpty());
  EXPECT_EQ(narrowed.why, "beside other pods it may run where pair in (b)");
}

TEST_F(NeighboursTest, AGangThatIsSpreadCountsItselfAndTheOthers) {
  json spread = Term("pair", "app", {"x"});
  spread["maxSkew"] = 1;
  for (const char* name : {"p0", "p1"}) {
    Put({.name = name, .labels = {{"app", "x"}}, .spread = json::array({spread}), .gang = "g"});
  }
  Put({.name = "other", .labels = {{"app", "x"}}, .node = "a1"});
  const Narrowed narrowed = neighbours_.Narrow(Together({"p0", "p1"}));
  EXPECT_EQ(narrowed.why,
            "beside other pods it may run where pair exists; topologySpreadConstraints on pair "
            "count pods outside of the gang, too")
      << "the end of one may help";
  const auto& rules = narrowed.gang->rules;
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].Describe(), "topologySpreadConstraints on pair");
  EXPECT_EQ(rules[0].place_count, 2);
  EXPECT_EQ(rules[0].counts, (std::map<std::string, std::int64_t>{{"a", 1}}));
}

TEST_F(NeighboursTest, PreferencesAreDemandsThatAreTriedBefore) {
  const json others = Term("pair", "app", {"x"});
  const json in_b = {
      {"matchExpressions", {{{"key", "pair"}, {"operator", "In"}, {"values", {"b"}}}}}};
  Put({.name = "other", .labels = {{"app", "x"}}, .node = "b0"});
  Put({.name = "p",
       .labels = {{"app", "x"}},
       .rather_apart = json::array({{{"weight", 1}, {"podAffinityTerm", others}}}),
       .rather_on = json::array({{{"weight", 50}, {"preference", in_b}}})});
  const Narrowed narrowed = neighbours_.Narrow(Alone({"default", "p"}));
  EXPECT_EQ(narrowed.why, "");
  EXPECT_THAT(narrowed.gang->members[0].node.all, IsEmpty()) << "without them it may be anywhere";
  ASSERT_EQ(narrowed.gang->preferred.size(), 2U);
  EXPECT_EQ(narrowed.gang->preferred[0]->members[0].node.all.size(), 2U) << "in b, and not in b";
  EXPECT_EQ(narrowed.gang->preferred[1]->members[0].node.all.size(), 1U) << "in b";
}

TEST_F(NeighboursTest, APodIsSeenWhereItIsAboutToBe) {
  Put(LeaderOf("one"));
  auto decision = std::make_shared<GangDecision>();
  decision->key = {"default", "leader-one"};
  decision->single = true;
  decision->uid = "uid-leader-one";
  decision->pods.push_back({.name = "leader-one", .uid = "uid-leader-one", .node = "b0"});
  runs_.Begin(std::move(decision));
  Put(LeaderOf("two"));
  EXPECT_THAT(PlacesOf("leader-two"), ElementsAre("a0", "a1"));
}

TEST_F(NeighboursTest, ALabelThatIsTakenAwayIsForgotten) {
  Put(LeaderOf("two"));
  Put({.name = "other", .labels = {{"group", "x"}}, .node = "a0"});
  EXPECT_THAT(PlacesOf("leader-two"), ElementsAre("b0"));
  Put({.name = "other", .node = "a0"});
  EXPECT_THAT(PlacesOf("leader-two"), ElementsAre("a0", "a1", "b0"));
}

// A required constraint that spreads the pods with label app=x.
json SpreadOver(const std::string& topology_key, const json& more = json::object()) {
  json one = {{"topologyKey", topology_key},
              {"maxSkew", 1},
              {"whenUnsatisfiable", "DoNotSchedule"},
              {"labelSelector", {{"matchLabels", {{"app", "x"}}}}}};
  one.update(more);
  return json::array({one});
}

TEST_F(NeighboursTest, APodGoesWhereFewerOfItsLikeAre) {
  AddNode("b1", {{"pair", "b"}});
  const json labels = {{"app", "x"}};
  Put({.name = "p", .labels = labels, .spread = SpreadOver("pair")});
  EXPECT_THAT(PlacesOf("p"), ElementsAre("a0", "a1", "b0", "b1"));
  Put({.name = "first", .labels = labels, .node = "a0"});
  EXPECT_THAT(PlacesOf("p"), ElementsAre("b0", "b1"));
  Put({.name = "p", .labels = labels, .spread = SpreadOver("pair", {{"maxSkew", 2}})});
  EXPECT_THAT(PlacesOf("p"), ElementsAre("a0", "a1", "b0", "b1"));
  Put({.name = "p", .labels = labels, .spread = SpreadOver("pair")});
  Put({.name = "second", .labels = labels, .node = "b1"});
  EXPECT_THAT(PlacesOf("p"), ElementsAre("a0", "a1", "b0", "b1"));
  EXPECT_THAT(neighbours_.Narrow(Alone({"default", "p"})).why, HasSubstr("pair exists"));
}

TEST_F(NeighboursTest, WithFewerPlacesThanWishedNoneIsFilled) {
  const json labels = {{"app", "x"}};
  Put({.name = "first", .labels = labels, .node = "a0"});
  Put({.name = "second", .labels = labels, .node = "b0"});
  Put({.name = "p", .labels = labels, .spread = SpreadOver("pair", {{"minDomains", 3}})});
  EXPECT_THAT(PlacesOf("p"), IsEmpty());
  AddNode("c0", {{"pair", "c"}});
  EXPECT_THAT(PlacesOf("p"), ElementsAre("c0"));
}

TEST_F(NeighboursTest, PlacesWhereThePodMayNotBeDoNotCount) {
  const json labels = {{"app", "x"}};
  AddNode("c0", {{"kind", "old"}, {"pair", "c"}});
  AddNode("d0", {{"kind", "new"}, {"pair", "d"}});
  AddNode("e0", {{"kind", "new"}, {"pair", "e"}});
  Put({.name = "first", .labels = labels, .node = "d0"});
  Put({.name = "second", .labels = labels, .node = "e0"});
  NeighbourWish pod = {
      .name = "p", .labels = labels, .spread = SpreadOver("pair"), .selector = {{"kind", "new"}}};
  Put(pod);
  EXPECT_THAT(PlacesOf("p"), ElementsAre("d0", "e0"));
  pod.spread = SpreadOver("pair", {{"nodeAffinityPolicy", "Ignore"}});
  Put(pod);
  EXPECT_THAT(PlacesOf("p"), IsEmpty()) << "no pod is in c, where the pod may not be";
}

TEST_F(NeighboursTest, APodCountsOnceWhenTheSelectorNamesItsValueTwice) {
  json constraint = Term("pair", "app", {"x", "x"});
  constraint["maxSkew"] = 1;
  Put({.name = "first", .labels = {{"app", "x"}}, .node = "a0"});
  Put({.name = "p", .spread = json::array({constraint})});
  EXPECT_THAT(PlacesOf("p"), ElementsAre("a0", "a1", "b0"));
}

TEST_F(NeighboursTest, PodsOfAnotherRevisionAreNotCountedByMatchLabelKeys) {
  Put({.name = "old", .labels = {{"app", "x"}, {"hash", "1"}}, .node = "a0"});
  NeighbourWish pod = {
      .name = "p", .labels = {{"app", "x"}, {"hash", "2"}}, .spread = SpreadOver("pair")};
  Put(pod);
  EXPECT_THAT(PlacesOf("p"), ElementsAre("b0"));
  pod.spread = SpreadOver("pair", {{"matchLabelKeys", {"hash", "none"}}});
  Put(pod);
  EXPECT_THAT(PlacesOf("p"), ElementsAre("a0", "a1", "b0"));
}

// By the words of Kubernetes' documentation, pod by pod and node by node.
class Oracle {
 public:
  Oracle(const std::vector<NeighbourWish>& pods, const std::map<std::string, Labels>& nodes)
      : nodes_(nodes) {
    for (const NeighbourWish& wish : pods) pods_.push_back(PodOf(wish));
  }

  bool MayBe(const std::string& pod, const std::string& node) const {
    const PodFact& wants = *Find(pod);
    for (const auto& other : pods_) {
      if (!Counts(*other) || other->key == wants.key) continue;
      if (other->affinity != nullptr) {
        for (const auto& term : other->affinity->apart) {
          if (Selects(term, *other, wants) && Together(term.topology_key, node, other->node)) {
            return false;
          }
        }
      }
      if (wants.affinity == nullptr) continue;
      for (const auto& term : wants.affinity->apart) {
        if (Selects(term, wants, *other) && Together(term.topology_key, node, other->node)) {
          return false;
        }
      }
    }
    return wants.affinity == nullptr || (Joins(wants, node) && IsSpread(wants, node));
  }

  bool Admits(const std::string& pod, const std::string& node) const {
    return Admits(*Find(pod), node);
  }

 private:
  static bool Counts(const PodFact& pod) { return !pod.finished && !pod.node.empty(); }
  static bool Selects(const kube::PodAffinityTerm& term, const PodFact& own, const PodFact& pod) {
    return term.Selects(own.key.ns, pod.key.ns, pod.labels);
  }
  const PodFact* Find(const std::string& name) const {
    for (const auto& pod : pods_) {
      if (pod->key.name == name) return pod.get();
    }
    return nullptr;
  }
  std::string Value(const std::string& node, const std::string& key) const {
    for (const auto& [name, value] : nodes_.at(node)) {
      if (name == key) return value;
    }
    return "";
  }
  bool Together(const std::string& key, const std::string& a, const std::string& b) const {
    return !Value(a, key).empty() && Value(a, key) == Value(b, key);
  }
  bool Joins(const PodFact& wants, const std::string& node) const {
    const auto& terms = wants.affinity->beside;
    bool all = true;
    bool any_anywhere = false;
    bool all_keys = true;
    bool itself = true;
    for (const auto& term : terms) {
      bool here = false;
      for (const auto& other : pods_) {
        if (!Counts(*other) || other->key == wants.key) continue;
        bool selected = true;
        for (const auto& each : terms) selected = selected && Selects(each, wants, *other);
        if (!selected || Value(other->node, term.topology_key).empty()) continue;
        any_anywhere = true;
        here = here || Together(term.topology_key, node, other->node);
      }
      all = all && here;
      all_keys = all_keys && !Value(node, term.topology_key).empty();
      itself = itself && Selects(term, wants, wants);
    }
    return all || (!any_anywhere && itself && all_keys);
  }

  // "skew = number of matching pods in the topology - the global minimum", of the nodes with every
  // key and admitted by the pod's node selector.
  bool IsSpread(const PodFact& wants, const std::string& node) const {
    for (const auto& one : wants.affinity->spread) {
      std::map<std::string, std::int64_t> in_place;
      for (const auto& [name, labels] : nodes_) {
        bool counts = Admits(wants, name) || !one.honors_affinity;
        for (const auto& each : wants.affinity->spread) {
          counts = counts && !Value(name, each.of.topology_key).empty();
        }
        if (!counts) continue;
        std::int64_t& here = in_place[Value(name, one.of.topology_key)];
        for (const auto& other : pods_) {
          const bool there = Counts(*other) && other->key != wants.key && other->node == name;
          here += there && Selects(one.of, wants, *other) ? 1 : 0;
        }
      }
      const std::string place = Value(node, one.of.topology_key);
      if (place.empty()) return false;
      std::int64_t fewest = in_place.empty() ? 0 : in_place.begin()->second;
      for (const auto& [name, count] : in_place) fewest = std::min(fewest, count);
      if (static_cast<std::int64_t>(in_place.size()) < one.min_domains) fewest = 0;
      const std::int64_t itself = Selects(one.of, wants, wants) ? 1 : 0;
      if (in_place[place] + itself - fewest > one.max_skew) return false;
    }
    return true;
  }
  bool Admits(const PodFact& wants, const std::string& node) const {
    return std::ranges::all_of(wants.demand.all, [&](const NodeRequirement& one) {
      return Value(node, one.key) == one.values.at(0);
    });
  }

  std::vector<std::shared_ptr<const PodFact>> pods_;
  std::map<std::string, Labels> nodes_;
};

// Puts the pod as a pod of ours or, with a node, perhaps of another scheduler: both count alike. A
// pod that has left a node does not count there.
void PutFromAny(const NeighbourWish& pod, Rng& rng, Facts& facts, ClusterState& cluster,
                Neighbours& neighbours) {
  if (pod.node.empty() || rng.Next() % 2 == 0) {
    facts.pods.Put(PodOf(pod));
    neighbours.OnPod(nullptr, *PodOf(pod));
    return;
  }
  const auto other = OtherOf(pod);
  const auto put = [&](const std::string& node) {
    cluster.AddUse(node, other->needs);
    neighbours.OnOtherPod(other, *cluster.FindNode(node));
  };
  if (pod.phase.empty()) put(pod.node);
  const std::string left = fmt::format("n{}", rng.Next() % 5);
  put(left);
  neighbours.OnOtherPodGone(other, *cluster.FindNode(left));
}

TEST(NeighboursPropertyTest, RandomPodsMayBeWhereKubernetesLetsThem) {
  Rng rng(20260729);
  const auto pick = [&](const std::vector<std::string>& of) { return of[rng.Next() % of.size()]; };
  const std::vector<std::string> keys = {"pair", "rack"};
  const std::vector<std::string> labels = {"app", "group"};
  const std::vector<std::string> values = {"x", "y", "z"};
  int kept_away = 0;
  for (int round = 0; round < 300; ++round) {
    Facts facts;
    ClusterState cluster;
    JournalBuffer journal;
    WriteBuffer writes;
    GangRuns runs(facts, cluster, journal, writes, ReadPublishedOptions{});
    Neighbours neighbours(facts, runs, cluster);
    std::map<std::string, Labels> nodes;
    for (int i = 0; i < 5; ++i) {
      NodeFacts node = NodeFactsOf({.name = fmt::format("n{}", i), .cores = false});
      for (const std::string& key : keys) {
        if (rng.Next() % 4 != 0) node.labels.emplace_back(key, pick({"1", "2"}));
      }
      nodes[node.name] = node.labels;
      cluster.PutNode(node);
    }
    std::vector<NeighbourWish> pods;
    for (int i = 0; i < 6; ++i) {
      NeighbourWish& pod = pods.emplace_back();
      pod.name = fmt::format("p{}", i);
      for (const std::string& label : labels) {
        if (rng.Next() % 2 == 0) pod.labels[label] = pick(values);
      }
      const auto add = [&](json& terms) {
        while (rng.Next() % 3 == 0) {
          std::vector<std::string> some;
          if (rng.Next() % 2 == 0) some = {pick(values), pick(values)};
          terms.push_back(Term(pick(keys), pick(labels), some));
        }
      };
      if (round % 2 == 0) add(pod.beside);
      add(pod.apart);
      while (i == 0 && rng.Next() % 2 == 0) {
        json one = Term(pick(keys), pick(labels), {pick(values), pick(values)});
        one["maxSkew"] = 1 + rng.Next() % 2;
        if (rng.Next() % 3 == 0) one["minDomains"] = 1 + rng.Next() % 3;
        if (rng.Next() % 3 == 0) one["nodeAffinityPolicy"] = "Ignore";
        pod.spread.push_back(one);
      }
      if (i == 0 && rng.Next() % 3 == 0) pod.selector[pick(keys)] = pick({"1", "2"});
      if (i != 0) pod.node = fmt::format("n{}", rng.Next() % 5);
      if (i != 0 && rng.Next() % 6 == 0) pod.phase = "Failed";
    }
    if (rng.Next() % 2 == 0) std::ranges::reverse(pods);
    for (const NeighbourWish& pod : pods) PutFromAny(pod, rng, facts, cluster, neighbours);
    const Narrowed narrowed = neighbours.Narrow(Alone(facts, {"default", "p0"}));
    const Oracle oracle(pods, nodes);
    for (const auto& [name, its_labels] : nodes) {
      const Node& node = *cluster.node(*cluster.FindNode(name)).node;
      const bool may = narrowed.gang->members[0].node.SelectorAdmits(node);
      EXPECT_EQ(may, oracle.MayBe("p0", name) && oracle.Admits("p0", name))
          << "round " << round << ", node " << name;
      kept_away += may ? 0 : 1;
    }
  }
  EXPECT_GT(kept_away, 300) << "else the rounds show nothing";
}

// Pods of other schedulers come: first one without meaning for the pod, then the awaited one.
TEST(NeighboursInCoreTest, APodIsPlacedWhenThePodOfAnotherSchedulerComesThatItMustBeBeside) {
  auto planner = std::make_shared<Planner>();
  Core core(
      [planner](const ClusterState& state, const Queue& queue, WallTime now,
                Explaining explaining) { return planner->Plan(state, queue, now, explaining); });
  std::string place;
  int seconds = 0;
  const auto step = [&](std::vector<Command> commands) {
    for (int again = 0; again < 3; ++again) {
      const auto wall = WallTime(std::chrono::seconds(1'700'000'000 + seconds));
      const StepOutput out = core.Step(std::exchange(commands, {}),
                                       {wall, MonotonicTime(std::chrono::seconds(seconds))});
      ++seconds;
      for (const ApiWrite& write : out.writes) {
        if (write.kind() == WriteKind::kBind) place = std::get<PodWrite>(write.what).pod().node;
      }
    }
  };
  std::vector<Command> commands;
  for (const char* name : {"a0", "b0"}) {
    NodeFacts node = NodeFactsOf({.name = name, .cores = false});
    node.labels = {{"pair", name}};
    commands.emplace_back(NodeSeen{InternAlone(node)});
  }
  commands.emplace_back(
      PodSeen{PodOf({.name = "cache", .beside = json::array({Term("pair", "app", {"db"})})})});
  commands.emplace_back(WatchesSynced{});
  step(std::move(commands));
  EXPECT_EQ(place, "");
  const auto came = [](const NeighbourWish& wish) {
    return std::vector<Command>{
        OtherPodMoved{.left = "", .removed = nullptr, .node = "b0", .added = OtherOf(wish)}};
  };
  step(came({.name = "web", .labels = {{"app", "web"}}}));
  EXPECT_EQ(place, "");
  step(came({.name = "db", .labels = {{"app", "db"}}}));
  EXPECT_EQ(place, "b0");
}

// Two leaders that come in one step must not be planned as if the other were not there.
TEST(NeighboursInCoreTest, GroupsThatComeTogetherGetPlacesOfTheirOwn) {
  auto planner = std::make_shared<Planner>();
  Core core(
      [planner](const ClusterState& state, const Queue& queue, WallTime now,
                Explaining explaining) { return planner->Plan(state, queue, now, explaining); });
  std::vector<Command> commands;
  for (const auto& [name, pair] : {std::pair("a0", "a"), {"a1", "a"}, {"b0", "b"}, {"b1", "b"}}) {
    NodeFacts node = NodeFactsOf({.name = name, .cores = false});
    node.labels = {{"pair", pair}};
    commands.emplace_back(NodeSeen{InternAlone(node)});
  }
  for (const char* group : {"one", "two", "three"}) {
    commands.emplace_back(PodSeen{PodOf(LeaderOf(group))});
  }
  commands.emplace_back(WatchesSynced{});
  std::map<std::string, std::string> places;
  for (int step = 0; step < 8; ++step) {
    const auto wall = WallTime(std::chrono::seconds(1'700'000'000 + step));
    const StepOutput out =
        core.Step(std::exchange(commands, {}), {wall, MonotonicTime(std::chrono::seconds(step))});
    for (const ApiWrite& write : out.writes) {
      if (write.kind() != WriteKind::kBind) continue;
      const DecidedPod& pod = std::get<PodWrite>(write.what).pod();
      places[pod.name] = pod.node.substr(0, 1);
    }
  }
  ASSERT_EQ(places.size(), 2U) << "there is no third pair";
  EXPECT_NE(places.begin()->second, places.rbegin()->second);
  for (const char* group : {"one", "two", "three"}) {
    const std::string name = std::string("leader-") + group;
    if (places.contains(name)) continue;
    const auto* view = core.snapshot()->gangs.Find(GangRef{{"default", name}, true});
    ASSERT_NE(view, nullptr);
    EXPECT_THAT((*view)->message, HasSubstr("pair not in (a, b)"));
    EXPECT_EQ((*view)->reason, GangReason::kWaitsForCapacity);
  }
}

}  // namespace
}  // namespace tahoma::controller
