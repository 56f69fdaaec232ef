// 32 clients search, buy, extend and list Capacity Blocks by REST, EC2's API and kubectl's objects,
// while the controller is killed with SIGKILL and started again. A client without an answer asks
// again with the same token. The answers must be possible one after the other: no acknowledged
// purchase is lost, no host is sold twice, and no list shows a false state.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/rng.h"
#include "tests/integration/standalone.h"
#include "tests/support/history.h"
#include "tests/support/temp_dir.h"

namespace tahoma::testing {
namespace {

constexpr int kHosts = 5;
constexpr int kDays = 4;
constexpr int kClients = 32;
constexpr int kCallsOfEach = 8;
constexpr int kKills = 5;
constexpr const char* kBlocks = "/apis/tahoma.dev/v1alpha1/namespaces/default/capacityblocks";

enum class Verb { kSearch, kBuy, kExtend, kList };

struct BlockCall {
  Verb verb = Verb::kSearch;
  int day = 0;             // to search, to buy, or to add to a block
  std::string block = {};  // to extend
};

// A list's content: each block with the day of its end.
using Shown = std::map<std::string, int>;

struct BlockAnswer {
  bool done = false;       // found, bought, extended
  std::string block = {};  // the bought block
  Shown shown = {};
};

using BlockOperation = Operation<BlockCall, BlockAnswer>;

// The legal answers of a seller of days, one call after the other.
struct Seller {
  struct State {
    std::array<int, kDays> sold = {};
    Shown blocks = {};
    auto operator<=>(const State&) const = default;
  };

  static std::optional<State> Apply(const State& state, const BlockCall& call,
                                    const BlockAnswer& answer) {
    const auto day = static_cast<std::size_t>(call.day);
    const bool free = call.verb != Verb::kList && state.sold[day] < kHosts;
    switch (call.verb) {
      case Verb::kSearch:
        return answer.done == free ? std::optional(state) : std::nullopt;
      case Verb::kList:
        return answer.shown == state.blocks ? std::optional(state) : std::nullopt;
      case Verb::kBuy: {
        if (answer.done != free || state.blocks.contains(answer.block)) return std::nullopt;
        State after = state;
        if (!answer.done) return after;
        ++after.sold[day];
        after.blocks[answer.block] = call.day;
        return after;
      }
      case Verb::kExtend: {
        const auto block = state.blocks.find(call.block);
        if (answer.done != free || block == state.blocks.end()) return std::nullopt;
        State after = state;
        if (!answer.done) return after;
        ++after.sold[day];
        after.blocks[call.block] = call.day;
        return after;
      }
    }
    return std::nullopt;
  }

