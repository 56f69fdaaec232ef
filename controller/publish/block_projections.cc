#include "controller/publish/block_projections.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {

BlockProjections::BlockProjections(kube::Transport& transport, kube::Sleeper& sleeper, Rng rng,
                                   BlockProjectionsOptions options)
    : transport_(transport), sleeper_(sleeper), rng_(rng), options_(std::move(options)) {
  reservations_.resource = kCapacityReservations;
  reservations_.name = "CapacityReservation";
  ultra_servers_.resource = kUltraServers;
  ultra_servers_.name = "UltraServer";
  Follow(reservations_);
  Follow(ultra_servers_);
}

void BlockProjections::Follow(Kind& kind) {
  kube::WatchHandlers handlers;
  handlers.seen = [this, &kind](const Json& object) {
    const MutexLock lock(mutex_);
    kind.objects.OnSeen(kube::KeyOf(object), object);
    return absl::OkStatus();
  };
  handlers.gone = [this, &kind](const kube::ObjectKey& key, const std::string&) {
    const MutexLock lock(mutex_);
    kind.objects.OnGone(key);
  };
  handlers.listed = [this, &kind] {
    const MutexLock lock(mutex_);
    kind.objects.OnListed();
  };
  kind.reflector = std::make_unique<kube::Reflector>(
      transport_, sleeper_, Rng(rng_.Next()), kube::ReflectorOptions{.resource = kind.resource},
      std::move(handlers));
}

void BlockProjections::Start() {
  for (Kind* kind : {&reservations_, &ultra_servers_}) kind->reflector->Start();
  thread_ = std::thread([this] {
    while (sleeper_.Sleep(kProjectionPause)) Look();
  });
}

void BlockProjections::Stop() {
  if (thread_.joinable()) thread_.join();
  for (Kind* kind : {&reservations_, &ultra_servers_}) kind->reflector->Stop();
}

void BlockProjections::Step() {
  for (Kind* kind : {&reservations_, &ultra_servers_}) (void)kind->reflector->Step();
}

std::size_t BlockProjections::Look() {
  const std::shared_ptr<const Snapshot> now = options_.snapshot();
  if (!now->synced || now->cluster == nullptr) return 0;
  LookAtBlocks(*now);
  LookAtHosts(*now);
  if (options_.may_send && !options_.may_send()) return 0;
  Write(reservations_);
  Write(ultra_servers_);
  const MutexLock lock(mutex_);
  return reservations_.objects.due() + ultra_servers_.objects.due();
}

void BlockProjections::LookAtBlocks(const Snapshot& now) {
  const auto key_of = [](const Block& block) {
    return kube::ObjectKey{block.key.ns, block.reservation};
  };
  std::vector<std::pair<std::shared_ptr<const BlockView>, std::shared_ptr<const BlockView>>>
      changes;
  now.blocks.ForEach([&](const BlockKey& key, const auto& view) {
    auto& before = blocks_[key];
    if (before == view) return;
    changes.emplace_back(std::exchange(before, view), view);
  });
  if (blocks_.size() > now.blocks.size()) {
    absl::erase_if(blocks_, [&](const auto& known) {
      if (now.blocks.Find(known.first) != nullptr) return false;
      changes.emplace_back(known.second, nullptr);
      return true;
    });
  }
  for (const auto& [before, after] : changes) {
    const Block* old_block = before == nullptr ? nullptr : before->block.get();
    const Block* block = after == nullptr ? nullptr : after->block.get();
    NoteHosts(old_block, block);
    const MutexLock lock(mutex_);
    if (old_block != nullptr && (block == nullptr || key_of(*old_block) != key_of(*block))) {
      reservations_.objects.Unwant(key_of(*old_block));
    }
    if (block != nullptr) reservations_.objects.Want(key_of(*block), ReservationStatus(*after));
  }
}

void BlockProjections::NoteHosts(const Block* before, const Block* after) {
  if (before != nullptr) {
    for (const std::string& host : before->hosts) {
      uses_[host].erase({before->start(), before->reservation});
      touched_.insert(host);
    }
  }
  if (after == nullptr) return;
  for (const std::string& host : after->hosts) {
    uses_[host].insert({after->start(), after->reservation});
    touched_.insert(host);
  }
}

