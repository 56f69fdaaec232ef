// tahoma-ec2-server: EC2's Query protocol alone, for tests with real clients.
//
//   tahoma-ec2-server --port-file FILE [--blocks N] [--hosts N] [--access-keys FILE]
//
// Listens on a free loopback port, writes "http://127.0.0.1:PORT" into FILE when ready, and ends in
// order on SIGTERM. With an access key file the server verifies signatures. The seller is a fake
// with N blocks; with --hosts, a book with N UltraServers and N trn2.48xlarge for sale, nothing on
// disk. An UltraServer is in an active block of the namespace default, with something running.
// Another zone has instances that are not for sale.

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/ec2/book_seller.h"
#include "controller/ec2/ec2_api.h"
#include "controller/ec2/tag_change.h"
#include "controller/model/zone.h"
#include "controller/reserve/book.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"
#include "tests/support/fake_ec2_service.h"
#include "tests/support/fleet.h"

namespace tahoma::controller::ec2 {
namespace {

struct Arguments {
  std::string port_file, access_keys;
  int blocks = 0;
  int hosts = 0;
};

constexpr char kZone[] = "us-east-2a";
constexpr char kCell[] = "nn-1";

// Adds the node of a host, or a node of an UltraServer.
void AddNode(ClusterState& cluster, FleetNode node, const std::string& zone = kZone,
             const std::string& zone_id = "use2-az3") {
  node.top_layer = kCell;
  NodeFacts facts = NodeFactsOf(node);
  facts.labels = {{std::string(kZoneIdLabel), zone_id}, {std::string(kZoneLabel), zone}};
  cluster.PutNode(std::move(facts));
}

// A book for many threads.
class SharedBook {
 public:
  SharedBook(int hosts, const Clock& clock) : clock_(clock), book_({}, Now()) {
    const MutexLock lock(mutex_);
    ClusterState cluster;
    for (int i = 0; i < hosts; ++i) {
      const std::string ultraserver = fmt::format("u-trn2x64-{}", i);
      PutHost("u-trn2x64", ultraserver);
      for (int z = 0; z < hw::kUltraServerNodes; ++z) {
        AddNode(cluster, {.name = fmt::format("{}-n{}", ultraserver, z),
                          .type = "trn2u.48xlarge",
                          .ultra_server = ultraserver,
                          .z = z});
      }
      const std::string instance = fmt::format("trn2.48xlarge-{}", i);
      PutHost("trn2.48xlarge", instance);
      AddNode(cluster, {.name = instance});
    }
    for (const char* type : {"inf2.xlarge", "inf2.8xlarge", "trn1.2xlarge", "trn1.32xlarge"}) {
      AddNode(cluster, {.name = type, .type = type, .aws_only = true}, "us-east-2b", "use2-az1");
    }
    cluster_ = std::make_shared<const ClusterState>(std::move(cluster));
  }

  // Sells an UltraServer at once, some time ago, and starts something on the UltraServer. Comes
  // before all other calls.
  void SellOne() {
    const ManualClock past(Now());
    BookSeller seller(Owner(), past);
    const Caller owner{.name = "tests", .name_space = "default", .account = "000000000000"};
    OfferingSearch search;
    search.ultraserver_type = "u-trn2x64";
    search.ultraserver_count = 1;
    search.duration_hours = 48;
    const auto offerings = seller.FindOfferings(owner, search);
    TAHOMA_CHECK(offerings.ok());
    const auto at_once = std::ranges::find_if(*offerings, [&](const Ec2Offering& offering) {
      return offering.start <= Now() + behind_ / 2;
    });
    TAHOMA_CHECK(at_once != offerings->end());
    BlockPurchase purchase;
    purchase.offering_id = at_once->id;
    purchase.instance_platform = "Linux/UNIX";
    const auto bought = seller.PurchaseBlock(owner, purchase);
    TAHOMA_CHECK(bought.ok());
    behind_ = {};
    const MutexLock lock(mutex_);
    book_.Advance(Now());
    PutHost("u-trn2x64", book_.Find(bought->reservations.front().id)->hosts.front(), true);
  }

