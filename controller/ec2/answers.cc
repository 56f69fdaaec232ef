#include "controller/ec2/answers.h"

#include <fmt/format.h>

#include "controller/ec2/xml.h"

namespace tahoma::controller::ec2 {
namespace {

template <typename Content>
std::string Answer(const AnswerHead& head, Content&& content) {
  XmlWriter xml;
  const std::string space = fmt::format("http://ec2.amazonaws.com/doc/{}/", kApiVersion);
  xml.Element(fmt::format("{}Response", head.action), space, [&] {
    xml.Text("requestId", head.request_id);
    content(xml);
  });
  return std::move(xml).Finish();
}

template <typename T>
std::string PageAnswer(const AnswerHead& head, std::string_view set, const Page<T>& page,
                       void (*write)(XmlWriter&, const T&)) {
  return Answer(head, [&](XmlWriter& xml) {
    xml.Items(set, page.rows(), [&](const T& row) { write(xml, row); });
    xml.TextIfAny("nextToken", page.next_token());
  });
}

void WriteTags(XmlWriter& xml, const std::vector<Tag>& tags) {
  xml.Items("tagSet", tags, [&](const Tag& tag) {
    xml.Text("key", tag.key);
    xml.Text("value", tag.value);
  });
}

void WriteSegment(XmlWriter& xml, const OfferingSegment& segment) {
  xml.Text("instanceType", segment.instance_type);
  xml.Text("availabilityZone", segment.availability_zone);
  xml.TextIfAny("availabilityZoneId", segment.availability_zone_id);
  xml.Number("instanceCount", segment.instance_count);
  xml.Time("startDate", segment.start);
  xml.Time("endDate", segment.end);
  xml.Number("capacityBlockDurationHours", segment.duration_hours);
  xml.Number("capacityBlockDurationMinutes", segment.duration_minutes);
  xml.Text("upfrontFee", segment.upfront_fee);
  xml.Text("currencyCode", segment.currency_code);
  xml.TextIfAny("zoneType", segment.zone_type);
}

void WriteOffering(XmlWriter& xml, const Ec2Offering& offering) {
  xml.Text("capacityBlockOfferingId", offering.id);
  xml.Text("instanceType", offering.instance_type);
  xml.Text("availabilityZone", offering.availability_zone);
  xml.Number("instanceCount", offering.instance_count);
  xml.Time("startDate", offering.start);
  xml.Time("endDate", offering.end);
  xml.Number("capacityBlockDurationHours", offering.duration_hours);
  xml.Number("capacityBlockDurationMinutes", offering.duration_minutes);
  xml.Text("upfrontFee", offering.upfront_fee);
  xml.Text("currencyCode", offering.currency_code);
  xml.Text("tenancy", offering.tenancy);
  xml.TextIfAny("ultraserverType", offering.ultraserver_type);
  if (offering.ultraserver_count) xml.Number("ultraserverCount", *offering.ultraserver_count);
  xml.TextIfAny("zoneType", offering.zone_type);
  if (offering.segments.empty()) return;
  xml.Items("capacityBlockOfferingSegmentSet", offering.segments,
            [&](const OfferingSegment& segment) { WriteSegment(xml, segment); });
}

void WriteBlock(XmlWriter& xml, const Ec2Block& block) {
  xml.Text("capacityBlockId", block.id);
  xml.TextIfAny("ultraserverType", block.ultraserver_type);
  xml.Text("availabilityZone", block.availability_zone);
  xml.TextIfAny("availabilityZoneId", block.availability_zone_id);
  xml.TextItems("capacityReservationIdSet", block.reservation_ids);
  xml.Time("startDate", block.start);
  xml.Time("endDate", block.end);
  xml.Time("createDate", block.created);
  xml.Text("state", block.state);
  WriteTags(xml, block.tags);
}

void WriteReservation(XmlWriter& xml, const Reservation& reservation) {
  xml.Text("capacityReservationId", reservation.id);
  xml.TextIfAny("ownerId", reservation.owner_id);
  xml.TextIfAny("capacityReservationArn", reservation.arn);
  xml.TextIfAny("availabilityZoneId", reservation.availability_zone_id);
  xml.Text("instanceType", reservation.instance_type);
  xml.Text("instancePlatform", reservation.instance_platform);
  xml.Text("availabilityZone", reservation.availability_zone);
  xml.Text("tenancy", reservation.tenancy);
  xml.Number("totalInstanceCount", reservation.total_instance_count);
  xml.Number("availableInstanceCount", reservation.available_instance_count);
  // EBS-optimized: all instances of these types are. Ephemeral storage: EC2 has given the field up.
  xml.Flag("ebsOptimized", true);
  xml.Flag("ephemeralStorage", false);
  xml.Text("state", reservation.state);
  xml.Time("startDate", reservation.start);
  xml.Time("endDate", reservation.end);
  xml.Text("endDateType", reservation.end_date_type);
  xml.Text("instanceMatchCriteria", reservation.instance_match_criteria);
  xml.Time("createDate", reservation.created);
  WriteTags(xml, reservation.tags);
  xml.Items("capacityAllocationSet", reservation.allocations, [&](const Allocation& allocation) {
    xml.Text("allocationType", allocation.type);
    xml.Number("count", allocation.count);
  });
  xml.Text("reservationType", reservation.reservation_type);
  xml.TextIfAny("unusedReservationBillingOwnerId", reservation.unused_reservation_billing_owner_id);
  xml.TextIfAny("capacityBlockId", reservation.block_id);
}

void WriteBlockStatus(XmlWriter& xml, const BlockStatus& status) {
  xml.Text("capacityBlockId", status.block_id);
  xml.TextIfAny("interconnectStatus", status.interconnect_status);
  xml.Number("totalCapacity", status.total_capacity);
  xml.Number("totalAvailableCapacity", status.available_capacity);
  xml.Number("totalUnavailableCapacity", status.unavailable_capacity);
  xml.Items("capacityReservationStatusSet", status.reservations, [&](const ReservationStatus& one) {
    xml.Text("capacityReservationId", one.reservation_id);
    xml.Number("totalCapacity", one.total_capacity);
    xml.Number("totalAvailableCapacity", one.available_capacity);
    xml.Number("totalUnavailableCapacity", one.unavailable_capacity);
  });
}

void WriteExtensionOffering(XmlWriter& xml, const ExtensionOffering& offering) {
  xml.Text("capacityBlockExtensionOfferingId", offering.id);
  xml.Text("instanceType", offering.instance_type);
  xml.Number("instanceCount", offering.instance_count);
  xml.Text("availabilityZone", offering.availability_zone);
  xml.TextIfAny("availabilityZoneId", offering.availability_zone_id);
  xml.Time("startDate", offering.start);
  xml.Time("capacityBlockExtensionStartDate", offering.extension_start);
  xml.Time("capacityBlockExtensionEndDate", offering.extension_end);
  xml.Number("capacityBlockExtensionDurationHours", offering.duration_hours);
  xml.Text("upfrontFee", offering.upfront_fee);
  xml.Text("currencyCode", offering.currency_code);
  xml.Text("tenancy", offering.tenancy);
  xml.TextIfAny("zoneType", offering.zone_type);
}

void WriteExtension(XmlWriter& xml, const Extension& extension) {
  xml.Text("capacityReservationId", extension.reservation_id);
  xml.Text("instanceType", extension.instance_type);
  xml.Number("instanceCount", extension.instance_count);
  xml.Text("availabilityZone", extension.availability_zone);
  xml.TextIfAny("availabilityZoneId", extension.availability_zone_id);
  xml.Text("capacityBlockExtensionOfferingId", extension.offering_id);
  xml.Number("capacityBlockExtensionDurationHours", extension.duration_hours);
  xml.Text("capacityBlockExtensionStatus", extension.status);
  xml.Time("capacityBlockExtensionPurchaseDate", extension.purchased);
  xml.Time("capacityBlockExtensionStartDate", extension.start);
  xml.Time("capacityBlockExtensionEndDate", extension.end);
  xml.Text("upfrontFee", extension.upfront_fee);
  xml.Text("currencyCode", extension.currency_code);
  xml.TextIfAny("zoneType", extension.zone_type);
}

void WriteInstance(XmlWriter& xml, const InstanceTopology& instance) {
  xml.Text("instanceId", instance.instance_id);
  xml.Text("instanceType", instance.instance_type);
  xml.TextIfAny("groupName", instance.group_name);
  xml.TextItems("networkNodeSet", instance.network_nodes);
  xml.Text("availabilityZone", instance.availability_zone);
  xml.TextIfAny("zoneId", instance.zone_id);
  xml.TextIfAny("capacityBlockId", instance.block_id);
}

}  // namespace

std::string OfferingsAnswer(const AnswerHead& head, const Page<Ec2Offering>& page) {
  return PageAnswer(head, "capacityBlockOfferingSet", page, &WriteOffering);
}

std::string PurchaseAnswer(const AnswerHead& head, const BlockPurchased& purchased) {
  return Answer(head, [&](XmlWriter& xml) {
    if (!purchased.reservations.empty()) {
      xml.Element("capacityReservation",
                  [&] { WriteReservation(xml, purchased.reservations.front()); });
    }
    xml.Items("capacityBlockSet", purchased.blocks,
              [&](const Ec2Block& block) { WriteBlock(xml, block); });
    xml.Items("capacityReservationSet", purchased.reservations,
              [&](const Reservation& reservation) { WriteReservation(xml, reservation); });
  });
}

std::string BlocksAnswer(const AnswerHead& head, const Page<Ec2Block>& page) {
  return PageAnswer(head, "capacityBlockSet", page, &WriteBlock);
}

std::string BlockStatusesAnswer(const AnswerHead& head, const Page<BlockStatus>& page) {
  return PageAnswer(head, "capacityBlockStatusSet", page, &WriteBlockStatus);
}

std::string ExtensionOfferingsAnswer(const AnswerHead& head, const Page<ExtensionOffering>& page) {
  return PageAnswer(head, "capacityBlockExtensionOfferingSet", page, &WriteExtensionOffering);
}

std::string ExtensionPurchaseAnswer(const AnswerHead& head,
                                    const std::vector<Extension>& extensions) {
  return Answer(head, [&](XmlWriter& xml) {
    xml.Items("capacityBlockExtensionSet", extensions,
              [&](const Extension& extension) { WriteExtension(xml, extension); });
  });
}

std::string ExtensionHistoryAnswer(const AnswerHead& head, const Page<Extension>& page) {
  return PageAnswer(head, "capacityBlockExtensionSet", page, &WriteExtension);
}

std::string ReservationsAnswer(const AnswerHead& head, const Page<Reservation>& page) {
  return PageAnswer(head, "capacityReservationSet", page, &WriteReservation);
}

std::string InstancesAnswer(const AnswerHead& head, const Page<InstanceTopology>& page) {
  return PageAnswer(head, "instanceSet", page, &WriteInstance);
}

std::string ErrorAnswer(const Refusal& refusal, std::string_view request_id) {
  XmlWriter xml;
  xml.Element("Response", [&] {
    xml.Element("Errors", [&] {
      xml.Element("Error", [&] {
        xml.Text("Code", refusal.code);
        xml.Text("Message", refusal.message);
      });
    });
    xml.Text("RequestID", request_id);
  });
  return std::move(xml).Finish();
}

}  // namespace tahoma::controller::ec2
