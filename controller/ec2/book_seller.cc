#include "controller/ec2/book_seller.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "controller/reserve/extension.h"
#include "controller/reserve/refusal.h"
#include "controller/reserve/search.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

// A part of a block that is a row of a list.
struct Row {
  std::string key;
  const controller::Block* block = nullptr;
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
  view.blocks.ForEach(
      [&](const std::string&, const std::shared_ptr<const controller::Block>& block) {
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
  return RowsOf(view, caller, selection, [](const controller::Block& block, const auto& add) {
    for (const std::string& id : block.block_ids) add(id, id);
  });
}

// The caller's block; refused when there is none, or it is another's.
absl::StatusOr<std::shared_ptr<const controller::Block>> FindBlock(const BookView& view,
                                                                   const Caller& caller,
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
  view.blocks.ForEach(
      [&](const std::string&, const std::shared_ptr<const controller::Block>& block) {
        if (block->key.ns != caller.name_space || !HoldsCapacity(block->state)) return;
        for (std::size_t i = 0; i < block->hosts.size(); ++i) {
          blocks[block->hosts[i]] = block->block_ids[std::min(i, block->block_ids.size() - 1)];
        }
      });
  return blocks;
}

std::optional<HostState> NoHost(const std::string&) { return std::nullopt; }

}  // namespace

absl::StatusOr<std::shared_ptr<const BookView>> BookSeller::View() const {
  std::shared_ptr<const BookView> view = owner_.view();
  if (view == nullptr) return Unavailable("the fleet is not known yet; try again");
  return view;
}

absl::StatusOr<std::vector<Offering>> BookSeller::FindOfferings(const Caller&,
                                                                const OfferingSearch& search) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  const WallTime now = NowOf(*view);
  std::vector<Offering> offerings;
  for (const OfferingQuery& query : QueriesOf(search)) {
    TAHOMA_ASSIGN_OR_RETURN(const controller::OfferingSearch checked, CheckQuery(query, now));
    const SearchAnswer answer = SearchOfferings(view->profile, view->prices, checked, now);
    for (const controller::Offering& offering : answer.offerings) {
      offerings.push_back(OfferingOf(offering, view->offering_key));
    }
  }
  return offerings;
}

absl::StatusOr<BlockPurchased> BookSeller::PurchaseBlock(const Caller& caller,
                                                         const BlockPurchase& purchase) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const controller::Block> block,
                          owner_.purchase(OrderOf(purchase, caller.name_space)));
  // It has been bought, whether the fleet is known or not.
  const std::shared_ptr<const BookView> view = owner_.view();
  BlockPurchased purchased;
  purchased.reservations.push_back(
      ReservationOf(*block, caller.account, view != nullptr ? view->find_host : FindHost(NoHost)));
  for (std::size_t part = 0; part < block->block_ids.size(); ++part) {
    purchased.blocks.push_back(BlockOf(*block, part));
  }
  return purchased;
}

absl::StatusOr<std::vector<ExtensionOffering>> BookSeller::FindExtensionOfferings(
    const Caller& caller, const ExtensionSearch& search) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const controller::Block> block,
                          FindBlock(*view, caller, search.reservation_id));
  const auto offering =
      OfferExtension(view->profile, view->prices, *block, search.duration_hours, NowOf(*view));
  if (offering.ok()) {
    return std::vector<ExtensionOffering>{
        ExtensionOfferingOf(*offering, *block, view->offering_key)};
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
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const controller::Block> block,
                          owner_.extend({.reservation = purchase.reservation_id,
                                         .offering_id = purchase.offering_id,
                                         .token = purchase.client_token,
                                         .dry_run = purchase.dry_run}));
  for (auto at = block->extensions.rbegin(); at != block->extensions.rend(); ++at) {
    if (at->offering_id != purchase.offering_id) continue;
    return std::vector<Extension>{ExtensionOf(*at, *block)};
  }
  return Internal("the block {} lacks the extension that was bought", block->reservation);
}

absl::Status BookSeller::VisitBlocks(const Caller& caller, const Selection& selection,
                                     const Visit<Block>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const Row& row : RowsByBlockId(*view, caller, selection)) {
    if (!visit(row.key, BlockOf(*row.block, row.part))) break;
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
  const auto parts = [](const controller::Block& block, const auto& add) {
    add(block.reservation, block.reservation);
  };
  for (const Row& row : RowsOf(*view, caller, selection, parts)) {
    if (!visit(row.key, ReservationOf(*row.block, caller.account, view->find_host))) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitExtensions(const Caller& caller, const Selection& selection,
                                         const Visit<Extension>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  for (const std::string& id : selection.ids) {
    TAHOMA_RETURN_IF_ERROR(FindBlock(*view, caller, id).status());
  }
  const auto parts = [](const controller::Block& block, const auto& add) {
    for (std::size_t i = 0; i < block.extensions.size(); ++i) {
      add(fmt::format("{}/{:06}", block.reservation, i), block.reservation);
    }
  };
  for (const Row& row : RowsOf(*view, caller, selection, parts)) {
    if (!visit(row.key, ExtensionOf(row.block->extensions[row.part], *row.block))) break;
  }
  return absl::OkStatus();
}

absl::Status BookSeller::VisitInstances(const Caller& caller, const Selection& selection,
                                        const Visit<InstanceTopology>& visit) {
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<const BookView> view, View());
  if (view->cluster == nullptr) return absl::OkStatus();
  std::vector<const Node*> nodes;
  for (std::size_t i = 0; i < view->cluster->node_count(); ++i) {
    const Node* node = view->cluster->node(NodeId(i)).node.get();
    if (node != nullptr && IsSelected(selection, node->name, node->name)) nodes.push_back(node);
  }
  std::ranges::sort(nodes, {}, &Node::name);
  const auto blocks = BlocksByHost(*view, caller);
  for (const Node* node : nodes) {
    // A host is an UltraServer, or a node alone; only UltraServers' instances tell their block.
    const auto block = blocks.find(node->ultraserver_id);
    if (!visit(node->name, InstanceOf(*node, block == blocks.end() ? "" : block->second))) break;
  }
  return absl::OkStatus();
}

}  // namespace tahoma::controller::ec2
