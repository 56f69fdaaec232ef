#include "controller/ec2/book_seller.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "controller/model/zone.h"
#include "controller/reserve/extension.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/status.h"
#include "lib/hw/ec2_type.h"

namespace tahoma::controller::ec2 {
namespace {

// A part of a block that is a row of a list.
struct Row {
  std::string key;
  const Block* block = nullptr;
  std::size_t part = 0;
};

bool IsSelected(const Selection& selection, std::string_view key, std::string_view id) {
  if (!selection.after.empty() && key <= selection.after) return false;
  return selection.ids.empty() || std::ranges::binary_search(selection.ids, id);
}

// The rows of an owner's blocks, in the order of their keys. `parts` calls its second argument with
// the key and the id of each part of a block.
template <typename Parts>
std::vector<Row> RowsOf(const BookView& view, const Caller& caller, const Selection& selection,
                        const Parts& parts) {
  std::vector<Row> rows;
  view.blocks.ForEach([&](const std::string&, const std::shared_ptr<const Block>& block) {
    if (block->key.ns != caller.name_space) return;
    std::size_t part = 0;
    parts(*block, [&](std::string key, std::string_view id) {
      if (IsSelected(selection, key, id)) {
        rows.push_back({.key = std::move(key), .block = block.get(), .part = part});
      }
      ++part;
    });
  });
  std::ranges::sort(rows, {}, &Row::key);
  return rows;
}

std::vector<Row> RowsByBlockId(const BookView& view, const Caller& caller,
                               const Selection& selection) {
  return RowsOf(view, caller, selection, [](const Block& block, const auto& add) {
    for (const std::string& id : block.block_ids) add(id, id);
  });
}

// The caller's block; refused when there is none, or it is another's.
absl::StatusOr<std::shared_ptr<const Block>> FindBlock(const BookView& view, const Caller& caller,
                                                       const std::string& reservation) {
  const auto* found = view.blocks.Find(reservation);
  if (found != nullptr && (*found)->key.ns == caller.name_space) return *found;
  return Refuse(kReservationNotFound,
                "there is no Capacity Reservation {}; legal are those that "
                "DescribeCapacityReservations lists",
                reservation);
}

// The blocks by their hosts' names, of one owner.
absl::flat_hash_map<std::string, std::string> BlocksByHost(const BookView& view,
                                                           const Caller& caller) {
  absl::flat_hash_map<std::string, std::string> blocks;
  view.blocks.ForEach([&](const std::string&, const std::shared_ptr<const Block>& block) {
    if (block->key.ns != caller.name_space || !HoldsCapacity(block->state)) return;
    for (std::size_t i = 0; i < block->hosts.size(); ++i) {
      blocks[block->hosts[i]] = block->block_ids[std::min(i, block->block_ids.size() - 1)];
    }
  });
  return blocks;
}

std::shared_ptr<const BookView> UnknownFleet() {
  return std::make_shared<const BookView>(BookView{
      .blocks = {},
      .now = {},
      .profile = TimeProfile(0),
      .prices = {},
      .find_host = [](const std::string&) -> std::optional<HostState> { return std::nullopt; },
      .cluster = nullptr});
}

// Calls `each` with each node of the fleet.
template <typename Each>
void ForEachNode(const BookView& view, const Each& each) {
  if (view.cluster == nullptr) return;
  for (std::size_t i = 0; i < view.cluster->node_count(); ++i) {
    if (const Node* node = view.cluster->node(NodeId(i)).node.get()) each(*node);
  }
}

// Returns the network layers, from the top, that all nodes of a block's hosts from place `first` on
// and before `last` share.
std::vector<std::string> SharedLayers(const BookView& view, const Block& block, std::size_t first,
                                      std::size_t last) {
  std::optional<std::vector<std::string>> shared;
  for (std::size_t i = first; i < std::min(last, block.hosts.size()); ++i) {
    const auto domain = view.cluster->FindDomain(block.hosts[i]);
    if (!domain) continue;
    for (const NodeId id : view.cluster->domain(*domain).nodes) {
      const Node* node = id.valid() ? view.cluster->node(id).node.get() : nullptr;
      if (node == nullptr) continue;
      const std::vector<std::string> layers = node->NetworkLayers();
      if (!shared) shared = layers;
      shared->erase(std::ranges::mismatch(*shared, layers).in1, shared->end());
    }
  }
  return shared.value_or(std::vector<std::string>());
}

ReservationTopology TopologyOf(const BookView& view, const Block& block, std::size_t part) {
  const std::size_t hosts = static_cast<std::size_t>(block.bought.count) / block.block_ids.size();
  ReservationTopology row{.reservation_id = block.reservation,
                          .state = std::string(StateName(block.state)),
                          .instance_type = std::string(block.product().instance_type),
                          .availability_zone = block.bought.zone};
  if (block.product().ultra_server) row.block_id = block.block_ids[part];
  // As EC2: hardware is shown once the reservation is active.
  if (view.cluster != nullptr && IsDelivered(block.state)) {
    row.network_nodes = SharedLayers(view, block, part * hosts, (part + 1) * hosts);
  }
  return row;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const BookView>> BookSeller::View() const {
  std::shared_ptr<const BookView> view = owner_.view();
  if (view == nullptr) return Unavailable("the fleet is not known yet; try again");
  return view;
}

absl::StatusOr<std::vector<Ec2Offering>> BookSeller::FindOfferings(const Caller& caller,
                                                                   const OfferingSearch& search) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  const WallTime now = NowOf(*view);
  std::vector<Ec2Offering> offerings;
  for (const OfferingQuery& query : QueriesOf(search)) {
    TAHOMA_ASSIGN_OR_RETURN(controller::OfferingSearch checked, CheckQuery(query, now));
    checked.owner = caller.name_space;
    checked.quotas = view->quotas;
    const SearchAnswer answer = SearchOfferings(view->profile, view->prices, checked, now);
    for (const Offering& offering : answer.offerings) {
      offerings.push_back(OfferingOf(offering, view->offering_key));
      for (OfferingSegment& segment : offerings.back().segments) {
        segment.availability_zone_id = ZoneIdOf(*view, segment.availability_zone);
      }
    }
  }
  return offerings;
}

absl::StatusOr<BlockPurchased> BookSeller::PurchaseBlock(const Caller& caller,
                                                         const BlockPurchase& purchase) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const Block> block,
                          owner_.purchase(OrderOf(purchase, caller.name_space)));
  // It has been bought, whether the fleet is known or not.
  std::shared_ptr<const BookView> view = owner_.view();
  if (view == nullptr) view = UnknownFleet();
  BlockPurchased purchased;
  purchased.reservations.push_back(
      WithZoneId(*view, ReservationOf(*block, caller.account, view->find_host)));
  for (std::size_t part = 0; part < block->block_ids.size(); ++part) {
    purchased.blocks.push_back(WithZoneId(*view, BlockOf(*block, part)));
  }
  return purchased;
}

