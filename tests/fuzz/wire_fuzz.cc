// Messages of the wire between sim-node, dra-plugin and workloads: what a decoder takes, it takes
// again from its own encoder, as the same value.

#include <string>
#include <string_view>

#include "lib/base/check.h"
#include "lib/wire/call.h"
#include "lib/wire/messages.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace tahoma::wire;

template <typename Decode, typename Encode>
void CheckAgain(std::string_view text, const Decode& decode, const Encode& encode) {
  const auto value = decode(text);
  if (!value.ok()) return;
  const auto again = decode(encode(*value));
  TAHOMA_CHECK_OK(again.status());
  TAHOMA_CHECK(*again == *value);
}

void CheckCalls(std::string_view text) {
  const auto request = DecodeRequest({.header = std::string(text), .payload = "x"});
  if (request.ok()) {
    const auto frame = EncodeRequest(request->id, request->request);
    TAHOMA_CHECK_OK(frame.status());
    const auto again = DecodeRequest(*frame);
    TAHOMA_CHECK_OK(again.status());
    TAHOMA_CHECK(again->id == request->id && again->request.method == request->request.method &&
                 again->request.params == request->request.params);
  }
  const auto reply = DecodeReply(1, {.header = std::string(text), .payload = "x"});
  const auto sent = EncodeReply(1, reply);
  TAHOMA_CHECK_OK(sent.status());
  const auto again = DecodeReply(1, *sent);
  TAHOMA_CHECK(again.status().code() == reply.status().code());
  if (reply.ok()) TAHOMA_CHECK(again->result == reply->result);
}

}  // namespace

void FuzzOne(std::string_view input) {
  CheckAgain(input, DecodeInventory, EncodeInventory);
  CheckAgain(input, DecodeClaimGrant, EncodeClaimGrant);
  CheckAgain(input, DecodeApplyParams, EncodeApplyParams);
  CheckAgain(input, DecodeClaimList, EncodeClaimList);
  CheckAgain(input, DecodeToken, EncodeToken);
  CheckAgain(input, DecodeClaimUid, EncodeClaimUid);
  const auto watch = DecodeWatchParams(input);
  if (watch.ok()) TAHOMA_CHECK_OK(DecodeWatchParams(EncodeWatchParams(*watch)).status());
  const auto grants = DecodeClaimList(input);
  if (grants.ok()) {
    for (const ClaimGrant& grant : *grants) {
      const CoreMasks held = HeldCores(grant);
      bool any = false;
      for (const auto mask : held) any = any || mask != 0;
      // A claim that holds a core conflicts with itself.
      TAHOMA_CHECK(CheckDisjoint(grant, grant).ok() == !any);
    }
  }
  CheckCalls(input);
}
