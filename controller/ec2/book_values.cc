#include "controller/ec2/book_values.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "controller/model/zone.h"
#include "lib/base/status.h"

namespace tahoma::controller::ec2 {
namespace {

// Instances of some hosts of a block.
struct Count {
  std::int64_t total = 0;
  std::int64_t unavailable = 0;
  std::int64_t used = 0;
  std::int64_t available = 0;
  bool links_ok = true;  // all hosts are there, and no NeuronLink is down
};

// Counts the hosts from place `first` on and before `last`: while the block is active; before that
// none is available or unavailable.
Count CountHosts(const Block& block, const FindHost& find_host, std::size_t first,
                 std::size_t last) {
  const std::int64_t instances = block.product().instances;
  Count count{.total = instances * static_cast<std::int64_t>(last - first)};
  if (!IsDelivered(block.state)) return count;
  for (std::size_t i = first; i < last; ++i) {
    const auto host = i < block.hosts.size() ? find_host(block.hosts[i]) : std::nullopt;
    count.links_ok = count.links_ok && host && host->links_ok;
    if (!host || !host->healthy) {
      count.unavailable += instances;
    } else if (host->held) {
      count.used += instances;
    } else {
      count.available += instances;
    }
  }
  return count;
}

std::vector<Tag> TagsOf(const Block& block) {
  std::vector<Tag> tags;
  for (const auto& [key, value] : block.tags) tags.push_back({.key = key, .value = value});
  return tags;
}

// The size of a block stands in a tag of EC2's, by which tools know it before the start.
Tag SizeTagOf(const Block& block) {
  return {.key = "aws:ec2capacityreservation:incrementalRequestedQuantity",
          .value = fmt::format("{}", block.bought.instances())};
}

bool IsSoldAlone(const std::string& instance_type) {
  const Product* product = FindProduct(instance_type);
  return product != nullptr && !product->ultra_server;
}

}  // namespace

std::vector<OfferingQuery> QueriesOf(const OfferingSearch& search) {
  OfferingQuery query;
  query.duration_hours = search.duration_hours;
  query.start_date_range = search.earliest_start;
  query.end_date_range = search.latest_end;
  if (!search.ultraserver_type.empty()) {
    query.ultraserver_type = search.ultraserver_type;
    query.ultraserver_count = search.ultraserver_count;
    return {query};
  }
  query.instance_count = search.instance_count;
  std::vector<std::string> types = search.instance_types;
  // Passes over preferred types that are not sold, unless no preferred type is sold.
  const auto unsold = std::stable_partition(types.begin(), types.end(), &IsSoldAlone);
  if (unsold != types.begin()) types.erase(unsold, types.end());
  std::vector<OfferingQuery> queries;
  for (const std::string& type : types) {
    query.instance_type = type;
    queries.push_back(query);
  }
  return queries;
}

PurchaseOrder OrderOf(const BlockPurchase& purchase, const std::string& owner) {
  PurchaseOrder order{.offering_id = purchase.offering_id,
                      .platform = purchase.instance_platform,
                      .key = {.ns = owner, .name = ""},
                      .token = purchase.client_token,
                      .signature = purchase.signature,
                      .dry_run = purchase.dry_run};
  for (const Tag& tag : purchase.tags) order.tags.emplace_back(tag.key, tag.value);
  std::ranges::sort(order.tags);
  return order;
}

Ec2Offering OfferingOf(const Offering& offering, const OfferingKey& key) {
  Ec2Offering out{.id = OfferingId(offering, key),
                  .instance_type = std::string(offering.product->instance_type),
                  .availability_zone = offering.zone,
                  .instance_count = offering.instances(),
                  .start = offering.start,
                  .end = offering.end,
                  .duration_hours = offering.duration_hours(),
                  .duration_minutes = offering.duration_minutes(),
                  .upfront_fee = offering.fee().ToString()};
  if (offering.product->ultra_server) {
    out.ultraserver_type = offering.product->name;
    out.ultraserver_count = offering.count;
  }
  // EC2 may make an offering of several; one of ours is one.
  out.segments.push_back({.instance_type = out.instance_type,
                          .availability_zone = out.availability_zone,
                          .instance_count = out.instance_count,
                          .start = out.start,
                          .end = out.end,
                          .duration_hours = out.duration_hours,
                          .duration_minutes = out.duration_minutes,
                          .upfront_fee = out.upfront_fee});
  return out;
}

Ec2Block BlockOf(const Block& block, std::size_t part) {
  return {.id = block.block_ids[part],
          .ultraserver_type = block.product().ultra_server ? std::string(block.product().name) : "",
          .availability_zone = block.bought.zone,
          .reservation_ids = {block.reservation},
          .start = block.start(),
          .end = block.end,
          .created = block.created,
          .state = std::string(StateName(block.state)),
          .tags = TagsOf(block)};
}

Reservation ReservationOf(const Block& block, const std::string& account,
                          const FindHost& find_host) {
  const Count count = CountHosts(block, find_host, 0, static_cast<std::size_t>(block.bought.count));
  Reservation out{.id = block.reservation,
                  .owner_id = account,
                  .arn = fmt::format("arn:aws:ec2:{}:{}:capacity-reservation/{}",
                                     RegionOf(block.bought.zone), account, block.reservation),
                  .availability_zone = block.bought.zone,
                  .instance_type = std::string(block.product().instance_type),
                  .instance_platform = block.platform,
                  .total_instance_count = block.bought.instances(),
                  .available_instance_count = count.available,
                  .state = std::string(StateName(block.state)),
                  .start = block.start(),
                  .end = block.end,
                  .created = block.created,
                  .tags = TagsOf(block),
                  .unused_reservation_billing_owner_id = account};
  out.tags.push_back(SizeTagOf(block));
  if (count.used > 0) {
    out.allocations = {{.type = "used", .count = count.used}};
  }
  if (block.block_ids.size() == 1) out.block_id = block.block_ids.front();
  return out;
}

BlockStatus StatusOf(const Block& block, std::size_t part, const FindHost& find_host) {
  const std::size_t hosts = static_cast<std::size_t>(block.bought.count) / block.block_ids.size();
  const Count count = CountHosts(block, find_host, part * hosts, (part + 1) * hosts);
  BlockStatus status{.block_id = block.block_ids[part],
                     .total_capacity = count.total,
                     .available_capacity = count.available,
                     .unavailable_capacity = count.unavailable,
                     .reservations = {{.reservation_id = block.reservation,
                                       .total_capacity = count.total,
                                       .available_capacity = count.available,
                                       .unavailable_capacity = count.unavailable}}};
  if (block.product().ultra_server) {
    status.interconnect_status = !IsDelivered(block.state) ? "insufficient-data"
                                 : count.links_ok          ? "ok"
                                                           : "impaired";
  }
  return status;
}

ExtensionOffering ExtensionOfferingOf(const controller::ExtensionOffering& offering,
                                      const Block& block, const OfferingKey& key) {
  return {.id = ExtensionOfferingId(offering, key),
          .instance_type = std::string(block.product().instance_type),
          .instance_count = block.bought.instances(),
          .availability_zone = block.bought.zone,
          .start = block.start(),
          .extension_start = offering.start,
          .extension_end = offering.end,
          .duration_hours = offering.duration_hours(),
          .upfront_fee = offering.fee().ToString()};
}

Extension ExtensionOf(const controller::Extension& extension, const Block& block) {
  return {
      .reservation_id = block.reservation,
      .instance_type = std::string(block.product().instance_type),
      .instance_count = block.bought.instances(),
      .availability_zone = block.bought.zone,
      .offering_id = extension.offering_id,
      .duration_hours =
          std::chrono::duration_cast<std::chrono::hours>(extension.end - extension.start).count(),
      .status = std::string(StateName(extension.state)),
      .purchased = extension.purchased,
      .start = extension.start,
      .end = extension.end,
      .upfront_fee = extension.fee.ToString()};
}

InstanceTopology InstanceOf(const Node& node, const std::string& block_id) {
  return {.instance_id = node.name,
          .instance_type = node.family->instance_type,
          .network_nodes = node.NetworkLayers(),
          .availability_zone = ZoneOf(node),
          .zone_id = std::string(node.label(kZoneIdLabel)),
          .block_id = block_id};
}

}  // namespace tahoma::controller::ec2
