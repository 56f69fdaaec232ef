// Queues as a forest: trouble stays with the queue that has it, and every gang means one queue.

#include "controller/share/queue_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace tahoma::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kType = "trn2.48xlarge";

class QueueTreeTest : public ::testing::Test {
 protected:
  void Put(
      const std::string& name, const std::string& parent,
      const std::function<void(QueueSpec&)>& change = [](QueueSpec&) {}) {
    auto spec = std::make_shared<QueueSpec>();
    spec->name = name;
    spec->parent = parent;
    spec->namespaces = {kEveryNamespace};
    change(*spec);
    specs_[name] = std::move(spec);
  }
  const QueueTree::Node& At(const std::string& name) {
    tree_ = QueueTree(specs_, others_);
    const QueueTree::Node* node = tree_.Find(name);
    EXPECT_NE(node, nullptr) << name;
    return *node;
  }
  QueueTrouble TroubleOf(const std::string& name) { return At(name).trouble; }
  static std::function<void(QueueSpec&)> Guarantees(std::int64_t chips) {
    return [=](QueueSpec& spec) { spec.guaranteed[kType] = chips; };
  }

  QueueTree::Specs specs_;
  std::set<std::string> others_;
  QueueTree tree_;
};

TEST_F(QueueTreeTest, WithoutObjectsThereIsTheDefaultQueueForAll) {
  const QueueTree tree;
  ASSERT_NE(tree.Find(kDefaultQueue), nullptr);
  EXPECT_TRUE(tree.Find(kDefaultQueue)->Admits("anybody"));
  EXPECT_FALSE(tree.any());
  EXPECT_EQ(tree.QueueFor({.ns = "team-a"}), kDefaultQueue);
}

TEST_F(QueueTreeTest, AQueueWithoutItsParentIsInTroubleAndNobodyElse) {
  Put("orphan", "gone");
  Put("well", "");
  EXPECT_EQ(TroubleOf("orphan"), QueueTrouble::kNoParent);
  EXPECT_EQ(At("orphan").message, "its parent, queue gone, does not exist");
  EXPECT_TRUE(At("well").serves);
  Put("gone", "");
  EXPECT_TRUE(At("orphan").serves) << "the parent has come";
}

TEST_F(QueueTreeTest, QueuesInACircleAndBelowServeNobody) {
  Put("a", "c");
  Put("b", "a");
  Put("c", "b");
  Put("below", "b");
  Put("self", "self");
  Put("well", "");
  for (const std::string name : {"a", "b", "c", "self"}) {
    EXPECT_EQ(TroubleOf(name), QueueTrouble::kCircle) << name;
  }
  EXPECT_EQ(TroubleOf("below"), QueueTrouble::kNone);
  EXPECT_FALSE(At("below").serves);
  EXPECT_THAT(At("below").message, HasSubstr("queue b above is in trouble"));
  EXPECT_TRUE(At("well").serves);
}

TEST_F(QueueTreeTest, AParentWithLessThanItsChildrenIsInTrouble) {
  Put("top", "", Guarantees(100));
  Put("a", "top", Guarantees(60));
  Put("b", "top", Guarantees(41));
  EXPECT_EQ(TroubleOf("top"), QueueTrouble::kGuarantees);
  EXPECT_EQ(At("top").message,
            "the queues below are guaranteed 101 chips of trn2.48xlarge, more than its own 100");
  EXPECT_FALSE(At("a").serves);
  EXPECT_TRUE(At("a").guaranteed.empty()) << "nothing is kept from others for it";
  Put("b", "top", Guarantees(40));
  EXPECT_TRUE(At("top").serves);
}

TEST_F(QueueTreeTest, AParentWithoutAGuaranteeHasThatOfItsChildren) {
  Put("top", "");
  Put("middle", "top");
  Put("a", "middle", Guarantees(60));
  Put("b", "top", Guarantees(40));
  EXPECT_THAT(At("middle").guaranteed,
              ElementsAre(std::pair<const std::string, std::int64_t>(kType, 60)));
  EXPECT_THAT(At("top").guaranteed,
              ElementsAre(std::pair<const std::string, std::int64_t>(kType, 100)));
}

