#include "controller/app/ec2_front.h"

#include <optional>
#include <utility>

#include "controller/ledger/block_hosts.h"
#include "lib/base/files.h"
#include "lib/base/rng.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

// Secrets of many: unlike a token file, which a cluster may mount with its usual mode.
absl::StatusOr<ec2::AccessKeys> ReadAccessKeys(const std::string& path) {
  std::string open_to_others;
  TAHOMA_ASSIGN_OR_RETURN(
      const std::string text,
      ReadSecretFile(path, [&](const std::string& line) { open_to_others = line; }));
  if (!open_to_others.empty()) return PermissionDenied("{}", open_to_others);
  return ec2::AccessKeys::Parse(text, path);
}

// Null until the core knows the fleet.
std::shared_ptr<const ec2::BookView> ViewOf(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == nullptr || !snapshot->synced || snapshot->cluster == nullptr) return nullptr;
  const auto find_host = [snapshot](const std::string& name) -> std::optional<HostState> {
    const std::optional<DomainId> domain = snapshot->cluster->FindDomain(name);
    return domain ? HostOf(*snapshot->cluster, *domain) : std::nullopt;
  };
  return std::make_shared<const ec2::BookView>(ec2::BookView{.blocks = snapshot->block_list,
                                                             .profile = snapshot->profile,
                                                             .prices = snapshot->prices,
                                                             .find_host = find_host,
                                                             .cluster = snapshot->cluster});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ec2Front>> Ec2Front::Open(const Options& options, TakeSnapshot take,
                                                         SendOrder order, AuditSink audit,
                                                         const Clock& clock, Log log) {
  ec2::Ec2Options api{.audit = std::move(audit), .log = std::move(log)};
  if (!options.access_key_file.empty()) {
    auto keys = ReadAccessKeys(options.access_key_file);
    if (!keys.ok()) return Annotate(keys.status(), "accessKeyFile");
    api.keys = std::make_shared<const ec2::AccessKeys>(*std::move(keys));
  }
  ec2::BookOwner owner;
  owner.view = [take = std::move(take)] { return ViewOf(take()); };
  owner.purchase = order;
  owner.extend = std::move(order);
  return std::unique_ptr<Ec2Front>(new Ec2Front(std::move(owner), std::move(api), clock));
}

Ec2Front::Ec2Front(ec2::BookOwner owner, ec2::Ec2Options options, const Clock& clock)
    : seller_(std::move(owner), clock),
      api_(seller_, std::move(options), clock, SeedFromMachine()) {}

void Ec2Front::AddTo(rest::Server& server, rest::Gate other) {
  server.SetGate(api_.GateBefore(std::move(other)));
  api_.AddRoutes(server);
}

}  // namespace tahoma::controller