  BookOwner Owner() {
    return {.view = [this] { return View(); },
            .purchase =
                [this](const PurchaseOrder& order) {
                  const MutexLock lock(mutex_);
                  auto block = book_.Purchase(order, Now());
                  book_.Advance(Now());
                  return block;
                },
            .extend =
                [this](const ExtensionOrder& order) {
                  const MutexLock lock(mutex_);
                  auto block = book_.Extend(order, Now());
                  book_.Advance(Now());
                  return block;
                },
            .change_tags = [this](const Block& block, const TagChange& change) -> absl::Status {
              const MutexLock lock(mutex_);
              const auto known = book_.Find(block.reservation);
              std::vector<Tag> before;
              for (const auto& [key, value] : known->tags) before.push_back({key, value});
              TAHOMA_ASSIGN_OR_RETURN(const std::vector<Tag> tags, ApplyTagChange(before, change));
              Tags after;
              for (const Tag& tag : tags) after.emplace_back(tag.key, tag.value);
              book_.SetTerms(*known, known->terms, after, Now());
              return absl::OkStatus();
            }};
  }

 private:
  void PutHost(const char* product, const std::string& name, bool held = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    book_.PutHost({.name = name,
                   .pool = {.product = FindProduct(product), .zone = kZone, .cell = kCell},
                   .healthy = true,
                   .held = held},
                  book_.now());
  }

  WallTime Now() const { return clock_.WallNow() - behind_; }

  std::shared_ptr<const BookView> View() {
    const MutexLock lock(mutex_);
    book_.Advance(Now());
    return std::make_shared<const BookView>(
        BookView{.blocks = book_.blocks(),
                 .now = book_.now(),
                 .profile = book_.profile(),
                 .prices = book_.prices(),
                 .find_host = [this](const std::string& name) { return FindHost(name); },
                 .cluster = cluster_});
  }
  std::optional<HostState> FindHost(const std::string& name) {
    const MutexLock lock(mutex_);
    const HostState* host = book_.hosts().Find(name);
    return host == nullptr ? std::nullopt : std::optional(*host);
  }

  const Clock& clock_;
  // The first sale began this long ago, so its block is active now.
  std::chrono::nanoseconds behind_ = std::chrono::hours(2);
  std::shared_ptr<const ClusterState> cluster_;
  Mutex mutex_;
  BlockBook book_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Run(const Arguments& arguments) {
  // Blocked before any thread starts, so only sigwait below receives these signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const SystemClock clock;
  Ec2Options options;
  options.log = [](const std::string& line) { std::cerr << line << "\n"; };
  if (!arguments.access_keys.empty()) {
    std::ifstream in(arguments.access_keys);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    TAHOMA_ASSIGN_OR_RETURN(AccessKeys keys, AccessKeys::Parse(text, arguments.access_keys));
    options.keys = [all = std::make_shared<const AccessKeys>(std::move(keys))] { return all; };
  }
  FakeEc2Service fake(arguments.blocks);
  SharedBook book(arguments.hosts, clock);
  if (arguments.hosts > 0) book.SellOne();
  BookSeller seller(book.Owner(), clock);
  Ec2Service& service = arguments.hosts > 0 ? static_cast<Ec2Service&>(seller) : fake;
  Ec2Api ec2(service, options, clock, SeedFromMachine());
  rest::Metrics metrics;
  rest::Server server({.address = "127.0.0.1:0"}, metrics);
  server.SetGate(ec2.GateBefore([](const rest::Request&) { return std::nullopt; }));
  ec2.AddRoutes(server);
  TAHOMA_RETURN_IF_ERROR(server.Start());
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(arguments.port_file, server.url() + "\n", 0644));
  int signal = 0;
  sigwait(&ends, &signal);
  server.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace tahoma::controller::ec2

int main(int argc, char** argv) {
  tahoma::controller::ec2::Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--port-file") arguments.port_file = argv[i + 1];
    if (flag == "--access-keys") arguments.access_keys = argv[i + 1];
    if (flag == "--hosts") arguments.hosts = std::stoi(argv[i + 1]);
    if (flag == "--blocks") arguments.blocks = std::stoi(argv[i + 1]);
  }
  const absl::Status status = tahoma::controller::ec2::Run(arguments);
  if (status.ok()) return 0;
  std::cerr << status << "\n";
  return 1;
}