absl::StatusOr<std::vector<ExtensionOffering>> BookSeller::FindExtensionOfferings(
    const Caller& caller, const ExtensionSearch& search) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const Block> block,
                          FindBlock(*view, caller, search.reservation_id));
  const auto offering =
      OfferExtension(view->profile, view->prices, *block, search.duration_hours, NowOf(*view));
  if (offering.ok()) {
    return std::vector<ExtensionOffering>{
        WithZoneId(*view, ExtensionOfferingOf(*offering, *block, view->offering_key))};
  }
  // A search that finds nothing is no error.
  if (Ec2CodeOf(offering.status()) == kInsufficientCapacity.name) {
    return std::vector<ExtensionOffering>();
  }
  return offering.status();
}

absl::StatusOr<std::vector<Extension>> BookSeller::PurchaseExtension(
    const Caller& caller, const ExtensionPurchase& purchase) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  TAHOMA_RETURN_IF_ERROR(FindBlock(*view, caller, purchase.reservation_id).status());
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const Block> block,
                          owner_.extend({.reservation = purchase.reservation_id,
                                         .offering_id = purchase.offering_id,
                                         .token = purchase.client_token,
                                         .dry_run = purchase.dry_run}));
  for (auto at = block->extensions.rbegin(); at != block->extensions.rend(); ++at) {
    if (at->offering_id != purchase.offering_id) continue;
    return std::vector<Extension>{WithZoneId(*view, ExtensionOf(*at, *block))};
  }
  return Internal("the block {} lacks the extension that was bought", block->reservation);
}

