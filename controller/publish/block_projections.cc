#include "controller/publish/block_projections.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/answer.h"
#include "lib/kube/requests.h"

namespace tahoma::controller {
namespace {

// Returns the part of an object that is kept. The observed generation is not compared: each write
// of the status sets it, and a write of the status follows each write of the spec.
Json ContentOf(const Json& object, bool has_spec) {
  Json content = Json::object();
  if (const Json* status = kube::ValueAt(object, {"status"})) content["status"] = *status;
  if (!has_spec) return content;
  if (const Json* spec = kube::ValueAt(object, {"spec"})) content["spec"] = *spec;
  if (Json& status = content["status"]; status.is_object()) status.erase("observedGeneration");
  return content;
}

}  // namespace

BlockProjections::BlockProjections(kube::Transport& transport, const Clock& clock,
                                   kube::Sleeper& sleeper, Rng rng, BlockProjectionsOptions options)
    : transport_(transport),
      clock_(clock),
      sleeper_(sleeper),
      rng_(rng),
      options_(std::move(options)),
      reservations_{.resource = kCapacityReservations, .name = "CapacityReservation"},
      ultra_servers_{.resource = kUltraServers, .name = "UltraServer"},
      neuron_servers_{.resource = kNeuronUltraServers,
                      .name = "NeuronUltraServer",
                      .ns = options_.own_namespace,
                      .has_spec = true} {
  for (Kind* kind : Kinds()) Follow(*kind);
}

void BlockProjections::Follow(Kind& kind) {
  kube::WatchHandlers handlers;
  handlers.seen = [this, &kind](const Json& object) {
    const kube::ObjectKey key = kube::KeyOf(object);
    const MutexLock lock(mutex_);
    kind.objects.OnSeen(key, ContentOf(object, kind.has_spec));
    if (kind.has_spec) neuron_look_.OnSeen(key.name, object);
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
      transport_, sleeper_, Rng(rng_.Next()),
      kube::ReflectorOptions{.resource = kind.resource, .ns = kind.ns}, std::move(handlers));
}

void BlockProjections::Start() {
  for (Kind* kind : Kinds()) kind->reflector->Start();
  thread_ = std::thread([this] {
    while (sleeper_.Sleep(kProjectionPause)) Look();
  });
}

void BlockProjections::Stop() {
  if (thread_.joinable()) thread_.join();
  for (Kind* kind : Kinds()) kind->reflector->Stop();
}

void BlockProjections::Step() {
  for (Kind* kind : Kinds()) (void)kind->reflector->Step();
}

std::size_t BlockProjections::Look() {
  const std::shared_ptr<const Snapshot> now = options_.snapshot();
  if (!now->synced || now->cluster == nullptr) return 0;
  LookAtBlocks(*now);
  LookAtHosts(*now);
  const bool neuron_servers_wanted = LookAtNeuronServers(*now);
  if (options_.may_send && !options_.may_send()) return 0;
  Write(reservations_);
  Write(ultra_servers_);
  if (neuron_servers_wanted) Write(neuron_servers_);
  std::size_t due = 0;
  const MutexLock lock(mutex_);
  for (const Kind* kind : Kinds()) due += kind->objects.due();
  return due;
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
    if (block != nullptr) {
      reservations_.objects.Want(key_of(*block), {{"status", ReservationStatus(*after)}});
    }
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
  ultra_servers_.objects.Want(
      {"", UltraServerName(name)},
      {{"status", UltraServerStatus(*now.cluster, id, owners, now.block_time)}});
}

// Returns whether the projection knows the wanted objects. Before the first list nothing is kept.
bool BlockProjections::LookAtNeuronServers(const Snapshot& now) {
  const MutexLock lock(mutex_);
  if (!neuron_servers_.objects.listed()) return false;
  for (const auto& [name, content] : neuron_look_.Look(now, clock_.WallNow())) {
    const kube::ObjectKey key{options_.own_namespace, name};
    if (content.is_null()) neuron_servers_.objects.Unwant(key);
    if (!content.is_null()) neuron_servers_.objects.Want(key, content);
  }
  return true;
}

void BlockProjections::Write(Kind& kind) {
  std::vector<Projection::Write> writes;
  {
    const MutexLock lock(mutex_);
    writes = kind.objects.PopDue(kind.missing ? 1 : kProjectionsTogether);
  }
  if (writes.empty()) return;
  const std::vector<absl::Status> answers = Send(kind, writes);
  std::string trouble;
  kind.missing = false;
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const absl::Status& status = answers[i];
    const bool gone = absl::IsNotFound(status) && writes[i].kind == Projection::Kind::kDelete;
    kind.objects.OnAnswer(writes[i].key, status.ok() || gone);
    if (absl::IsNotFound(status) && writes[i].kind == Projection::Kind::kCreate) {
      kind.missing = true;
    }
    if (status.ok() || gone || absl::IsNotFound(status) || absl::IsAlreadyExists(status)) continue;
    trouble = fmt::format("the {} {} cannot be written: {}", kind.name, writes[i].key.ToString(),
                          Message(status));
  }
  if (trouble != std::exchange(kind.trouble, trouble) && !trouble.empty()) options_.log(trouble);
}