  // Days fill up and blocks are never gone again.
  static bool MayFollow(const State& state, const BlockCall& call, const BlockAnswer& answer) {
    if (call.verb == Verb::kSearch) {
      return !answer.done || state.sold[static_cast<std::size_t>(call.day)] < kHosts;
    }
    if (call.verb != Verb::kList) return true;
    return std::all_of(state.blocks.begin(), state.blocks.end(), [&](const auto& block) {
      const auto shown = answer.shown.find(block.first);
      return shown != answer.shown.end() && shown->second >= block.second;
    });
  }
};

// ---- The checker itself ------------------------------------------------------------------------

BlockOperation Bought(std::uint64_t called, std::uint64_t answered, int day, std::string block) {
  return {called, answered, {.verb = Verb::kBuy, .day = day}, {.done = true, .block = block}};
}
BlockOperation Listed(std::uint64_t called, std::uint64_t answered, Shown shown) {
  return {called, answered, {.verb = Verb::kList}, {.shown = std::move(shown)}};
}
BlockOperation Found(std::uint64_t called, std::uint64_t answered, int day, bool found) {
  return {called, answered, {.verb = Verb::kSearch, .day = day}, {.done = found}};
}
bool Holds(const std::vector<BlockOperation>& history) { return IsLinearizable<Seller>(history); }

TEST(HistoryTest, OperationsThatOverlapMayHaveAnyOrder) {
  EXPECT_TRUE(Holds({}));
  EXPECT_TRUE(Holds({Bought(1, 4, 0, "a"), Listed(2, 3, {})}));
  EXPECT_TRUE(Holds({Bought(1, 4, 0, "a"), Listed(2, 3, {{"a", 0}})}));
}

TEST(HistoryTest, AnAnsweredPurchaseIsSeenFromThenOn) {
  EXPECT_TRUE(Holds({Bought(1, 2, 0, "a"), Listed(3, 4, {{"a", 0}})}));
  EXPECT_FALSE(Holds({Bought(1, 2, 0, "a"), Listed(3, 4, {})})) << "it was lost";
  EXPECT_FALSE(Holds({Bought(1, 2, 0, "a"), Listed(3, 4, {{"a", 0}, {"b", 0}})}));
  EXPECT_FALSE(Holds({Bought(1, 9, 0, "a"), Listed(2, 3, {{"a", 0}}), Listed(4, 5, {})}))
      << "it was seen and then not";
}

TEST(HistoryTest, NoMoreIsSoldThanThereIs) {
  std::vector<BlockOperation> history;
  for (int i = 0; i < kHosts; ++i) history.push_back(Bought(1, 100, 2, fmt::format("b{}", i)));
  EXPECT_TRUE(Holds(history));
  history.push_back(Found(101, 102, 2, false));
  EXPECT_TRUE(Holds(history));
  history.back() = Found(101, 102, 2, true);
  EXPECT_FALSE(Holds(history));
  history.back() = Bought(1, 100, 2, "one-more");
  EXPECT_FALSE(Holds(history)) << "it was sold twice";
  history.back() = Bought(1, 100, 2, "b0");
  EXPECT_FALSE(Holds(history)) << "one block was sold to two";
  history.back() = {1, 100, {.verb = Verb::kBuy, .day = 1}, {.done = false}};
  EXPECT_FALSE(Holds(history)) << "refused, and there was room";
}

// ---- The controller ----------------------------------------------------------------------------

// The running controller: many threads ask it, and a thread kills it.
class Target {
 public:
  explicit Target(std::string folder) : folder_(std::move(folder)) { Start(); }

  void KillAndStart() {
    {
      const std::lock_guard lock(mutex_);
      api_ = admin_ = "";
    }
    controller_->program().Kill(SIGKILL);
    controller_->program().Wait();
    Start();
  }

  // Returns the answer of the API, or of the admin API; nullopt when there was none, or the call
  // must be repeated.
  std::optional<kube::Response> Ask(bool admin, const kube::Request& request) {
    std::string address;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !api_.empty(); });
      address = admin ? admin_ : api_;
    }
    auto transport = kube::HttpTransport::Create({.server = "http://" + address});
    TAHOMA_CHECK_OK(transport.status());
    auto answer = (*transport)->Send(request);
    if (!answer.ok() || answer->status >= 500) return std::nullopt;
    return *std::move(answer);
  }
  Standalone& controller() { return *controller_; }

 private:
  void Start() {
    controller_ = std::make_unique<Standalone>(folder_, RealController);
    TAHOMA_CHECK(controller_->started());
    const std::string ports = *ReadFile(folder_ + "/ports");
    const std::size_t admin = ports.find("adminAddress: ") + 14;
    const std::lock_guard lock(mutex_);
    api_ = controller_->address();
    admin_ = ports.substr(admin, ports.find('\n', admin) - admin);
    changed_.notify_all();
  }

  const std::string folder_;
  std::unique_ptr<Standalone> controller_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string api_, admin_;  // empty while the controller is dead
};

// Returns 11:30 UTC, `day` days from tomorrow on.
WallTime Boundary(int day) {
  static const WallTime first = [] {
    const auto now = std::chrono::time_point_cast<std::chrono::days>(SystemClock().WallNow());
    return WallTime(now) + std::chrono::hours(48) + std::chrono::minutes(11 * 60 + 30);
  }();
  return first + std::chrono::hours(24 * day);
}

int DayOf(const std::string& end) {
  for (int day = 0; day < kDays; ++day) {
    if (FormatTime(Boundary(day + 1)) == end) return day;
  }
  return -1;
}

class Client {
 public:
  Client(Target& target, std::atomic<std::uint64_t>& clock, int number, std::uint64_t seed,
         const std::array<std::string, kDays>& offerings)
      : target_(target), clock_(clock), number_(number), rng_(seed), offerings_(offerings) {}

  void Run() {
    for (int i = 0; i < kCallsOfEach; ++i) {
      BlockOperation operation;
      operation.called = ++clock_;
      CallSomething(operation);
      operation.answered = ++clock_;
      history.push_back(std::move(operation));
    }
  }

