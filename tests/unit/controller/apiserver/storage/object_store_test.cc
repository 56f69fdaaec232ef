// The object store against a naive model: a map of states per version. Every list at every version,
// and every watch from every version, must agree with it.

#include "controller/apiserver/storage/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "tests/support/fault_file_system.h"
#include "tests/support/temp_dir.h"

namespace tahoma::controller::apiserver {
namespace {

using namespace std::chrono_literals;
using json = Json;
using testing::FaultFileSystem;
using testing::TempDir;
using State = std::map<std::string, int>;  // key -> the object's "n"

const ResourceName kPods = {"", "pods"};
const ResourceName kGangs = {"tahoma.dev", "gangs"};

class ObjectStoreTest : public ::testing::Test {
 protected:
  ObjectStoreTest() { Reopen({}); }
  void Reopen(ObjectStore::Options options, bool single_threaded = true) {
    objects_.reset();
    store_.reset();
    auto store =
        Store::Open({.dir = dir_.path(), .file_system = disk_, .single_threaded = single_threaded});
    TAHOMA_CHECK_OK(store.status());
    store_ = *std::move(store);
    auto objects = ObjectStore::Open(*store_, options);
    TAHOMA_CHECK_OK(objects.status());
    objects_ = *std::move(objects);
  }
  absl::StatusOr<ObjectPtr> Put(const std::string& key, int n, const ResourceName& resource = kPods,
                                CommitsInFlight* flight = nullptr) {
    const auto edit = [&](const ObjectPtr&) -> absl::StatusOr<Edit> {
      return Edit::Put({{"metadata", {{"name", key}}}, {"n", n}});
    };
    return objects_->Change(resource, key, edit, flight);
  }
  absl::StatusOr<ObjectPtr> Remove(const std::string& key) {
    return objects_->Change(kPods, key, [](const ObjectPtr& current) -> absl::StatusOr<Edit> {
      if (current == nullptr) return Edit::None();
      return Edit::Delete(*current->body);
    });
  }
  static State StateOf(const ObjectList& list) {
    State state;
    for (const ObjectPtr& object : list.objects) state[object->key] = object->body->at("n");
    return state;
  }
  static void Replay(const std::vector<EventPtr>& events, State& state) {
    for (const EventPtr& event : events) {
      const std::string& key = event->object->key;
      EXPECT_EQ(event->type == Event::Type::kAdded, !state.contains(key));
      if (event->type == Event::Type::kDeleted) {
        state.erase(key);
      } else {
        state[key] = event->object->body->at("n");
      }
    }
  }

  TempDir dir_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<Store> store_;
  std::unique_ptr<ObjectStore> objects_;
};

TEST_F(ObjectStoreTest, AgreesWithAMapOfStatesAtEveryVersion) {
  Rng rng(11);
  std::map<std::int64_t, State> states = {{objects_->version(), {}}};
  State now;
  for (int i = 0; i < 200; ++i) {
    const std::string key = fmt::format("ns{}/p{}", rng.Below(3), rng.Below(8));
    if (rng.Chance(1, 3)) {
      ASSERT_TRUE(Remove(key).ok());
      now.erase(key);
    } else {
      ASSERT_TRUE(Put(key, i).ok());
      now[key] = i;
    }
    states[objects_->version()] = now;
    ASSERT_EQ(StateOf(objects_->List(kPods, "")), now);
  }
  for (const auto& [version, state] : states) {
    const auto list = objects_->ListAt(kPods, "", version);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(StateOf(*list), state) << "at version " << version;
    State one_namespace;
    for (const auto& [key, n] : state) {
      if (key.starts_with("ns1/")) one_namespace[key] = n;
    }
    EXPECT_EQ(StateOf(*objects_->ListAt(kPods, "ns1/", version)), one_namespace);
    // A watch from here leads to the present.
    State replayed = state;
    std::int64_t position = version;
    while (position < objects_->version()) {
      const auto batch = objects_->Next(kPods, position, 7, 0ms);
      ASSERT_TRUE(batch.ok()) << batch.status();
      Replay(batch->events, replayed);
      position = batch->version;
    }
    EXPECT_EQ(replayed, now);
  }
}

TEST_F(ObjectStoreTest, OneVersionCountsTheChangesOfAllResources) {
  const std::int64_t start = objects_->version();
  EXPECT_EQ((*Put("a/a", 1))->version, start + 1);
  EXPECT_EQ((*Put("a/a", 1, kGangs))->version, start + 2);
  EXPECT_EQ((*Put("a/a", 2))->version, start + 3);
  EXPECT_EQ(objects_->Get(kPods, "a/a")->body->at("metadata").at("resourceVersion"),
            std::to_string(start + 3));
  EXPECT_EQ(ParseJson(objects_->Get(kPods, "a/a")->bytes), *objects_->Get(kPods, "a/a")->body);
}

TEST_F(ObjectStoreTest, TheTextIsThatOfTheObjectWithItsVersion) {
  for (const char* text :
       {R"({"metadata":{}})", R"({"metadata":{"name":"a","resourceVersion":"5","uid":"u"}})",
        R"({"a":1,"data":{"resourceVersion":""},"metadata":{"zone":"\u00e9\"\\"},"z":[{"metadata":
           {"resourceVersion":"x"}}]})"}) {
    const auto stored = objects_->Change(kPods, "ns/a", [&](const ObjectPtr&) {
      return absl::StatusOr<Edit>(Edit::Put(ParseJson(text)));
    });
    ASSERT_TRUE(stored.ok());
    EXPECT_EQ((*stored)->bytes, (*stored)->body->dump());
    EXPECT_EQ((*stored)->body->at("metadata").at("resourceVersion"),
              std::to_string((*stored)->version));
  }
}

