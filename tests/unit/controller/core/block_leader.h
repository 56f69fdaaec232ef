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
    const BlockKey key{result.ns, result.name};
    const auto object = objects.find(key);
    if (const auto* creation = std::get_if<BlockCreation>(&write.what)) {
      if (object != objects.end()) return Refused(result, WriteOutcome::kConflict);
      if (!has_namespaces) return Refused(result, WriteOutcome::kGone);
      BlockFact fact{.key = key, .protected_by_finalizer = HoldsCapacity(creation->block->state)};
      fact.order.offering_id = creation->block->offering_id;
      fact.order.token = creation->block->token;
      Make(std::move(fact));
      return result;
    }
    if (object == objects.end()) return Refused(result, WriteOutcome::kGone);
    BlockFact& fact = object->second;
    const auto is_at = [&](const std::string& uid, const std::string& version) {
      return fact.uid == uid && fact.resource_version == version;
    };
    if (const auto* status = std::get_if<BlockStatusWrite>(&write.what)) {
      if (!is_at(status->uid, status->base_version)) {
        return Refused(result, WriteOutcome::kConflict);
      }
      const Block* block = status->view->block.get();
      fact.record = block == nullptr ? "" : Hex(EncodeBlock(*block));
      fact.record_version = block == nullptr ? BlockVersion{} : block->version;
      fact.refusal = status->view->refusal;
      refusals[key] = status->view->refusal;
    } else {
      const auto& finalizer = std::get<BlockFinalizerWrite>(write.what);
      if (!is_at(finalizer.base->uid, finalizer.base->resource_version)) {
        return Refused(result, WriteOutcome::kConflict);
      }
      fact.protected_by_finalizer = finalizer.add;
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
        blocks_(BookOptions{}, buffer_, writes_, BlockTime(), term) {
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
      blocks_.Step(cluster_, now());
      const std::vector<ApiWrite> writes = writes_.DrainWrites();
      failure_ = journal_.Write(buffer_.DrainBatch());
      if (!failure_.ok()) return;
      for (OrderAnswer& answer : blocks_.DrainAnswers()) answers.push_back(std::move(answer));
      for (const ApiWrite& write : writes) {
        if (write.kind() == WriteKind::kEvent) continue;
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
  WriteBuffer writes_;
  CapacityBlocks blocks_;
  std::vector<ApiResult> results_;
  absl::Status failure_;
};

}  // namespace tahoma::controller