absl::Status BookSeller::VisitBlocks(const Caller& caller, const Selection& selection,
                                     const Visit<Ec2Block>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const Row& row : RowsByBlockId(*view, caller, selection)) {
    if (!visit(row.key, WithZoneId(*view, BlockOf(*row.block, row.part)))) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitBlockStatuses(const Caller& caller, const Selection& selection,
                                            const Visit<BlockStatus>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const Row& row : RowsByBlockId(*view, caller, selection)) {
    if (!visit(row.key, StatusOf(*row.block, row.part, view->find_host))) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitReservations(const Caller& caller, const Selection& selection,
                                           const Visit<Reservation>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  const auto parts = [](const Block& block, const auto& add) {
    add(block.reservation, block.reservation);
  };
  for (const Row& row : RowsOf(*view, caller, selection, parts)) {
    Reservation reservation = ReservationOf(*row.block, caller.account, view->find_host);
    if (!visit(row.key, WithZoneId(*view, std::move(reservation)))) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitExtensions(const Caller& caller, const Selection& selection,
                                         const Visit<Extension>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const std::string& id : selection.ids) {
    TAHOMA_RETURN_IF_ERROR(FindBlock(*view, caller, id).status());
  }
  const auto parts = [](const Block& block, const auto& add) {
    for (std::size_t i = 0; i < block.extensions.size(); ++i) {
      add(fmt::format("{}/{:06}", block.reservation, i), block.reservation);
    }
  };
  for (const Row& row : RowsOf(*view, caller, selection, parts)) {
    Extension extension = ExtensionOf(row.block->extensions[row.part], *row.block);
    if (!visit(row.key, WithZoneId(*view, std::move(extension)))) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitInstances(const Caller& caller, const Selection& selection,
                                        const Visit<InstanceTopology>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  std::vector<const Node*> nodes;
  ForEachNode(*view, [&](const Node& node) {
    if (IsSelected(selection, node.name, node.name)) nodes.push_back(&node);
  });
  std::ranges::sort(nodes, {}, &Node::name);
  const auto blocks = BlocksByHost(*view, caller);
  for (const Node* node : nodes) {
    // A host is an UltraServer, or a node alone; only UltraServers' instances tell their block.
    const auto block = blocks.find(node->ultraserver_id);
    InstanceTopology row = InstanceOf(*node, block == blocks.end() ? "" : block->second);
    if (row.zone_id.empty()) row.zone_id = ZoneIdOf(*view, row.availability_zone);
    if (!visit(node->name, row)) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitReservationTopology(const Caller& caller, const Selection& selection,
                                                  const Visit<ReservationTopology>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const std::string& id : selection.ids) {
    TAHOMA_RETURN_IF_ERROR(FindBlock(*view, caller, id).status());
  }
  const auto parts = [](const Block& block, const auto& add) {
    for (const std::string& id : block.block_ids) {
      add(fmt::format("{}/{}", block.reservation, id), block.reservation);
    }
  };
  for (const Row& row : RowsOf(*view, caller, selection, parts)) {
    if (!visit(row.key, WithZoneId(*view, TopologyOf(*view, *row.block, row.part)))) break;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OfferedType>> BookSeller::FindOfferedTypes(const Caller&) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  std::set<std::pair<std::string, std::string>> types;  // by zone
  for (std::size_t i = 0; i < view->profile.pool_count(); ++i) {
    const Pool& pool = view->profile.pool(PoolId(i));
    if (view->profile.supply(PoolId(i)).healthy == 0) continue;
    types.emplace(pool.zone, pool.product->instance_type);
  }
  ForEachNode(*view, [&](const Node& node) {
    if (hw::FindEc2Type(node.family->instance_type) == nullptr) return;
    types.emplace(ZoneOf(node), node.family->instance_type);
  });
  std::vector<OfferedType> offered;
  for (const auto& [zone, type] : types) {
    offered.push_back(
        WithZoneId(*view, OfferedType{.instance_type = type, .availability_zone = zone}));
  }
  std::ranges::sort(offered);
  return offered;
}

absl::Status BookSeller::ChangeTags(const Caller& caller,
                                    const std::vector<std::string>& reservations,
                                    const TagChange& change) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const std::string& reservation : reservations) {
    TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const Block> block,
                            FindBlock(*view, caller, reservation));
    TAHOMA_RETURN_IF_ERROR(owner_.change_tags(*block, change));
  }
  return absl::OkStatus();
}

std::string BookSeller::ZoneIdOf(const BookView& view, const std::string& zone) const {
  const MutexLock lock(mutex_);
  if (const auto known = zone_ids_.find(zone); known != zone_ids_.end()) return known->second;
  bool seen = false;
  std::string id;
  ForEachNode(view, [&](const Node& node) {
    if (!id.empty() || ZoneOf(node) != zone) return;
    seen = true;
    id = node.label(kZoneIdLabel);
  });
  if (id.empty()) id = FormZoneId(zone);
  if (seen) zone_ids_[zone] = id;
  return id;
}

}  // namespace tahoma::controller::ec2
