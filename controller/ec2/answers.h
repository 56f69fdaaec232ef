// The answers of EC2's Capacity Block actions as XML, made of values.
//
// Element names are EC2's, API version 2016-11-15; the Python test compares them with botocore's
// model of that version.
//
// Thread safety: pure functions.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/ec2/error.h"
#include "controller/ec2/page.h"
#include "controller/ec2/values.h"

namespace tahoma::controller::ec2 {

inline constexpr std::string_view kApiVersion = "2016-11-15";

struct AnswerHead {
  std::string_view action;
  std::string_view request_id;
};

std::string OfferingsAnswer(const AnswerHead& head, const Page<Ec2Offering>& page);
std::string PurchaseAnswer(const AnswerHead& head, const BlockPurchased& purchased);
std::string BlocksAnswer(const AnswerHead& head, const Page<Ec2Block>& page);
std::string BlockStatusesAnswer(const AnswerHead& head, const Page<BlockStatus>& page);
std::string ExtensionOfferingsAnswer(const AnswerHead& head, const Page<ExtensionOffering>& page);
std::string ExtensionPurchaseAnswer(const AnswerHead& head,
                                    const std::vector<Extension>& extensions);
std::string ExtensionHistoryAnswer(const AnswerHead& head, const Page<Extension>& page);
std::string ReservationsAnswer(const AnswerHead& head, const Page<Reservation>& page);
std::string InstancesAnswer(const AnswerHead& head, const Page<InstanceTopology>& page);

std::string ErrorAnswer(const Refusal& refusal, std::string_view request_id);

}  // namespace tahoma::controller::ec2
