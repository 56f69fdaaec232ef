// The plugin's checkpoint and what is made of it. A checksum guards the claims, so the input is
// given the right one, too. What is read is written again as the same, and each claim has a CDI
// file.

#include <string>
#include <string_view>

#include "dra-plugin/claims/cdi.h"
#include "dra-plugin/claims/checkpoint.h"
#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma;
using namespace tahoma::dra;

void CheckOne(std::string_view bytes) {
  const auto checkpoint = DecodeCheckpoint(bytes);
  if (!checkpoint.ok()) {
    TAHOMA_CHECK(absl::IsDataLoss(checkpoint.status()));
    return;
  }
  const auto again = DecodeCheckpoint(EncodeCheckpoint(*checkpoint));
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(*again == *checkpoint);
  for (const auto& [uid, claim] : checkpoint->claims) {
    TAHOMA_CHECK(ClaimUidOfCdiFile(CdiFileName(uid)) == uid);
    TAHOMA_CHECK(TryParseJson(CdiSpec(claim)).is_object());
    TAHOMA_CHECK(!ClaimEnvironment(claim).empty());
  }
}

std::string WithChecksum(std::string_view bytes) {
  Json document = TryParseJson(bytes);
  if (!document.is_object()) return "";
  document["sha256"] = Sha256Hex(document["claims"].dump());
  return document.dump();
}

}  // namespace

void FuzzOne(std::string_view input) {
  CheckOne(input);
  CheckOne(WithChecksum(input));
}
