// Leaders that follow one another on one API, each with a journal of its own, in virtual time.
//
//   BlockApi api;                                  // the CapacityBlocks, with preconditions
//   MemoryJournal journal;
//   Leader leader(api, journal, 1, morning);       // term 1; eight nodes in two UltraServers
//   leader.Buy({"team-a", "train"});
//   leader.Find({"team-a", "train"})->hosts;
//
// A leader is CapacityBlocks, stepped as controller/run/core_loop.cc does it: step, journal, and
// only then answers and writes.
//
// Thread safety: one thread.

#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "controller/core/blocks/capacity_blocks.h"
#include "controller/core/journal/block_record.h"
#include "controller/core/journal/journal.h"
#include "controller/reserve/search.h"
#include "lib/base/check.h"
#include "lib/base/hex.h"
#include "tests/support/fleet.h"

namespace tahoma::controller {

// The CapacityBlocks of an API server, with its preconditions.
class BlockApi {
 public:
  BlockFact& Make(BlockFact fact) {
    fact.uid = fmt::format("uid-{}", ++uids_);
    fact.order.key = fact.key;
    fact.order.uid = fact.uid;
    if (fact.order.token.empty()) fact.order.token = fact.uid;
    return Changed(objects[fact.key] = std::move(fact));
  }

  ApiResult Execute(const ApiWrite& write) {
    ApiResult result = ResultOf(write);
    const BlockKey key{write.ns, write.name};
    const auto object = objects.find(key);
    if (write.kind == WriteKind::kCreateBlock) {
      if (object != objects.end()) return Refused(result, WriteOutcome::kConflict);
      if (!has_namespaces) return Refused(result, WriteOutcome::kGone);
      BlockFact fact{.key = key,
                     .protected_by_finalizer = HoldsCapacity(write.block->block->state)};
      fact.order.offering_id = write.block->block->offering_id;
      fact.order.token = write.block->block->token;
      Make(std::move(fact));
      return result;
    }
    if (object == objects.end()) return Refused(result, WriteOutcome::kGone);
    BlockFact& fact = object->second;
    const bool is_status = write.kind == WriteKind::kBlockStatus;
    const std::string& base = is_status ? write.base_version : write.block_base->resource_version;
    if (fact.uid != write.uid || fact.resource_version != base) {
      return Refused(result, WriteOutcome::kConflict);
    }
    const Block* block = write.block->block.get();
    if (is_status) {
      fact.record = block == nullptr ? "" : Hex(EncodeBlock(*block));
      fact.record_version = block == nullptr ? BlockVersion{} : block->version;
      fact.refusal = write.block->refusal;
      refusals[key] = write.block->refusal;
    } else {
      fact.protected_by_finalizer = block != nullptr && HoldsCapacity(block->state);
    }
    result.resource_version = Changed(fact).resource_version;
    return result;
  }

  Block Published(const BlockKey& key) const {
    auto block = DecodeBlock(*Unhex(objects.at(key).record));
    TAHOMA_CHECK_OK(block.status());
    return *std::move(block);
  }

  BlockFact& Changed(BlockFact& fact) {
    fact.resource_version = std::to_string(++versions_);
    changed.insert(fact.key);
    return fact;
  }

  bool has_namespaces = true;
  std::map<BlockKey, BlockFact> objects;
  std::map<BlockKey, std::string> refusals;
  std::set<BlockKey> changed;

 private:
  static ApiResult Refused(ApiResult result, WriteOutcome outcome) {
    result.outcome = outcome;
    return result;
  }

  int uids_ = 0, versions_ = 100;
};

// A controller while it leads.
class Leader {
 public:
  using Arrives = std::function<bool(const ApiWrite&)>;

  Leader(
      BlockApi& api, Journal& journal, std::int64_t term, WallTime wall,
      Arrives which = [](const ApiWrite&) { return true; })
      : arrives(std::move(which)),
        api_(api),
        journal_(journal),
        wall_(wall),
        blocks_(BookOptions{}, buffer_, BlockTime(), term) {
    for (int i = 0; i < 8; ++i) PutNode(i);
    TAHOMA_CHECK_OK(journal_.Load([&](Sequence sequence, std::string_view bytes) {
      TAHOMA_CHECK(buffer_.Restore(sequence).ok());
      auto block = DecodeBlock(bytes);
      return block.ok() ? blocks_.Restore(sequence, *std::move(block)) : block.status();
    }));
    for (const auto& [key, fact] : api_.objects) api_.changed.insert(key);
    See();
    blocks_.OnSynced();
    Settle();
  }

