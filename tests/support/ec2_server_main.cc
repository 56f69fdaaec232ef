// tahoma-ec2-server: EC2's Query protocol alone, for tests with real clients.
//
//   tahoma-ec2-server --port-file FILE [--blocks N] [--hosts N] [--access-keys FILE]
//
// Listens on a free loopback port, writes "http://127.0.0.1:PORT" into FILE once it serves, and
// ends in order on SIGTERM. With an access key file it verifies signatures. The seller is a fake
// with N blocks; with --hosts it is a book that has N UltraServers and N trn2.48xlarge to sell, and
// keeps nothing on disk.

#include <signal.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "controller/ec2/book_seller.h"
#include "controller/ec2/ec2_api.h"
#include "controller/reserve/book.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/mutex.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"
#include "lib/rest/metrics.h"
#include "lib/rest/server.h"
#include "tests/support/fake_ec2_service.h"

namespace tahoma::controller::ec2 {
namespace {

struct Arguments {
  std::string port_file, access_keys;
  int blocks = 0;
  int hosts = 0;
};

// A book that many threads may ask.
class SharedBook {
 public:
  SharedBook(int hosts, const Clock& clock) : clock_(clock), book_({}, clock.WallNow()) {
    for (const char* name : {"u-trn2x64", "trn2.48xlarge"}) {
      for (int i = 0; i < hosts; ++i) {
        book_.PutHost({.name = fmt::format("{}-{}", name, i),
                       .pool = {.product = FindProduct(name), .zone = "us-east-2a", .cell = "nn-1"},
                       .healthy = true},
                      clock.WallNow());
      }
    }
  }

  BookOwner Owner() {
    return {.view = [this] { return View(); },
            .purchase =
                [this](const PurchaseOrder& order) {
                  const MutexLock lock(mutex_);
                  auto block = book_.Purchase(order, clock_.WallNow());
                  book_.Advance(clock_.WallNow());
                  return block;
                },
            .extend =
                [this](const ExtensionOrder& order) {
                  const MutexLock lock(mutex_);
                  auto block = book_.Extend(order, clock_.WallNow());
                  book_.Advance(clock_.WallNow());
                  return block;
                }};
  }

 private:
  std::shared_ptr<const BookView> View() {
    const MutexLock lock(mutex_);
    book_.Advance(clock_.WallNow());
    return std::make_shared<const BookView>(
        BookView{.blocks = book_.blocks(),
                 .now = book_.now(),
                 .profile = book_.profile(),
                 .prices = book_.prices(),
                 .find_host = [this](const std::string& name) { return FindHost(name); },
                 .cluster = nullptr});
  }
  std::optional<HostState> FindHost(const std::string& name) {
    const MutexLock lock(mutex_);
    const HostState* host = book_.hosts().Find(name);
    return host == nullptr ? std::nullopt : std::optional(*host);
  }

  const Clock& clock_;
  Mutex mutex_;
  BlockBook book_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Run(const Arguments& arguments) {
  // Blocked before any thread starts, so that only sigwait below receives them.
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