  static std::string SearchTarget(int day) {
    return fmt::format(
        "/v1/capacityblockofferings?instanceType=trn2.48xlarge&instanceCount=1"
        "&capacityDurationHours=24&startDateRange={}&endDateRange={}",
        FormatTime(Boundary(day)), FormatTime(Boundary(day + 1)));
  }

  std::vector<BlockOperation> history;

 private:
  void CallSomething(BlockOperation& operation) {
    BlockCall& call = operation.call;
    call.day = static_cast<int>(rng_.Below(kDays));
    const std::uint64_t dice = rng_.Below(8);
    if (dice < 2) {
      call.verb = Verb::kSearch;
      const Json found = Insist(true, {.method = "GET", .target = SearchTarget(call.day)});
      operation.answer.done = !found.at("capacityBlockOfferings").empty();
    } else if (dice < 4) {
      call.verb = Verb::kList;
      const Json list = Insist(true, {.method = "GET", .target = "/v1/capacityblocks"});
      for (const Json& row : list.at("capacityBlocks")) {
        if (!row.contains("state")) continue;  // a refused purchase
        operation.answer.shown[row.at("capacityReservationId").get<std::string>()] =
            DayOf(row.at("endDate").get<std::string>());
      }
    } else if (dice < 5 && !mine_.empty() && mine_.begin()->second.second + 1 < kDays) {
      Extend(operation);
    } else {
      call.verb = Verb::kBuy;
      const std::string token = fmt::format("t-{}-{}", number_, ++bought_);
      operation.answer = dice == 5   ? Apply(call.day, token)
                         : dice == 6 ? BuyByEc2(call.day, token)
                                     : Buy(call.day, token);
      if (operation.answer.done) mine_[operation.answer.block] = {names_.back(), call.day};
    }
  }

  // Asks until there is an answer.
  Json Insist(bool admin, kube::Request request) {
    for (;;) {
      const auto answer = target_.Ask(admin, request);
      if (answer) return ParseJson(std::string(answer->body));
    }
  }

  BlockAnswer Buy(int day, const std::string& token) {
    const Json body = {{"capacityBlockOfferingId", offerings_[static_cast<std::size_t>(day)]},
                       {"clientToken", token}};
    const Json answer = Insist(true, {.method = "POST",
                                      .target = "/v1/capacityblocks/default",
                                      .headers = {{"Content-Type", "application/json"}},
                                      .body = body.dump()});
    return Sold(answer, "capacityReservationId", "name");
  }

  void Extend(BlockOperation& operation) {
    auto mine = mine_.extract(mine_.begin());
    const auto& [name, day] = mine.mapped();
    operation.call = {.verb = Verb::kExtend, .day = day + 1, .block = mine.key()};
    const Json body = {{"capacityBlockExtensionDurationHours", 24}, {"clientToken", "x"}};
    const Json answer =
        Insist(true, {.method = "POST",
                      .target = fmt::format("/v1/capacityblocks/default/{}/extensions", name),
                      .headers = {{"Content-Type", "application/json"}},
                      .body = body.dump()});
    operation.answer.done = answer.contains("endDate");
    if (operation.answer.done) {
      EXPECT_EQ(DayOf(answer.at("endDate").get<std::string>()), day + 1) << answer.dump();
    } else {
      EXPECT_EQ(answer.value("code", ""), "InsufficientInstanceCapacity") << answer.dump();
    }
  }

  BlockAnswer Sold(const Json& answer, const char* reservation, const char* name) {
    if (answer.contains(reservation)) {
      names_.push_back(answer.at(name).get<std::string>());
      return {.done = true, .block = answer.at(reservation).get<std::string>()};
    }
    EXPECT_EQ(answer.value("code", ""), "InvalidCapacityBlockOfferingIdExpired") << answer.dump();
    return {};
  }

  BlockAnswer BuyByEc2(int day, const std::string& token) {
    for (;;) {
      const auto answer = target_.Ask(
          true, {.method = "POST",
                 .target = "/",
                 .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                 .body = fmt::format("Action=PurchaseCapacityBlock&Version=2016-11-15"
                                     "&InstancePlatform=Linux%2FUNIX&CapacityBlockOfferingId={}"
                                     "&ClientToken={}",
                                     offerings_[static_cast<std::size_t>(day)], token)});
      if (!answer) continue;
      const std::string text(answer->body);
      const std::string tag = "<capacityReservationId>";
      const std::size_t begin = text.find(tag);
      if (begin == std::string::npos) {
        EXPECT_THAT(text, ::testing::HasSubstr("InvalidCapacityBlockOfferingId")) << text;
        return {};
      }
      const std::size_t from = begin + tag.size();
      names_.push_back(text.substr(from, text.find('<', from) - from));
      return {.done = true, .block = names_.back()};
    }
  }

