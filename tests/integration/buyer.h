// Somebody who buys Capacity Blocks by the admin API of a standalone controller.
//
//   Buyer buyer(folder);
//   const Json answer = buyer.Buy(buyer.Offering(), "my-token");
//   answer.at("capacityReservationId");
//
// Thread safety: belongs to one thread.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/kube/http_transport.h"

namespace tahoma::testing {

class Buyer {
 public:
  // A buyer from the standalone controller in `folder`.
  explicit Buyer(const std::string& folder) {
    const std::string ports = *ReadFile(folder + "/ports");
    const std::size_t begin = ports.find("adminAddress: ") + 14;
    admin_ = *kube::HttpTransport::Create(
        {.server = "http://" + ports.substr(begin, ports.find('\n', begin) - begin)});
  }

  // Returns an offering of one host for a day; empty while there is none.
  std::string Offering() {
    const Json found = Look(
        "/v1/capacityblockofferings?instanceType=trn2.48xlarge&instanceCount=1"
        "&capacityDurationHours=24");
    const Json& offerings = found.value("capacityBlockOfferings", Json::array());
    return offerings.empty() ? "" : offerings[0].at("capacityBlockOfferingId").get<std::string>();
  }
  // Returns the answer of a purchase; null when there was none.
  Json Buy(const std::string& offering, const std::string& token) {
    return Call(
        {.method = "POST",
         .target = "/v1/capacityblocks/default",
         .headers = {{"Content-Type", "application/json"}},
         .body = Json{{"capacityBlockOfferingId", offering}, {"clientToken", token}}.dump()});
  }
  // Returns the answer to a look; null when there was none.
  Json Look(const std::string& target) { return Call({.method = "GET", .target = target}); }
  // Returns the reservations of all blocks.
  std::vector<std::string> Blocks() {
    std::vector<std::string> blocks;
    const Json list = Look("/v1/capacityblocks");
    for (const Json& block : list.value("capacityBlocks", Json::array())) {
      blocks.push_back(block.value("capacityReservationId", "none"));
    }
    return blocks;
  }

 private:
  Json Call(const kube::Request& request) {
    const auto answer = admin_->Send(request);
    return answer.ok() ? TryParseJson(answer->body) : Json();
  }

  std::unique_ptr<kube::HttpTransport> admin_;
};

}  // namespace tahoma::testing
