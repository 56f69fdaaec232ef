#include "tests/integration/node_claims.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>

#include "lib/base/status.h"
#include "lib/wire/call.h"
#include "tests/support/patience.h"

namespace tahoma::testing {
namespace {

constexpr std::chrono::seconds kSoon = Patience(20);

}  // namespace

std::string ClaimChips(const std::string& socket, int chips, const ClaimWish& wish,
                       const std::function<bool(const std::function<bool()>&)>& wait_until) {
  wire::ApplyParams params;
  params.token = wish.token;
  params.grant.claim_uid = "uid-" + wish.name;
  params.grant.name_space = "default";
  params.grant.name = wish.name;
  params.grant.lnc = wish.lnc;
  params.grant.ultra_server_mode = wish.ultra_server_mode;
  for (int chip = 0; chip < chips; ++chip) params.grant.chips.push_back(chip);
  wire::Client client("unix:" + socket);
  absl::StatusOr<wire::Reply> reply = Unavailable("not asked");
  const bool given = wait_until([&] {
    reply = client.Call(
        {.method = std::string(wire::kApplyClaim), .params = wire::EncodeApplyParams(params)},
        kSoon);
    return reply.ok();
  });
  EXPECT_TRUE(given && reply.ok()) << reply.status();
  const auto token = reply.ok() ? wire::DecodeToken(reply->result) : reply.status();
  EXPECT_TRUE(token.ok()) << token.status();
  return token.ok() ? *token : "";
}

std::vector<std::string> PodCommand(const PodPlace& place,
                                    const std::vector<std::string>& command) {
  std::vector<std::string> words = {"/usr/bin/env",
                                    "TAHOMA_NODE_SOCKET=unix:" + place.socket,
                                    "TAHOMA_CLAIM_TOKEN=" + place.token,
                                    fmt::format("TAHOMA_RANK={}", place.rank),
                                    fmt::format("TAHOMA_WORLD_SIZE={}", place.world_size),
                                    "TAHOMA_COMM_ID=" + place.job};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace tahoma::testing