// Returns what became of each write. The second request of a write is sent after the first one was
// done: requests that are sent together have no order.
std::vector<absl::Status> BlockProjections::Send(const Kind& kind,
                                                 const std::vector<Projection::Write>& writes) {
  std::vector<absl::Status> answers(writes.size());
  std::vector<std::vector<kube::Request>> requests;
  for (const Projection::Write& write : writes) requests.push_back(RequestsOf(kind, write));
  for (std::size_t turn = 0; turn < 2; ++turn) {
    std::vector<std::size_t> sent;
    std::vector<kube::Request> together;
    for (std::size_t i = 0; i < writes.size(); ++i) {
      if (!answers[i].ok() || requests[i].size() <= turn) continue;
      sent.push_back(i);
      together.push_back(std::move(requests[i][turn]));
    }
    if (sent.empty()) break;
    const auto given = transport_.SendAll(together);
    for (std::size_t i = 0; i < sent.size(); ++i) answers[sent[i]] = kube::StatusOf(given[i]);
  }
  return answers;
}

// A replacement leaves metadata as it is, and nothing of the content that was.
std::vector<kube::Request> BlockProjections::RequestsOf(const Kind& kind,
                                                        const Projection::Write& write) {
  if (write.kind == Projection::Kind::kDelete) {
    return {kube::DeleteRequest(kind.resource, write.key)};
  }
  const auto patch = [&](Json operations, const char* subresource) {
    return kube::PatchRequest(kind.resource, write.key, kube::PatchType::kJson,
                              std::move(operations), {.subresource = subresource});
  };
  const Json content = ParseJson(write.content);
  const Json add_status = {{"op", "add"}, {"path", "/status"}, {"value", content.at("status")}};
  std::vector<kube::Request> requests;
  if (write.kind == Projection::Kind::kCreate) {
    Json object = content;
    object["apiVersion"] = fmt::format("{}/{}", kind.resource.group, kind.resource.version);
    object["kind"] = kind.name;
    object["metadata"]["name"] = write.key.name;
    if (!write.key.ns.empty()) object["metadata"]["namespace"] = write.key.ns;
    requests.push_back(kube::CreateRequest(kind.resource, write.key.ns, std::move(object)));
  } else if (!kind.has_spec) {
    requests.push_back(patch(Json::array({add_status}), ""));
  } else if (const Json before = ParseJson(write.before);
             before.value("spec", Json()) != content.at("spec")) {
    requests.push_back(patch(
        Json::array({{{"op", "add"}, {"path", "/spec"}, {"value", content.at("spec")}}}), ""));
  }
  if (kind.has_spec) {
    const Json generation = {
        {"op", "copy"}, {"from", "/metadata/generation"}, {"path", "/status/observedGeneration"}};
    requests.push_back(patch(Json::array({add_status, generation}), "status"));
  }
  return requests;
}

}  // namespace tahoma::controller
