// Garbage collection by owner references.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/unit/controller/apiserver/controllers/controllers_fixture.h"

namespace tahoma::controller::apiserver {
namespace {

TEST_F(ControllersTest, DependentsGoWithTheirOwnerAndTheirs) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json child = Owned("child", root);
  ASSERT_EQ(status_, 201) << child;
  Owned("grandchild", child);
  Step();
  EXPECT_TRUE(Exists(kConfigMaps + "/grandchild"));
  Call("DELETE", kConfigMaps + "/root");
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_FALSE(Exists(kConfigMaps + "/grandchild"));
}

TEST_F(ControllersTest, AnOwnerThatNeverExistedCountsAsGone) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Json ghost = root;
  ghost["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000";
  Owned("child", ghost);
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_TRUE(Exists(kConfigMaps + "/root"));
}

TEST_F(ControllersTest, OneLivingOwnerKeepsTheObjectAndDeadOnesAreForgotten) {
  const Json one = Call("POST", kConfigMaps, {{"metadata", {{"name", "one"}}}});
  const Json two = Call("POST", kConfigMaps, {{"metadata", {{"name", "two"}}}});
  Json child = Owned("child", one);
  child["metadata"]["ownerReferences"].push_back({{"apiVersion", "v1"},
                                                  {"kind", "ConfigMap"},
                                                  {"name", "two"},
                                                  {"uid", two["metadata"]["uid"]}});
  Call("PUT", kConfigMaps + "/child", child);
  Step();
  Call("DELETE", kConfigMaps + "/one");
  Step();
  const Json left = Get(kConfigMaps + "/child");
  ASSERT_EQ(status_, 200);
  EXPECT_EQ(left["metadata"]["ownerReferences"].size(), 1U);
}

class ForgetfulControllersTest : public ControllersTest {
 protected:
  ForgetfulControllersTest() : ControllersTest({.log_count_max = 4}) {}
};

TEST_F(ForgetfulControllersTest, DeletionsWhoseEventsAreForgottenAreNoticed) {
  const std::string secrets = "/api/v1/namespaces/default/secrets";
  const Json root = Call("POST", secrets, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Step();
  Call("DELETE", secrets + "/root");
  for (int i = 0; i < 10; ++i) {
    Call("POST", secrets, {{"metadata", {{"name", fmt::format("more-{}", i)}}}});
  }
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(ControllersTest, OrphansLoseTheReferenceAndStay) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Orphan"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  const Json child = Get(kConfigMaps + "/child");
  ASSERT_EQ(status_, 200);
  EXPECT_FALSE(child["metadata"].contains("ownerReferences"));
}

TEST_F(ControllersTest, ForegroundDeletionEndsWithBothGone) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(ControllersTest, InTheForegroundAnOwnerWaitsForDependentsThatBlockIt) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root, Held(Blocking(root)));
  Owned("other", root, Held());  // does not block
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_TRUE(IsMarked("root"));
  EXPECT_TRUE(IsMarked("child"));
  EXPECT_TRUE(IsMarked("other"));
  LetGo("child");
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_TRUE(Exists(kConfigMaps + "/other"));
}

TEST_F(ControllersTest, InTheForegroundTheWholeFamilyGoesFromItsLeavesUp) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json child = Owned("child", root, Blocking(root));
  Owned("grandchild", child, Held(Blocking(child)));
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_TRUE(IsMarked("root"));
  EXPECT_TRUE(IsMarked("child"));
  LetGo("grandchild");
  Step();
  for (const char* name : {"root", "child", "grandchild"}) {
    EXPECT_FALSE(Exists(kConfigMaps + "/" + name)) << name;
  }
}

TEST_F(ControllersTest, ADependentWithAnotherOwnerOnlyForgetsTheOneThatGoes) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json other = Call("POST", kConfigMaps, {{"metadata", {{"name", "other"}}}});
  Json owners = Blocking(root);
  owners["ownerReferences"].push_back(Reference(other));
  Owned("child", root, owners);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  const Json child = Get(kConfigMaps + "/child");
  ASSERT_EQ(status_, 200);
  EXPECT_EQ(child["metadata"]["ownerReferences"], Json::array({Reference(other)}));
}

TEST_F(ControllersTest, OwnersInACircleDoNotWaitForEver) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  const Json child = Owned("child", root, Blocking(root));
  Call("PATCH", kConfigMaps + "/root", {{"metadata", Blocking(child)}},
       "application/merge-patch+json");
  ASSERT_EQ(status_, 200);
  Step();
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(ControllersTest, ALostWaitGoesOnAfterARestart) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root, Held(Blocking(root)));
  Call("DELETE", kConfigMaps + "/root", {{"propagationPolicy", "Foreground"}});
  Step();
  LetGo("child");
  Controllers restarted([this] { return server_->Kinds(); }, server_->objects(), *api_);
  restarted.Step(clock_.WallNow());
  EXPECT_FALSE(Exists(kConfigMaps + "/root"));
}

TEST_F(ControllersTest, AnOwnerInANamespaceOwnsNothingOutsideOfIt) {
  const Json owner = Call("POST", kConfigMaps, {{"metadata", {{"name", "owner"}}}});
  Call("POST", "/api/v1/nodes",
       {{"metadata", {{"name", "n"}, {"ownerReferences", Json::array({Reference(owner)})}}}});
  ASSERT_EQ(status_, 201);
  Step();
  EXPECT_TRUE(Exists("/api/v1/nodes/n")) << "such a reference is not valid; it must not delete";
}