  // As kubectl apply, and then kubectl wait.
  BlockAnswer Apply(int day, const std::string& name) {
    const Json object = {
        {"apiVersion", "tahoma.dev/v1alpha1"},
        {"kind", "CapacityBlock"},
        {"metadata", {{"name", name}}},
        {"spec", {{"capacityBlockOfferingId", offerings_[static_cast<std::size_t>(day)]}}}};
    Insist(false, {.method = "POST",
                   .target = kBlocks,
                   .headers = {{"Content-Type", "application/json"}},
                   .body = object.dump()});
    for (;;) {
      const Json seen = Insist(false, {.target = std::string(kBlocks) + "/" + name});
      const Json status = seen.value("status", Json::object());
      if (status.contains("state")) {
        names_.push_back(name);
        return {.done = true,
                .block = status.at("capacityReservationIds").at(0).get<std::string>()};
      }
      if (status.contains("reason")) {
        EXPECT_EQ(status.at("reason"), "InvalidCapacityBlockOfferingIdExpired");
        return {};
      }
    }
  }

  Target& target_;
  std::atomic<std::uint64_t>& clock_;
  const int number_;
  Rng rng_;
  const std::array<std::string, kDays>& offerings_;
  std::map<std::string, std::pair<std::string, int>> mine_;  // not extended: name and day
  std::vector<std::string> names_;
  int bought_ = 0;
};

// Asks until all hosts are for sale, and returns the offering of each day.
std::array<std::string, kDays> Offerings(Target& target) {
  std::array<std::string, kDays> offerings;
  for (int day = 0; day < kDays; ++day) {
    EXPECT_TRUE(target.controller().Eventually([&] {
      const auto answer = target.Ask(true, {.target = Client::SearchTarget(day)});
      if (!answer) return false;
      const Json found = ParseJson(std::string(answer->body)).at("capacityBlockOfferings");
      if (found.empty()) return false;
      offerings[static_cast<std::size_t>(day)] =
          found.at(0).at("capacityBlockOfferingId").get<std::string>();
      return true;
    }));
  }
  return offerings;
}

TEST(BlockHistoryTest, AnswersThroughKillsAreThoseOfSomeSerialOrder) {
  const std::uint64_t seed = SeedFromMachine();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Rng rng(seed);
  const TempDir dir;
  Target target(dir.path());
  for (int i = 0; i < kHosts; ++i) MakeNode(target.controller().api(), fmt::format("n{}", i));
  const auto offerings = Offerings(target);
  ASSERT_FALSE(HasFailure());
  // … of all hosts: the last node may come to the core after the first.
  ASSERT_TRUE(target.controller().Eventually([&] {
    std::string all = Client::SearchTarget(0);
    all.replace(all.find("Count=1"), 7, fmt::format("Count={}", kHosts));
    const auto answer = target.Ask(true, {.target = all});
    return answer && !ParseJson(std::string(answer->body)).at("capacityBlockOfferings").empty();
  }));

  std::atomic<std::uint64_t> clock = 0;
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(target, clock, i, rng.Next(), offerings);
  }
  {
    std::vector<std::jthread> threads;
    for (Client& client : clients) threads.emplace_back([&client] { client.Run(); });
    for (int kill = 1; kill <= kKills; ++kill) {
      const std::uint64_t until =
          static_cast<std::uint64_t>(kill) * 2 * kClients * kCallsOfEach / (kKills + 2) +
          rng.Below(20);
      while (clock < until) std::this_thread::yield();
      target.KillAndStart();
    }
  }
  std::vector<BlockOperation> history;
  int bought = 0;
  for (const Client& client : clients) {
    for (const BlockOperation& operation : client.history) {
      bought += operation.call.verb == Verb::kBuy && operation.answer.done ? 1 : 0;
      history.push_back(operation);
    }
  }
  fmt::print("{} operations, {} blocks bought, {} kills\n", history.size(), bought, kKills);
  EXPECT_GT(bought, kHosts);
  EXPECT_TRUE(IsLinearizable<Seller>(history));
}

}  // namespace
}  // namespace tahoma::testing
