#include "tests/sim/block_checks.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "controller/core/journal/block_record.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "tests/sim/objects.h"

namespace tahoma::simulation {

using controller::Block;
using controller::BlockState;
using controller::Extension;
using controller::ExtensionState;
using json = Json;

namespace {

bool Lives(BlockState state) {
  return state == BlockState::kPaymentPending || state == BlockState::kScheduled ||
         state == BlockState::kActive || state == BlockState::kUnavailable;
}

bool HasBegun(BlockState state) {
  return state == BlockState::kActive || state == BlockState::kUnavailable;
}

// Several changes may be made in one step.
bool MayFollow(BlockState before, BlockState after) {
  switch (before) {
    case BlockState::kPaymentPending:
      return true;
    case BlockState::kScheduled:
      return after != BlockState::kPaymentPending && after != BlockState::kPaymentFailed;
    case BlockState::kActive:
    case BlockState::kUnavailable:
      return HasBegun(after) || after == BlockState::kExpired;
    case BlockState::kPaymentFailed:
    case BlockState::kExpired:
    case BlockState::kFailed:
      return after == before;
  }
  return false;
}

// Returns when the block's capacity ends, with an extension that may yet be paid.
WallTime LastEnd(const Block& block) {
  WallTime end = block.bought.end;
  for (const Extension& extension : block.extensions) {
    if (extension.state != ExtensionState::kPaymentFailed) end = std::max(end, extension.end);
  }
  return end;
}

WallTime Begin(const Block& block) {
  return block.terms.binding == controller::BindingMode::kAtPurchase ? block.created
                                                                     : block.bought.start;
}

std::int64_t FeeOf(const Block& block) {
  const auto price = [&](WallTime from, WallTime to) {
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(to - from).count();
    return (block.bought.rate.millionths * block.bought.count * minutes * 2 + 60) / 120;
  };
  std::int64_t fee = price(block.bought.start, block.bought.end);
  for (const Extension& extension : block.extensions) {
    if (extension.state == ExtensionState::kPaymentSucceeded) {
      fee += price(extension.start, extension.end);
    }
  }
  return fee;
}

// The healthy hosts of a product in a cell, read from the fleet.
int HealthyHosts(const controller::ClusterState& fleet, const controller::Product& product) {
  int healthy = 0;
  for (std::size_t i = 0; i < fleet.domain_count(); ++i) {
    const auto& domain = fleet.domain(controller::DomainId(i));
    int chips = 0;
    bool is_product = false;
    for (const auto node : domain.nodes) {
      if (!node.valid() || fleet.node(node).node == nullptr) continue;
      const auto& family = *fleet.node(node).node->family;
      is_product =
          domain.ultra == product.ultra_server && family.instance_type == product.instance_type;
      chips += std::popcount(family.devices->chip_mask);
    }
    const int all = product.name == "trn2.3xlarge" ? 1 : 16 * product.instances;
    healthy += is_product && chips == all && std::popcount(domain.present) == all ? 1 : 0;
  }
  return healthy;
}

}  // namespace

void BlockChecks::OnStep(const std::string& controller, const controller::Snapshot& snapshot) {
  if (!snapshot.synced || snapshot.cluster == nullptr) return;
  Blocks blocks;
  snapshot.block_list.ForEach(
      [&](const std::string& reservation, const auto& block) { blocks[reservation] = block; });
  const auto life = lives_.find(controller);
  for (const auto& [reservation, block] : blocks) {
    CheckBlock(*block, snapshot.block_now);
    if (life == lives_.end()) continue;  // a first look: its blocks may have been sold long ago
    const auto before = life->second.find(reservation);
    if (before == life->second.end()) {
      world_.Meet("block sold");
      CheckSale(blocks, *block, Begin(*block), LastEnd(*block), *snapshot.cluster);
    } else if (before->second != block) {
      CheckStep(*before->second, *block);
      if (LastEnd(*block) > LastEnd(*before->second)) {
        world_.Meet("block extended");
        CheckSale(blocks, *block, LastEnd(*before->second), LastEnd(*block), *snapshot.cluster);
      }
    }
  }
  CheckOwners(blocks);
  for (const auto& [reservation, block] : blocks) lasts_[reservation] = block;
  lives_[controller] = std::move(blocks);
}

void BlockChecks::CheckBlock(const Block& block, WallTime now) {
  auto& first = firsts_[block.reservation];
  if (first == nullptr) first = std::make_shared<const Block>(block);
  if (first->key != block.key || first->token != block.token || first->bought != block.bought ||
      first->offering_id != block.offering_id || first->cells != block.cells ||
      first->created != block.created || first->block_ids != block.block_ids) {
    world_.Fail("block {}: what was bought has changed", block.reservation);
  }
  WallTime end = block.bought.end;
  for (const Extension& extension : block.extensions) {
    if (extension.state == ExtensionState::kPaymentSucceeded) end = extension.end;
  }
  if (block.end != end) world_.Fail("block {} has another end than it paid", block.reservation);
  if (block.fee().millionths != FeeOf(block)) {
    world_.Fail("block {} costs {}, not rate times time", block.reservation,
                block.fee().ToString());
  }
  if (Lives(block.state) && now >= block.end) {
    world_.Fail("block {} is over and {}", block.reservation, StateName(block.state));
  }
  if (HasBegun(block.state) && (now < block.bought.start || !block.delivered)) {
    world_.Fail("block {} has begun too early", block.reservation);
  }
  const auto reclaim = block.end - std::chrono::minutes(block.product().ultra_server ? 60 : 30);
  if (HasBegun(block.state) && now >= reclaim && !block.warned) {
    world_.Fail("block {} is taken back without a warning", block.reservation);
  }
}

void BlockChecks::CheckStep(const Block& before, const Block& after) {
  if (before.state != after.state) {
    world_.Meet(fmt::format("block {}", StateName(after.state)));
  }
  if (!MayFollow(before.state, after.state)) {
    world_.Fail("block {} was {} and is {}", after.reservation, StateName(before.state),
                StateName(after.state));
  }
  if (before.delivered && before.delivered != after.delivered) {
    world_.Fail("block {} is delivered again", after.reservation);
  }
  if (before.extensions.size() > after.extensions.size()) {
    world_.Fail("block {} has lost an extension", after.reservation);
  }
}

void BlockChecks::CheckOwners(const Blocks& blocks) {
  std::map<std::string, std::vector<const Block*>> owners;
  for (const auto& [reservation, block] : blocks) {
    if (!Lives(block->state)) continue;
    for (const std::string& host : block->hosts) {
      for (const Block* other : owners[host]) {
        if (Begin(*other) < block->end && Begin(*block) < other->end) {
          world_.Fail("host {} is that of {} and {}", host, other->reservation, reservation);
        }
      }
      owners[host].push_back(block.get());
    }
  }
}

// The overlap of blocks is greatest when a block begins.
void BlockChecks::CheckSale(const Blocks& blocks, const Block& sold, WallTime from, WallTime to,
                            const controller::ClusterState& fleet) {
  if (!Lives(sold.state)) return;
  const auto has = [](const Block& block, WallTime at) {
    return Lives(block.state) && Begin(block) <= at && at < LastEnd(block);
  };
  std::set<WallTime> moments = {from};
  for (const auto& [reservation, block] : blocks) {
    if (from <= Begin(*block) && Begin(*block) < to) moments.insert(Begin(*block));
  }
  for (const WallTime at : moments) {
    int hosts = 0;
    for (const auto& [reservation, block] : blocks) {
      if (&block->product() == &sold.product() && has(*block, at)) hosts += block->bought.count;
    }
    const int healthy = HealthyHosts(fleet, sold.product());
    if (hosts > healthy) {
      world_.Fail("block {} was sold: {} of {} healthy {} are owed at {}", sold.reservation, hosts,
                  healthy, sold.product().name, FormatTime(at));
    }
  }
}

void BlockChecks::OnDecided(const controller::GangDecision& decision,
                            const controller::Snapshot& snapshot) {
  if (!api_.up()) return;  // nobody can say which block the gang names
  const auto gang = api_.objects().Get(
      kGangs, controller::apiserver::ObjectKey(decision.key.ns, decision.key.name));
  std::string wanted;
  if (gang != nullptr && !decision.single) {
    wanted = gang->body->at("spec").value("capacityBlock", "");
  }
  std::map<std::string, const Block*> owner;
  snapshot.block_list.ForEach([&](const std::string&, const auto& block) {
    if (!HasBegun(block->state)) return;
    for (const std::string& host : block->hosts) owner[host] = block.get();
  });
  for (const auto& pod : decision.pods) {
    const auto node = snapshot.cluster->FindNode(pod.node);
    if (!node || !snapshot.cluster->node(*node).domain.valid()) continue;
    const std::string& host = snapshot.cluster->domain(snapshot.cluster->node(*node).domain).name;
    const auto found = owner.find(host);
    const Block* block = found == owner.end() ? nullptr : found->second;
    const bool own =
        block != nullptr && block->key.ns == decision.key.ns && block->key.name == wanted;
    if (block != nullptr && !own) {
      world_.Fail("gang {} is placed on {}, which is that of block {}", decision.key.name, host,
                  block->key.name);
    }
    if (!wanted.empty() && !own) {
      world_.Fail("gang {} of block {} is placed on {}", decision.key.name, wanted, host);
    }
    if (own) world_.Meet("gang in its block");
  }
}

void BlockChecks::OnAcknowledged(const Block& block) {
  auto& told = acknowledged_[block.reservation];
  if (told != nullptr && told->version >= block.version) return;
  told = std::make_shared<const Block>(block);
}

void BlockChecks::AtRest(const controller::Snapshot& snapshot) {
  Blocks blocks;
  snapshot.block_list.ForEach(
      [&](const std::string& reservation, const auto& block) { blocks[reservation] = block; });
  std::map<std::string, std::string> tokens;
  for (const auto& [reservation, block] : blocks) {
    if (block->token.empty()) continue;
    const auto [other, is_first] = tokens.emplace(block->key.ns + "/" + block->token, reservation);
    if (!is_first) {
      world_.Fail("token {} has bought {} and {}", block->token, other->second, reservation);
    }
  }
  CheckPublished(blocks);
  CheckAcknowledged(blocks, snapshot.block_now);
  CheckWaiting(snapshot);
}

void BlockChecks::CheckWaiting(const controller::Snapshot& snapshot) {
  std::map<std::string, const Block*> on_host, by_name;
  snapshot.block_list.ForEach([&](const std::string&, const auto& block) {
    if (!HasBegun(block->state) || block->reclaiming) return;
    by_name[block->key.name] = block.get();
    for (const std::string& host : block->hosts) on_host[host] = block.get();
  });
  std::map<const Block*, std::set<std::string>> reservations;  // of the gangs on the block's hosts
  snapshot.gangs.ForEach([&](const controller::GangRef&, const auto& gang) {
    if (gang->decision == nullptr) return;
    for (const auto& pod : gang->decision->pods) {
      const auto node = snapshot.cluster->FindNode(pod.node);
      if (!node || !snapshot.cluster->node(*node).domain.valid()) continue;
      const auto block =
          on_host.find(snapshot.cluster->domain(snapshot.cluster->node(*node).domain).name);
      if (block == on_host.end()) continue;
      reservations[block->second].insert(gang->decision->reservation);
      if (gang->decision->reservation == block->second->reservation) continue;
      world_.Meet("gang went on into the next block");
    }
  });
  snapshot.gangs.ForEach([&](const controller::GangRef& ref, const auto& gang) {
    if (ref.single || gang->reason != controller::GangReason::kWaitsForCapacity) return;
    const auto object =
        api_.objects().Get(kGangs, controller::apiserver::ObjectKey(ref.key.ns, ref.key.name));
    if (object == nullptr) return;
    const auto block = by_name.find(object->body->at("spec").value("capacityBlock", ""));
    if (block == by_name.end()) return;
    const auto runs = reservations.find(block->second);
    if (runs == reservations.end() || runs->second.contains(block->second->reservation)) return;
    world_.Fail("gang {} waits for its place in block {}, where only gangs of blocks before it run",
                ref.key.name, block->first);
  });
}

// Objects and book say the same.
void BlockChecks::CheckPublished(const Blocks& blocks) {
  std::set<std::string> shown;
  for (const auto& object : api_.objects().List(kBlocks, "").objects) {
    const json& body = *object->body;
    const json status = body.value("status", json::object());
    const std::string record = status.value("record", "");
    if (record.empty()) {
      if (!status.contains("reason")) {
        world_.Fail("object {} is neither sold nor refused", object->key);
      }
      if (status.contains("state")) world_.Fail("object {} is refused and sold", object->key);
      continue;
    }
    const std::string reservation = status.at("capacityReservationIds").at(0).get<std::string>();
    const auto block = blocks.find(reservation);
    if (block == blocks.end()) {
      world_.Fail("object {} shows {}, which is not in the book", object->key, reservation);
    } else if (record != Hex(EncodeBlock(*block->second))) {
      world_.Fail("object {} does not show its block as it is", object->key);
    } else if (status.at("state") != StateName(block->second->state) ||
               status.at("endDate") != FormatTime(block->second->end)) {
      world_.Fail("object {} shows what somebody has written by hand", object->key);
    }
    shown.insert(reservation);
  }
  for (const auto& [reservation, block] : blocks) {
    if (Lives(block->state) && !shown.contains(reservation)) {
      world_.Fail("block {} has no object", reservation);
    }
  }
}

void BlockChecks::CheckAcknowledged(const Blocks& blocks, WallTime now) {
  for (const auto& [reservation, told] : acknowledged_) {
    const auto found = blocks.find(reservation);
    if (found == blocks.end()) {
      // An ended block is forgotten with its object, which a backup may not have. A block may end
      // and be forgotten in one step, when the clock was set forward.
      const auto last = lasts_.find(reservation);
      const bool ended =
          last != lasts_.end() && (!Lives(last->second->state) || LastEnd(*last->second) <= now);
      if (!deleted_.contains(told->key.name) && !(ended && api_.rollbacks() > 0)) {
        world_.Fail("block {} was acknowledged and is gone", reservation);
      }
      continue;
    }
    for (const Extension& extension : told->extensions) {
      const auto same = [&](const Extension& other) {
        return other.offering_id == extension.offering_id &&
               other.purchased == extension.purchased && other.fee == extension.fee &&
               (extension.state == ExtensionState::kPaymentPending ||
                other.state == extension.state);
      };
      if (std::none_of(found->second->extensions.begin(), found->second->extensions.end(), same)) {
        world_.Fail("an extension of block {} was acknowledged and is gone", reservation);
      }
    }
    if (!MayFollow(told->state, found->second->state)) {
      world_.Fail("block {} was shown as {} and is {}", reservation, StateName(told->state),
                  StateName(found->second->state));
    }
  }
}

}  // namespace tahoma::simulation