TEST_F(ControllersTest, AnOwnerOutsideOfNamespacesOwnsWithinThem) {
  const Json node = Call("POST", "/api/v1/nodes", {{"metadata", {{"name", "n"}}}});
  Owned("child", node);
  Step();
  EXPECT_TRUE(Exists(kConfigMaps + "/child"));
  Call("DELETE", "/api/v1/nodes/n");
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
}

TEST_F(ControllersTest, AnOwnerOfAKindThatIsNotServedIsLeftToOthers) {
  Json ghost = {{"kind", "Deployment"}, {"metadata", {{"name", "d"}, {"uid", "u"}}}};
  Owned("child", ghost);
  ASSERT_EQ(status_, 201);
  Step();
  EXPECT_TRUE(Exists(kConfigMaps + "/child"));
}

TEST_F(ControllersTest, ANewOwnerOfTheSameNameIsNotTheOldOne) {
  const Json root = Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Owned("child", root);
  Call("DELETE", kConfigMaps + "/root");
  Call("POST", kConfigMaps, {{"metadata", {{"name", "root"}}}});
  Step();
  EXPECT_FALSE(Exists(kConfigMaps + "/child"));
  EXPECT_TRUE(Exists(kConfigMaps + "/root"));
}

// Owners and dependents in any shape, circles among them, as simply as possible: what has owners
// and none of them is left goes; who is orphaned forgets who orphaned it.
class Family {
 public:
  void Add(int member, const std::set<int>& owners) {
    owners_[member] = owners;
    Settle();
  }
  void Delete(int member, bool orphan) {
    owners_.erase(member);
    if (orphan) {
      for (auto& [one, owners] : owners_) owners.erase(member);
    }
    Settle();
  }
  std::map<int, std::set<int>> owners() const { return owners_; }

 private:
  void Settle() {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto it = owners_.begin(); it != owners_.end(); ++it) {
        const std::set<int> before = it->second;
        std::erase_if(it->second, [&](int owner) { return !owners_.contains(owner); });
        if (!it->second.empty() || before.empty()) continue;
        owners_.erase(it);
        changed = true;
        break;
      }
    }
  }
  std::map<int, std::set<int>> owners_;
};

constexpr int kMembers = 6;

class FamilyTest : public ControllersTest {
 protected:
  static std::string NameOf(int member) { return fmt::format("m{}", member); }

  // Sets the owners of a member, which may be there already.
  void Put(int member, const std::set<int>& owners, bool blocks) {
    Json references = Json::array();
    for (const int owner : owners) {
      Json reference = Reference(Get(kConfigMaps + "/" + NameOf(owner)));
      reference["blockOwnerDeletion"] = blocks;
      references.push_back(reference);
    }
    const Json body = {{"metadata", {{"name", NameOf(member)}, {"ownerReferences", references}}}};
    if (Exists(kConfigMaps + "/" + NameOf(member))) {
      Call("PATCH", kConfigMaps + "/" + NameOf(member), body, "application/merge-patch+json");
    } else {
      Call("POST", kConfigMaps, body);
    }
    ASSERT_EQ(status_ / 100, 2);
  }
  // Does everything that is due, in pieces, sometimes forgetting all between them.
  void SettleDown(bool restart) {
    controllers_->Step(clock_.WallNow(), 2);
    if (restart) Restart();
    Step();
    clock_.Advance(std::chrono::seconds(10));
    EXPECT_EQ(Step(), 0) << "nothing had to be tried again";
  }
  std::map<int, std::set<int>> Found() {
    std::map<int, std::set<int>> found;
    const Json list = Get(kConfigMaps);
    for (const Json& item : ValueAt(list, {"items"})) {
      auto& owners = found[TextAt(item, {"metadata", "name"})[1] - '0'];
      for (const Json& owner : ValueAt(item, {"metadata", "ownerReferences"})) {
        owners.insert(TextAt(owner, {"name"})[1] - '0');
      }
    }
    return found;
  }
};

TEST_F(FamilyTest, ExactlyTheObjectsWithALivingOwnerOrNoOwnerStay) {
  Rng rng(1);
  Family family;
  for (int step = 0; step < 150; ++step) {
    SCOPED_TRACE(step);
    const auto present = family.owners();
    const int member = static_cast<int>(rng.Below(kMembers));
    if (rng.Below(2) == 0 || !present.contains(member)) {
      std::set<int> owners;
      for (const auto& [one, ignored] : present) {
        if (one != member && rng.Below(3) == 0) owners.insert(one);
      }
      Put(member, owners, rng.Below(2) == 0);
      family.Add(member, owners);
    } else {
      static constexpr const char* kPolicies[] = {"Background", "Foreground", "Orphan"};
      const std::size_t policy = rng.Below(3);
      Call("DELETE", kConfigMaps + "/" + NameOf(member),
           {{"propagationPolicy", kPolicies[policy]}});
      family.Delete(member, policy == 2);
    }
    SettleDown(rng.Below(4) == 0);
    ASSERT_EQ(Found(), family.owners());
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