TEST_F(ObjectStoreTest, WaitingForAChangeEndsWithTheNextOneOfAnyResource) {
  const std::int64_t version = objects_->version();
  objects_->WaitForChange(version, 0ms);
  objects_->WaitForChange(version - 1, 1h);  // has come already
  std::jthread waiter([&] { objects_->WaitForChange(version, 1h); });
  EXPECT_TRUE(Put("ns/a", 1, kGangs).ok());
}

TEST_F(ObjectStoreTest, AnEditThatWantsNothingOrFailsChangesNothing) {
  ASSERT_TRUE(Put("a/a", 1).ok());
  const std::int64_t version = objects_->version();
  EXPECT_TRUE(objects_->Change(kPods, "a/a", [](const ObjectPtr&) { return Edit::None(); }).ok());
  EXPECT_EQ(objects_
                ->Change(kPods, "a/a",
                         [](const ObjectPtr&) -> absl::StatusOr<Edit> { return Aborted("no"); })
                .status()
                .code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(objects_->version(), version);
  EXPECT_TRUE(objects_->Next(kPods, version, 10, 0ms)->events.empty());
  EXPECT_TRUE(Put("a/a", 2).ok()) << "the object is not left locked";
}

TEST_F(ObjectStoreTest, ARestartKeepsObjectsAndVersionsAndForgetsHistory) {
  ASSERT_TRUE(Put("a/a", 1).ok());
  ASSERT_TRUE(Put("a/b", 2).ok());
  ASSERT_TRUE(Remove("a/b").ok());
  const std::int64_t version = objects_->version();
  Reopen({});
  EXPECT_EQ(objects_->version(), version) << "also when the newest change was a deletion";
  EXPECT_EQ(StateOf(objects_->List(kPods, "")), (State{{"a/a", 1}}));
  EXPECT_EQ(objects_->Next(kPods, version - 1, 10, 0ms).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(objects_->Next(kGangs, version - 1, 10, 0ms).status().code(),
            absl::StatusCode::kOutOfRange)
      << "a resource without objects has no history either";
  EXPECT_TRUE(objects_->Next(kPods, version, 10, 0ms).ok());
  EXPECT_EQ(objects_->ListAt(kPods, "", version - 1).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ((*Put("a/c", 1))->version, version + 1);
}

TEST_F(ObjectStoreTest, HistoryIsBoundedByCountAndByBytes) {
  Reopen({.log_count_max = 5, .log_bytes_max = 64 << 20});
  const std::int64_t start = objects_->version();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Put("a/a", i).ok());
  EXPECT_FALSE(objects_->Next(kPods, start + 2, 10, 0ms).ok());
  EXPECT_EQ(objects_->Next(kPods, start + 3, 10, 0ms)->events.size(), 5U);
  Reopen({.log_count_max = 1000, .log_bytes_max = 1});
  ASSERT_TRUE(Put("a/a", 1).ok());
  ASSERT_TRUE(Put("a/a", 2).ok());
  EXPECT_EQ(objects_->Next(kPods, objects_->version() - 1, 10, 0ms)->events.size(), 1U);
  EXPECT_FALSE(objects_->Next(kPods, objects_->version() - 2, 10, 0ms).ok());
}

TEST_F(ObjectStoreTest, AListOfTheFutureIsRefused) {
  EXPECT_EQ(objects_->ListAt(kPods, "", objects_->version() + 1).status().code(),
            absl::StatusCode::kUnavailable);
}

// Readers and watchers never see what is not on disk.
TEST_F(ObjectStoreTest, APowerCutKeepsWhatWasSeen) {
  for (std::uint64_t crash_at = 0; crash_at < 12; ++crash_at) {
    Rng rng(crash_at);
    State seen = StateOf(objects_->List(kPods, ""));
    State attempted = seen;
    disk_->FailAfter(crash_at, FaultFileSystem::Failure::kCrash);
    for (int i = 0; i < 10; ++i) {
      const std::string key = fmt::format("a/{}", rng.Below(4));
      attempted[key] = i;
      const bool ok = Put(key, i).ok();
      EXPECT_EQ(StateOf(objects_->List(kPods, "")), ok ? attempted : seen);
      if (!ok) break;
      seen = attempted;
    }
    objects_.reset();
    store_.reset();
    disk_->PowerCut(rng);
    Reopen({});
    const State found = StateOf(objects_->List(kPods, ""));
    EXPECT_TRUE(found == seen || found == attempted);
  }
}

TEST_F(ObjectStoreTest, WritersOfOneObjectTakeTurnsAndWatchersSeeEveryVersion) {
  Reopen({}, false);
  ASSERT_TRUE(Put("a/a", 0).ok());
  const std::int64_t start = objects_->version();
  constexpr int kThreads = 4, kChanges = 25;
  std::atomic<int> seen = 0;
  std::jthread watcher([&] {
    std::int64_t position = start;
    int last = 0;
    while (last < kThreads * kChanges) {
      const auto batch = objects_->Next(kPods, position, 10, 1000ms);
      ASSERT_TRUE(batch.ok());
      for (const EventPtr& event : batch->events) {
        ASSERT_EQ(event->object->body->at("n"), last + 1);
        ASSERT_EQ(event->previous->body->at("n"), last);
        ++last;
      }
      position = batch->version;
    }
    seen = last;
  });
  {
    std::vector<std::jthread> writers;
    for (int t = 0; t < kThreads; ++t) {
      writers.emplace_back([&] {
        for (int i = 0; i < kChanges; ++i) {
          EXPECT_TRUE(objects_
                          ->Change(kPods, "a/a",
                                   [](const ObjectPtr& current) -> absl::StatusOr<Edit> {
                                     json body = *current->body;
                                     body["n"] = body["n"].get<int>() + 1;
                                     return Edit::Put(std::move(body));
                                   })
                          .ok());
        }
      });
    }
  }
  watcher.join();
  EXPECT_EQ(seen, kThreads * kChanges);
}

TEST_F(ObjectStoreTest, ChangesOfAFlightAreSeenWhenItHasLanded) {
  Reopen({}, false);
  State wanted;
  for (int round = 0; round < 20; ++round) {
    CommitsInFlight flight;
    for (int i = 0; i < 10; ++i) {
      const std::string key = fmt::format("a/{}", i);
      wanted[key] = 100 * round + i;
      const auto stored = Put(key, wanted[key], kPods, &flight);
      ASSERT_TRUE(stored.ok());
      EXPECT_EQ((*stored)->body->at("n"), wanted[key]);
    }
    ASSERT_TRUE(flight.Land().ok());
    EXPECT_EQ(StateOf(objects_->List(kPods, "")), wanted);
  }
}

// The second edit must wait for the first to be stored, or it would not see it.
TEST_F(ObjectStoreTest, ChangesOfOneObjectTakeTurnsWithinAFlightToo) {
  Reopen({}, false);
  ASSERT_TRUE(Put("a/a", 0).ok());
  CommitsInFlight flight;
  for (int i = 1; i <= 10; ++i) {
    const auto edit = [&](const ObjectPtr& current) -> absl::StatusOr<Edit> {
      EXPECT_EQ(current->body->at("n"), i - 1);
      return Edit::Put({{"metadata", {{"name", "a"}}}, {"n", i}});
    };
    ASSERT_TRUE(objects_->Change(kPods, "a/a", edit, &flight).ok());
  }
  ASSERT_TRUE(flight.Land().ok());
  EXPECT_EQ(objects_->Get(kPods, "a/a")->body->at("n"), 10);
}

TEST_F(ObjectStoreTest, AFlightThatTheDiskRefusesHasChangedNothing) {
  Reopen({}, false);
  ASSERT_TRUE(Put("a/a", 1).ok());
  const std::int64_t version = objects_->version();
  disk_->FailAfter(0, FaultFileSystem::Failure::kCrash);
  CommitsInFlight flight;
  EXPECT_TRUE(Put("a/a", 2, kPods, &flight).ok()) << "the disk has not been asked yet";
  EXPECT_TRUE(Put("a/b", 2, kPods, &flight).ok());
  EXPECT_TRUE(absl::IsUnavailable(flight.Land()));
  EXPECT_TRUE(absl::IsUnavailable(flight.Land())) << "it does not recover";
  EXPECT_EQ(StateOf(objects_->List(kPods, "")), (State{{"a/a", 1}}));
  EXPECT_EQ(objects_->version(), version);
  EXPECT_TRUE(absl::IsUnavailable(Put("a/a", 3).status())) << "and nobody waits for a change";
}

TEST_F(ObjectStoreTest, AnExceptionInAChangeLeavesTheObjectToTheNextChange) {
  for (const bool single_threaded : {true, false}) {
    Reopen({.change_wait = 100ms}, single_threaded);
    ASSERT_TRUE(Put("a/a", 1).ok());
    const auto throws = [](const ObjectPtr&) -> absl::StatusOr<Edit> {
      throw std::runtime_error("a mistake");
    };
    EXPECT_THROW(objects_->Change(kPods, "a/a", throws).IgnoreError(), std::runtime_error);
    EXPECT_THROW(objects_->Change(kPods, "a/new", throws).IgnoreError(), std::runtime_error);
    ASSERT_TRUE(Put("a/a", 2).ok());
    ASSERT_TRUE(Put("a/new", 3).ok());
    EXPECT_EQ(StateOf(objects_->List(kPods, "")), (State{{"a/a", 2}, {"a/new", 3}}));
    ASSERT_TRUE(Remove("a/a").ok());
    ASSERT_TRUE(Remove("a/new").ok());
  }
}

// The version is written into metadata when the edit is done.
TEST_F(ObjectStoreTest, ABodyThatCannotBeStoredLeavesObjectAndFlightAsTheyWere) {
  Reopen({.change_wait = 100ms}, false);
  ASSERT_TRUE(Put("a/a", 1).ok());
  CommitsInFlight flight;
  const auto no_metadata = [](const ObjectPtr&) -> absl::StatusOr<Edit> {
    return Edit::Put({{"metadata", "text"}});
  };
  EXPECT_THROW(objects_->Change(kPods, "a/a", no_metadata, &flight).IgnoreError(), json::exception);
  ASSERT_TRUE(Put("a/a", 2, kPods, &flight).ok());
  ASSERT_TRUE(flight.Land().ok());
  EXPECT_EQ(StateOf(objects_->List(kPods, "")), (State{{"a/a", 2}}));
}

TEST_F(ObjectStoreTest, AChangeThatHangsHoldsUpNobodyForEver) {
  Reopen({.change_wait = 20ms}, false);
  std::promise<void> begun;
  std::promise<void> end;
  std::jthread hanging([&] {
    const auto waits = [&](const ObjectPtr&) -> absl::StatusOr<Edit> {
      begun.set_value();
      end.get_future().wait();
      return Edit::None();
    };
    EXPECT_TRUE(objects_->Change(kPods, "a/a", waits).ok());
  });
  begun.get_future().wait();
  const absl::Status refused = Put("a/a", 1).status();
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("pods a/a is being changed"));
  EXPECT_TRUE(Put("a/b", 1).ok()) << "another object";
  end.set_value();
  hanging.join();
  EXPECT_TRUE(Put("a/a", 1).ok());
}

TEST_F(ObjectStoreTest, StopWaitingEndsAWaitAtOnce) {
  std::jthread stopper([&] { objects_->StopWaiting(); });
  EXPECT_TRUE(objects_->Next(kPods, objects_->version(), 10, 3600s)->events.empty());
}

TEST_F(ObjectStoreTest, DamagedObjectsAreDataLossThatNamesTheKey) {
  for (const char* value :
       {"{", "[]", R"({"metadata":{}})", R"({"metadata":{"resourceVersion":"x"}})",
        R"({"metadata":{"resourceVersion":"999999"}})"}) {
    WriteBatch batch;
    batch.Put(Keyspace::kApi, "o/core/pods/a/bad", value);
    ASSERT_TRUE(store_->Commit(std::move(batch)).ok());
    const auto opened = ObjectStore::Open(*store_, {});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kDataLoss) << value;
    EXPECT_THAT(opened.status().ToString(), ::testing::HasSubstr("o/core/pods/a/bad"));
  }
}

}  // namespace
}  // namespace tahoma::controller::apiserver
