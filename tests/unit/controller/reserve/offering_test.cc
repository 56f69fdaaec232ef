// The id of an offering says all of it, and nothing but an id that was made here is read.

#include "controller/reserve/offering.h"

#include <gtest/gtest.h>

#include "controller/reserve/refusal.h"
#include "lib/base/digest.h"
#include "lib/base/hex.h"

namespace tahoma::controller {
namespace {

Offering Sample() {
  return {.product = FindProduct("trn2.48xlarge"),
          .count = 16,
          .zone = "tahoma-1a",
          .any_cell = true,
          .start = *ParseTime("2026-11-24T11:30:00Z"),
          .end = *ParseTime("2026-12-01T11:30:00Z"),
          .rate = *ParseMoney("35.7608")};
}

TEST(OfferingTest, AnIdIsReadAsItWasWritten) {
  Offering offering = Sample();
  EXPECT_EQ(*ReadOfferingId(OfferingId(offering)), offering);
  EXPECT_EQ(offering.fee().ToString(), "96125.03");
  offering.start = *ParseTime("2026-11-24T02:53:00Z");
  offering.end = *ParseTime("2026-11-24T11:30:00Z");
  EXPECT_EQ(*ReadOfferingId(OfferingId(offering)), offering);
  EXPECT_EQ(offering.duration_hours(), 8);
  EXPECT_EQ(offering.duration_minutes(), 37);
}

TEST(OfferingTest, AnExtensionIdIsReadAsItWasWritten) {
  const ExtensionOffering offering{.reservation = "cr-0123456789abcdef0",
                                   .start = *ParseTime("2026-12-01T11:30:00Z"),
                                   .end = *ParseTime("2026-12-03T11:30:00Z"),
                                   .rate = *ParseMoney("35.7608"),
                                   .count = 2};
  EXPECT_EQ(*ReadExtensionOfferingId(ExtensionOfferingId(offering)), offering);
  EXPECT_EQ(offering.duration_hours(), 48);
  EXPECT_FALSE(ReadOfferingId(ExtensionOfferingId(offering)).ok());
}

TEST(OfferingTest, TextOfAnotherFormIsMalformed) {
  for (const char* id :
       {"", "cb-", "cb", "cr-01", "cb-0", "cb-xy", "cb-01 ", "cb-0123456789abcdefg"}) {
    const auto read = ReadOfferingId(id);
    ASSERT_FALSE(read.ok()) << id;
    const std::string code = Ec2CodeOf(read.status());
    EXPECT_TRUE(code == kOfferingMalformed.name || code == kOfferingNotFound.name) << id;
  }
  EXPECT_EQ(Ec2CodeOf(ReadOfferingId(std::string(1 << 20, 'c')).status()), kOfferingMalformed.name);
  EXPECT_EQ(Ec2CodeOf(ReadOfferingId("cb-00").status()), kOfferingNotFound.name);
}

TEST(OfferingTest, AnIdWithAnyDigitChangedIsNotFound) {
  const std::string id = OfferingId(Sample());
  for (std::size_t i = 3; i < id.size(); ++i) {
    std::string other = id;
    other[i] = other[i] == '0' ? '1' : '0';
    EXPECT_EQ(Ec2CodeOf(ReadOfferingId(other).status()), kOfferingNotFound.name) << other;
    EXPECT_FALSE(ReadOfferingId(id.substr(0, i)).ok());
  }
}

// Anybody can make an id with a good checksum.
TEST(OfferingTest, TimesBeyondAllCalendarsAreNotForSale) {
  const std::string id = OfferingId(Sample());
  std::string bytes = *Unhex(id.substr(3));
  const std::size_t end = bytes.size() - 4 - 6 - 4;  // before the checksum and the rate
  for (const std::size_t from : {end, end - 4}) {
    std::string forged = bytes.substr(0, bytes.size() - 4);
    for (std::size_t i = from; i < end + 4; ++i) forged[i] = '\xff';
    const Sha256Digest digest = Sha256(forged);
    forged.append(digest.begin(), digest.begin() + 4);
    EXPECT_EQ(Ec2CodeOf(ReadOfferingId("cb-" + Hex(forged)).status()),
              "InvalidCapacityBlockOfferingIdNotFound");
  }
}

}  // namespace
}  // namespace tahoma::controller