  // Steps until nothing moves. Writes for which `arrives` is false are kept in `sent`.
  void Settle() {
    for (int quiet = 0; quiet < 2 && failure_.ok();) {
      See();
      for (const ApiResult& result : std::exchange(results_, {})) blocks_.OnResult(result, now());
      std::vector<ApiWrite> writes;
      blocks_.Step(cluster_, now(), attempts_, writes);
      failure_ = journal_.Write(buffer_.Take());
      if (!failure_.ok()) return;
      for (OrderAnswer& answer : blocks_.TakeAnswers()) answers.push_back(std::move(answer));
      for (const ApiWrite& write : writes) {
        if (write.kind == WriteKind::kEvent) continue;
        arrives(write) ? results_.push_back(api_.Execute(write)) : sent.push_back(write);
      }
      quiet = writes.empty() && results_.empty() ? quiet + 1 : 0;
    }
  }

  // Sets the clock, back as well; the monotonic one goes on in any case.
  void MoveTo(WallTime wall) {
    monotonic_ += std::max<std::chrono::nanoseconds>(wall - wall_, CapacityBlocks::kSeenAfter);
    wall_ = wall;
    Settle();
  }
  void SetHealthy(int ultra_server, bool healthy) {
    for (int i = 4 * ultra_server; i < 4 * ultra_server + 4; ++i) {
      healthy ? PutNode(i) : cluster_.RemoveNode(fmt::format("n{}", i));
    }
    Settle();
  }
  // Nodes go and come back between two steps.
  void MakeNodesAgain(const std::vector<int>& nodes) {
    for (const int i : nodes) cluster_.RemoveNode(fmt::format("n{}", i));
    for (const int i : nodes) PutNode(i);
    Settle();
  }

  std::string Offering(int days = 1, int count = 1) {
    const auto search = CheckQuery({.ultraserver_type = "u-trn2x64",
                                    .ultraserver_count = count,
                                    .duration_hours = days * 24,
                                    .start_date_range = StartOf(SlotOf(wall_) + 1),
                                    .order = OfferingOrder::kStart},
                                   wall_);
    TAHOMA_CHECK_OK(search.status());
    const SearchAnswer answer =
        SearchOfferings(blocks_.book().profile(), blocks_.book().prices(), *search, wall_);
    TAHOMA_CHECK(!answer.offerings.empty());
    return OfferingId(answer.offerings.front());
  }
  void Buy(const BlockKey& key, int days = 1, int count = 1,
           ReplacePolicy replace = ReplacePolicy::kNone) {
    BlockFact fact{.key = key};
    fact.order.offering_id = Offering(days, count);
    fact.order.terms.replace = replace;
    api_.Make(std::move(fact));
    Settle();
  }
  void Extend(const BlockKey& key, const std::string& token) {
    const auto block = Find(key);
    const auto offering = blocks_.book().OfferExtension(block->reservation, 24, wall_);
    TAHOMA_CHECK_OK(offering.status());
    blocks_.OnOrder({1, ExtensionOrder{.reservation = block->reservation,
                                       .offering_id = ExtensionOfferingId(*offering),
                                       .token = token}});
    Settle();
  }

  // Carries out an order of another API, and lets it settle.
  void Order(std::uint64_t ticket, std::variant<PurchaseOrder, ExtensionOrder> order) {
    blocks_.OnOrder({ticket, std::move(order)});
    Settle();
  }

  // Not OK when the journal could not be written: nothing was answered or sent since.
  const absl::Status& failure() const { return failure_; }
  // When it has something to do, from now on.
  std::optional<std::chrono::nanoseconds> wake() const {
    const auto wake = blocks_.wake(now());
    return wake ? std::optional(*wake - monotonic_) : std::nullopt;
  }
  CapacityBlocks& blocks() { return blocks_; }
  const ClusterState& fleet() const { return cluster_; }
  std::shared_ptr<const Block> Find(const BlockKey& key) { return blocks_.book().FindByKey(key); }

  Arrives arrives;
  std::vector<ApiWrite> sent;
  std::vector<OrderAnswer> answers;

 private:
  void PutNode(int i) {
    cluster_.PutNode(NodeFactsOf({.name = fmt::format("n{}", i),
                                  .type = "trn2u.48xlarge",
                                  .ultra_server = fmt::format("us-{}", i / 4),
                                  .z = i % 4,
                                  .top_layer = "nn-1"}));
  }
  Now now() const { return {wall_, monotonic_}; }
  void See() {
    for (const BlockKey& key : std::exchange(api_.changed, {})) {
      blocks_.OnBlock(std::make_shared<const BlockFact>(api_.objects.at(key)));
    }
  }

  BlockApi& api_;
  Journal& journal_;
  WallTime wall_;
  MonotonicTime monotonic_{};
  ClusterState cluster_;
  JournalBuffer buffer_;
  CapacityBlocks blocks_;
  std::vector<ApiResult> results_;
  std::uint64_t attempts_ = 0;
  absl::Status failure_;
};

}  // namespace tahoma::controller
