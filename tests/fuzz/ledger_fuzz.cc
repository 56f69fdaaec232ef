// Records of the controller's journal. A checksum guards them, so the input is given one: type and
// body are the input's. What is read is written again as the same record.

#include <cstdint>
#include <string>
#include <string_view>

#include "controller/ledger/entry_form.h"
#include "controller/ledger/record.h"
#include "lib/base/check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::controller;

// docs/formats/ledger.md: "TJ", version, type, CRC-32C of the body and of these four, body.
std::string WithChecksum(std::string_view input) {
  std::string bytes = {'T', 'J', 1, input[0]};
  const std::string_view body = input.substr(1);
  const std::uint32_t checksum = Crc32c(body) ^ Crc32c(bytes);
  for (unsigned i = 0; i < 4; ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(checksum >> (8 * i)));
  }
  return bytes.append(body);
}

}  // namespace

void FuzzOne(std::string_view input) {
  TAHOMA_CHECK(input.starts_with("TJ") || !DecodeRecord(input).ok());
  if (input.empty()) return;
  const auto record = DecodeRecord(WithChecksum(input));
  if (!record.ok()) {
    TAHOMA_CHECK(absl::IsDataLoss(record.status()));
    return;
  }
  const std::string written = EncodeRecord(*record);
  const auto again = DecodeRecord(written);
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(EncodeRecord(*again) == written);
  TAHOMA_CHECK(again->index() == record->index());
}