TEST_F(QueueTreeTest, InvalidFieldsAreNamed) {
  const std::map<std::string, std::function<void(QueueSpec&)>> faults = {
      {"weight 0", [](QueueSpec& spec) { spec.weight = 0; }},
      {"weight 1000001", [](QueueSpec& spec) { spec.weight = 1'000'001; }},
      {"halfLife", [](QueueSpec& spec) { spec.half_life = std::chrono::seconds(0); }},
      {"maxRuntime", [](QueueSpec& spec) { spec.max_runtime = std::chrono::seconds(-1); }},
      {"lendingLimit: -1 chips", [](QueueSpec& spec) { spec.lending_limit[kType] = -1; }},
      {"maxWaiting -2", [](QueueSpec& spec) { spec.most_waiting = -2; }},
      {"more than its limit of 4",
       [](QueueSpec& spec) {
         spec.guaranteed[kType] = 5;
         spec.limit[kType] = 4;
       }},
  };
  for (const auto& [message, change] : faults) {
    Put("bad", "", change);
    EXPECT_EQ(TroubleOf("bad"), QueueTrouble::kInvalid);
    EXPECT_THAT(At("bad").message, HasSubstr(message));
    EXPECT_GT(At("bad").half_life.count(), 0) << "nobody divides by it";
  }
}

TEST_F(QueueTreeTest, TheHalfLifeIsThatOfTheParent) {
  Put("top", "", [](QueueSpec& spec) { spec.half_life = std::chrono::hours(2); });
  Put("a", "top");
  Put("b", "top", [](QueueSpec& spec) { spec.half_life = std::chrono::hours(3); });
  EXPECT_EQ(At("a").half_life, std::chrono::hours(2));
  EXPECT_EQ(At("b").half_life, std::chrono::hours(3));
  EXPECT_EQ(At(kDefaultQueue).half_life, kHalfLife);
}

TEST_F(QueueTreeTest, AGangMeansTheQueueThatItNamesThenThatOfItsLabelsThenThatOfItsNamespace) {
  Put("research", "", [](QueueSpec& spec) {
    spec.default_for = {"team-a"};
    spec.kueue_names = {"user-queue"};
  });
  Put("serving", "", [](QueueSpec& spec) { spec.volcano_names = {"online"}; });
  const QueueTree tree(specs_);
  EXPECT_EQ(tree.QueueFor({.ns = "team-a", .queue = "serving"}), "serving");
  EXPECT_EQ(tree.QueueFor({.ns = "team-a", .queue = "absent"}), "absent");
  EXPECT_EQ(tree.QueueFor({.ns = "team-a", .volcano = {"online"}}), "serving");
  EXPECT_EQ(tree.QueueFor({.ns = "b", .kueue = {"user-queue"}, .volcano = {"online"}}), "research");
  EXPECT_EQ(tree.QueueFor({.ns = "b", .kueue = {"unmapped"}}), kDefaultQueue);
  EXPECT_EQ(tree.QueueFor({.ns = "team-a"}), "research");
  EXPECT_EQ(tree.QueueFor({.ns = "team-b"}), kDefaultQueue);
}

TEST_F(QueueTreeTest, OfTwoQueuesForOneNamespaceTheFirstByNameHasIt) {
  Put("b", "", [](QueueSpec& spec) { spec.default_for = {"team"}; });
  Put("a", "", [](QueueSpec& spec) { spec.default_for = {"team"}; });
  EXPECT_EQ(At("b").message, "defaultFor team: queue a has it already");
  EXPECT_EQ(At("b").trouble, QueueTrouble::kNone);
  EXPECT_TRUE(At("a").message.empty());
  EXPECT_EQ(tree_.QueueFor({.ns = "team"}), "a");
}

TEST_F(QueueTreeTest, AQueueAdmitsItsNamespacesOnly) {
  Put("closed", "", [](QueueSpec& spec) { spec.namespaces = {}; });
  Put("some", "", [](QueueSpec& spec) { spec.namespaces = {"team-a"}; });
  EXPECT_FALSE(At("closed").Admits("team-a"));
  EXPECT_TRUE(At("some").Admits("team-a"));
  EXPECT_FALSE(At("some").Admits("team-b"));
}

TEST_F(QueueTreeTest, AQueueWithoutAnObjectIsThereForTheGangsThatItHas) {
  Put("well", "");
  others_ = {"deleted"};
  EXPECT_EQ(At("deleted").spec, nullptr);
  EXPECT_TRUE(At("deleted").guaranteed.empty());
}

TEST_F(QueueTreeTest, TenThousandQueuesInALineAreATree) {
  for (int i = 0; i < 10'000; ++i) {
    Put(fmt::format("q{}", i), i == 0 ? "" : fmt::format("q{}", i - 1), Guarantees(1));
  }
  EXPECT_TRUE(At("q9999").serves);
  EXPECT_EQ(tree_.PathOf(*tree_.IndexOf("q9999")).size(), 10'000U);
}

}  // namespace
}  // namespace tahoma::controller