void BlockProjections::LookAtHosts(const Snapshot& now) {
  names_.resize(std::max(names_.size(), now.cluster->domain_count()));
  std::set<std::uint32_t> changed;
  ClusterState::ForEachChangedDomain(cluster_, *now.cluster, [&](DomainId id) {
    if (id.value() < now.cluster->domain_count()) changed.insert(id.value());
  });
  for (const std::string& host : std::exchange(touched_, {})) {
    if (const auto id = now.cluster->FindDomain(host)) changed.insert(id->value());
  }
  for (const std::uint32_t id : changed) ProjectHost(now, DomainId(id));
  cluster_ = *now.cluster;
}

void BlockProjections::ProjectHost(const Snapshot& now, DomainId id) {
  const DomainState& domain = now.cluster->domain(id);
  const std::string name = domain.ultra && !domain.name.empty() ? domain.name : "";
  std::string& known = names_[id.value()];
  const MutexLock lock(mutex_);
  if (known != name && !known.empty()) {
    ultra_servers_.objects.Unwant({"", UltraServerName(known)});
  }
  known = name;
  if (name.empty()) return;
  const auto block_of = [&](const std::string& reservation) -> const Block* {
    const auto* block = now.block_list.Find(reservation);
    return block == nullptr ? nullptr : block->get();
  };
  Owners owners{.now = block_of(domain.block.reservation)};
  if (const auto uses = uses_.find(name); uses != uses_.end()) {
    for (const auto& [start, reservation] : uses->second) {
      const Block* block = block_of(reservation);
      if (block == nullptr || block == owners.now || IsDelivered(block->state)) continue;
      owners.next = block;
      break;
    }
  }
  ultra_servers_.objects.Want({"", UltraServerName(name)},
                              UltraServerStatus(*now.cluster, id, owners, now.block_time));
}

void BlockProjections::Write(Kind& kind) {
  std::vector<Projection::Write> writes;
  {
    const MutexLock lock(mutex_);
    writes = kind.objects.PopDue(kProjectionsTogether);
  }
  if (writes.empty()) return;
  std::vector<kube::Request> requests;
  for (const Projection::Write& write : writes) requests.push_back(RequestOf(kind, write));
  const auto answers = transport_.SendAll(requests);
  std::string trouble;
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const absl::Status status = kube::StatusOf(answers[i]);
    const bool gone = absl::IsNotFound(status) && writes[i].kind == Projection::Kind::kDelete;
    kind.objects.OnAnswer(writes[i].key, status.ok() || gone);
    if (status.ok() || gone || absl::IsNotFound(status) || absl::IsAlreadyExists(status)) continue;
    trouble = fmt::format("the {} {} cannot be written: {}", kind.name, writes[i].key.ToString(),
                          Message(status));
  }
  if (trouble != std::exchange(kind.trouble, trouble) && !trouble.empty()) options_.log(trouble);
}

// A replacement leaves metadata as it is, and nothing of the status that was.
kube::Request BlockProjections::RequestOf(const Kind& kind, const Projection::Write& write) const {
  switch (write.kind) {
    case Projection::Kind::kDelete:
      return kube::DeleteRequest(kind.resource, write.key);
    case Projection::Kind::kReplace:
      return kube::PatchRequest(
          kind.resource, write.key, kube::PatchType::kJson,
          Json::array(
              {Json{{"op", "add"}, {"path", "/status"}, {"value", ParseJson(write.status)}}}));
    case Projection::Kind::kCreate:
      break;
  }
  Json metadata = {{"name", write.key.name}};
  if (!write.key.ns.empty()) metadata["namespace"] = write.key.ns;
  return kube::CreateRequest(kind.resource, write.key.ns,
                             {{"apiVersion", "tahoma.dev/v1alpha1"},
                              {"kind", kind.name},
                              {"metadata", std::move(metadata)},
                              {"status", ParseJson(write.status)}});
}

}  // namespace tahoma::controller
