#include "sim-node/serve/communicator.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/base/digest.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/serve/communicator_messages.h"

namespace tahoma::sim {
namespace {

// The most openings of a node kept for groups that this node has not formed yet: an opening from
// each of 16 ranks there to each of 16 here, in 16 groups.
constexpr std::size_t kMaxEarlyOfNode = 4096;
// The memory of a message besides its content.
constexpr std::size_t kBytesOfMessage = 512;

absl::Status Gone(int rank, const Joiner& joiner, std::string_view why) {
  return Aborted("NRT_EXEC_HW_ERR_COLLECTIVES ({}): rank {} on {} is gone: {}",
                 kNrtExecHwErrCollectives, rank, joiner.Node(), why);
}

// Whether the other ranks cannot know, after this error, how far this rank has come.
bool EndsGroup(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsDeadlineExceeded(status) || absl::IsInternal(status) ||
         absl::IsUnavailable(status);
}

std::size_t BytesOf(const PeerMessage& message) {
  std::size_t bytes = kBytesOfMessage;
  if (const auto* chunk = std::get_if<Chunk>(&message)) bytes += chunk->payload.size();
  if (const auto* opening = std::get_if<Opening>(&message)) {
    bytes += opening->spec.size();
    for (const NodeLinks& view : opening->views) {
      bytes += sizeof view + view.unhealthy.size() * sizeof view.unhealthy[0] +
               (view.dead.size() + view.efa_down.size()) * sizeof(torus::ChipIndex);
    }
  }
  return bytes;
}

// Bounds the bytes only. The budget counts each message as a connection of the sending node.
rest::Budget::Limits HeldLimits(const Communicators::Options& options) {
  return {.bytes = options.held_bytes, .bytes_per_client = options.held_bytes_of_peer};
}

}  // namespace

Communicators::Communicators(Options options)
    : options_(std::move(options)),
      held_(HeldLimits(options_)),
      waiting_(options_.node_id,
               {.of_node = options_.waiting_of_node, .of_others = options_.waiting_of_others}) {}

// Carries the messages between a rank and the other ranks of its group.
class Communicators::GroupPeer final : public Peer {
 public:
  GroupPeer(Communicators& owner, std::shared_ptr<Group> group, int self)
      : owner_(owner), group_(std::move(group)), self_(self) {}
  absl::Status Send(int rank, PeerMessage message) override {
    return owner_.SendMessage(*group_, self_, rank, std::move(message));
  }
  absl::StatusOr<PeerMessage> Receive(int rank) override {
    return owner_.ReceiveMessage(*group_, rank, self_);
  }

 private:
  Communicators& owner_;
  const std::shared_ptr<Group> group_;
  const int self_;
};

void Communicators::Connect(PeerLink& link) { link_ = &link; }
void Communicators::ConnectEfa(PeerLink& link) { efa_ = &link; }

absl::Status Communicators::CheckJoin(const JoinRequest& request, const torus::Shape& torus) const {
  if (request.comm_id.empty() || request.comm_id.size() > kMaxFullCommIdBytes) {
    return InvalidArgument("a communicator's id has {} bytes; expected 1 to {}",
                           request.comm_id.size(), kMaxFullCommIdBytes);
  }
  if (request.world_size < 1 || request.world_size > kMaxWorldSize) {
    return InvalidArgument("the world size is {}; expected 1 to {}", request.world_size,
                           kMaxWorldSize);
  }
  if (request.rank < 0 || request.rank >= request.world_size) {
    return InvalidArgument("the rank is {}; expected 0 to {}", request.rank,
                           request.world_size - 1);
  }
  return CheckMembers(request.members, torus);
}

absl::StatusOr<Communicators::Joined> Communicators::Join(JoinRequest request) {
  TAHOMA_RETURN_IF_ERROR(CheckJoin(request, options_.links.torus()));
  const std::string& comm_id = request.comm_id;
  MutexLock lock(mutex_);
  if (request.wanted && !request.wanted()) {
    return Aborted("rank {} left communicator \"{}\" before all had joined", request.rank, comm_id);
  }
  if (waiting_.Holders(comm_id).contains(request.rank)) {
    return AlreadyExists("rank {} waits for communicator \"{}\" already", request.rank, comm_id);
  }
  TAHOMA_RETURN_IF_ERROR(waiting_.CheckRoom(options_.node_id, comm_id, request.rank));
  const auto left = Forget(comm_id, request.rank, absl::CancelledError("it joined again"));
  const Joiner joiner{.node = options_.node_id,
                      .number = ++last_join_,
                      .world_size = request.world_size,
                      .members = request.members,
                      .place = options_.place};
  TAHOMA_CHECK(waiting_.Add(comm_id, request.rank, joiner).ok());
  refused_.erase({comm_id, request.rank});
  std::erase_if(turned_away_, [&](const TurnedAway& one) {
    return one.comm_id == comm_id && one.rank == request.rank;
  });
  FormGroup(comm_id);
  lock.Unlock();
  if (left) Tell(*left);
  Tell(EncodeJoin(comm_id, request.rank, joiner));
  lock.Lock();
  const auto deadline = CondVar::In(options_.join_timeout);
  while (!Ended(comm_id, request.rank, joiner.number) && changed_.WaitUntil(mutex_, deadline)) {
  }
  const bool ended = Ended(comm_id, request.rank, joiner.number);
  if (const Local* local = FindLocal(comm_id, request.rank, joiner.number)) {
    return JoinedTo(*local->group, request.rank);
  }
  const auto refused = refused_.find({comm_id, request.rank});
  // The join ended, neither in a group nor refused: the claim was released, or this node ends.
  if (ended && refused == refused_.end()) {
    return Aborted("rank {} left communicator \"{}\" before all had joined", request.rank, comm_id);
  }
  const absl::Status why =
      ended ? refused->second
            : DeadlineExceeded("communicator \"{}\": {} of {} did not join within {} ms", comm_id,
                               Missing(comm_id, request.world_size), request.world_size,
                               options_.join_timeout.count());
  const auto leave = Forget(comm_id, request.rank, why);
  if (leave && absl::IsFailedPrecondition(why)) {
    TellLater(comm_id, request.rank, joiner, *leave);
  }
  refused_.erase({comm_id, request.rank});
  lock.Unlock();
  if (leave) Tell(*leave);
  return why;
}

bool Communicators::Ended(const std::string& comm_id, int rank, std::uint64_t number) const {
  return FindLocal(comm_id, rank, number) != nullptr || refused_.contains({comm_id, rank}) ||
         !Waits(comm_id, rank, number);
}

bool Communicators::Waits(const std::string& comm_id, int rank, std::uint64_t number) const {
  return waiting_.Of(comm_id, rank, {.node = options_.node_id, .number = number}) ==
         WaitingRanks::Standing::kHolds;
}

Communicators::Joined Communicators::JoinedTo(const Group& group, int own) {
  Joined joined;
  const int domain = group.gang->DomainOf(own);
  for (int rank = 0; rank < static_cast<int>(group.ranks.size()); ++rank) {
    const auto& members = group.ranks[static_cast<std::size_t>(rank)].members;
    if (rank == own) {
      joined.first_rank = joined.ranks;
      joined.first_chip = joined.chips;
      joined.own_chips = static_cast<int>(members.size());
    }
    for (const Member& member : members) {
      if (group.gang->DomainOf(rank) == domain) joined.pool.push_back(joined.chips);
      joined.ranks += member.ranks;
      ++joined.chips;
    }
  }
  return joined;
}

// Says why the waiting ranks can never form a group; OK when they may.
absl::Status Communicators::Conflict(const std::string& comm_id) const {
  const Waiting& waiting = waiting_.Holders(comm_id);
  if (waiting.empty()) return absl::OkStatus();
  const auto& [first_rank, first] = *waiting.begin();
  std::map<std::pair<std::string, torus::ChipIndex>, int> holder;  // by domain and chip
  for (const auto& [rank, joiner] : waiting) {
    if (joiner.world_size != first.world_size) {
      return FailedPrecondition("communicator \"{}\": rank {} has world size {}, rank {} has {}",
                                comm_id, first_rank, first.world_size, rank, joiner.world_size);
    }
    for (const Member& member : joiner.members) {
      const auto [entry, added] = holder.try_emplace({joiner.place.Domain(), member.chip}, rank);
      if (added) continue;
      return FailedPrecondition("communicator \"{}\": ranks {} and {} both hold chip {}", comm_id,
                                entry->second, rank, member.chip.value());
    }
  }
  return absl::OkStatus();
}

std::string Communicators::Missing(const std::string& comm_id, int world_size) const {
  std::string list;
  int count = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    if (waiting_.Holders(comm_id).contains(rank)) continue;
    list += fmt::format("{}{}", count++ == 0 ? "" : ", ", rank);
  }
  return fmt::format("{} {}", count == 1 ? "rank" : "ranks", list);
}

void Communicators::Refuse(const std::string& comm_id, const Waiting& waiting,
                           const absl::Status& why) {
  for (const auto& [rank, joiner] : waiting) {
    if (joiner.node == options_.node_id) refused_[{comm_id, rank}] = why;
  }
  changed_.NotifyAll();
}

// Keeps the refusal for nodes without a connection: a rank of such a node may wait for this rank.
void Communicators::TellLater(const std::string& comm_id, int rank, const Joiner& joiner,
                              const wire::Request& refusal) {
  TurnedAway one{.comm_id = comm_id,
                 .rank = rank,
                 .join = EncodeJoin(comm_id, rank, joiner),
                 .leave = refusal,
                 .untold = {}};
  for (const PeerLink* const link : {link_, efa_}) {
    if (link == nullptr) continue;
    for (const int node : link->peers()) {
      if (!reached_.contains(node)) one.untold.insert(node);
    }
  }
  if (one.untold.empty()) return;
  if (turned_away_.size() >= kMaxWorldSize) turned_away_.pop_front();
  turned_away_.push_back(std::move(one));
}

// Sets the group's key and fabric. kFailedPrecondition as GangFabric::Of.
absl::Status Communicators::Span(Group& group) const {
  std::string joins;
  std::vector<NodePlace> places;
  bool one_domain = true;
  for (const Joiner& joiner : group.ranks) {
    places.push_back(joiner.place);
    one_domain = one_domain && joiner.place.Domain() == options_.place.Domain();
  }
  if (one_domain) {
    for (const Joiner& joiner : group.ranks) {
      joins += fmt::format("#{}.{}", joiner.node, joiner.number);
    }
    group.key = group.comm_id + joins;
    group.gang = GangFabric::OneDomain(options_.links, places.size());
    return absl::OkStatus();
  }
  for (const Joiner& joiner : group.ranks) {
    joins += fmt::format("#{}/{}.{}", joiner.place.Domain(), joiner.place.node_id, joiner.number);
  }
  group.key = group.comm_id + "#" + Sha256Hex(joins);  // a digest, as there may be 2,048 ranks
  auto gang = GangFabric::Of(places);
  if (!gang.ok()) {
    return Annotate(gang.status(), fmt::format("communicator \"{}\"", group.comm_id));
  }
  group.gang = *std::move(gang);
  return absl::OkStatus();
}

// Makes a group of the waiting ranks when all have joined; refuses the ranks when no group can
// form.
void Communicators::FormGroup(const std::string& comm_id) {
  const Waiting& waiting = waiting_.Holders(comm_id);
  if (waiting.empty()) return;
  if (const absl::Status conflict = Conflict(comm_id); !conflict.ok()) {
    return Refuse(comm_id, waiting, conflict);
  }
  const auto world_size = static_cast<std::size_t>(waiting.begin()->second.world_size);
  if (waiting.size() != world_size) return;
  const auto group = std::make_shared<Group>();
  group->comm_id = comm_id;
  for (const auto& [rank, joiner] : waiting) group->ranks.push_back(joiner);
  if (const absl::Status spanned = Span(*group); !spanned.ok()) {
    return Refuse(comm_id, waiting, spanned);
  }
  waiting_.RemoveHolders(comm_id);
  for (std::size_t rank = 0; rank < world_size; ++rank) {
    if (group->ranks[rank].node == options_.node_id) {
      AddLocal(comm_id, static_cast<int>(rank), group);
    }
  }
  for (auto& [node, early] : early_) {
    for (Early& one : early) {
      if (one.group != group->key) continue;
      if (!CheckSender(*group, node, one.from, one.to).ok()) continue;
      Deliver(*group, one.from, one.to, std::move(one.held));
    }
    std::erase_if(early, [&](const Early& one) { return one.group == group->key; });
  }
  FormGroup(comm_id);  // the ranks behind may form the next group
  changed_.NotifyAll();
}

void Communicators::AddLocal(const std::string& comm_id, int rank, std::shared_ptr<Group> group) {
  std::vector<std::vector<Member>> pods;
  for (std::size_t i = 0; i < group->ranks.size(); ++i) {
    pods.push_back(group->gang->ChipsOf(static_cast<int>(i), group->ranks[i].members));
  }
  const auto local = std::make_shared<Local>();
  local->peer = std::make_unique<GroupPeer>(*this, group, rank);
  local->participant =
      std::make_unique<Participant>(group->gang->fabric(), std::move(pods), rank, *local->peer);
  local->group = std::move(group);
  local_[{comm_id, rank}] = local;
}

const Communicators::Local* Communicators::FindLocal(const std::string& comm_id, int rank,
                                                     std::uint64_t number) const {
  const auto found = local_.find({comm_id, rank});
  if (found == local_.end()) return nullptr;
  const Joiner& joiner = found->second->group->ranks[static_cast<std::size_t>(rank)];
  return joiner.number == number ? found->second.get() : nullptr;
}

std::shared_ptr<Communicators::Group> Communicators::FindGroup(const std::string& key) const {
  for (const auto& [id, local] : local_) {
    if (local->group->key == key) return local->group;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<Communicators::Local>> Communicators::Enter(
    const std::string& comm_id, int rank, std::vector<NodeLinks>& views) const {
  const MutexLock lock(mutex_);
  const auto found = local_.find({comm_id, rank});
  if (found == local_.end()) {
    return FailedPrecondition("rank {} has not joined communicator \"{}\"", rank, comm_id);
  }
  for (const auto& [node, view] : views_) {
    views.push_back(found->second->group->gang->ViewFrom(rank, view));
  }
  return found->second;
}

void Communicators::EndIfLost(const std::string& comm_id, int rank,
                              const std::shared_ptr<Local>& local, const absl::Status& status) {
  if (status.ok() || !EndsGroup(status)) return;
  std::optional<wire::Request> leave;
  {
    const MutexLock lock(mutex_);
    const auto found = local_.find({comm_id, rank});
    if (found != local_.end() && found->second == local) leave = Forget(comm_id, rank, status);
  }
  if (leave) Tell(*leave);
}

absl::StatusOr<RunResult> Communicators::Run(const std::string& comm_id, int rank,
                                             const RunSpec& spec) {
  std::vector<NodeLinks> views;
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<Local> local, Enter(comm_id, rank, views));
  auto result = local->participant->Run(spec, std::move(views));
  EndIfLost(comm_id, rank, local, result.status());
  if (result.ok() && observer_) {
    observer_({.loads = result->loads,
               .time = result->time,
               .times = static_cast<std::uint64_t>(spec.warmup + spec.iterations)});
  }
  return result;
}

absl::StatusOr<AccessResult> Communicators::Access(const std::string& comm_id, int rank,
                                                   const AccessSpec& spec, ClaimMemory& memory) {
  std::vector<NodeLinks> views;
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<Local> local, Enter(comm_id, rank, views));
  auto result = local->participant->Access(spec, memory, std::move(views));
  EndIfLost(comm_id, rank, local, result.status());
  if (result.ok() && observer_) observer_({.loads = result->loads, .time = result->time});
  return result;
}

absl::StatusOr<std::vector<torus::ChipIndex>> Communicators::Chips(const std::string& comm_id,
                                                                   int rank) const {
  std::vector<NodeLinks> views;
  TAHOMA_ASSIGN_OR_RETURN(const std::shared_ptr<Local> local, Enter(comm_id, rank, views));
  std::vector<torus::ChipIndex> chips;
  const Group& group = *local->group;
  for (std::size_t number = 0; number < group.ranks.size(); ++number) {
    for (const Member& member :
         group.gang->ChipsOf(static_cast<int>(number), group.ranks[number].members)) {
      chips.push_back(member.chip);
    }
  }
  return chips;
}

void Communicators::Leave(const std::string& comm_id, int rank) {
  std::optional<wire::Request> leave;
  {
    const MutexLock lock(mutex_);
    leave = Forget(comm_id, rank, absl::CancelledError("it left"));
  }
  if (leave) Tell(*leave);
}

std::optional<wire::Request> Communicators::Forget(const std::string& comm_id, int rank,
                                                   const absl::Status& why) {
  std::optional<Joiner> joiner;
  if (const auto found = local_.find({comm_id, rank}); found != local_.end()) {
    joiner = found->second->group->ranks[static_cast<std::size_t>(rank)];
  } else {
    const Waiting& waiting = waiting_.Holders(comm_id);
    const auto own = waiting.find(rank);
    if (own != waiting.end() && own->second.node == options_.node_id) joiner = own->second;
  }
  if (!joiner) return std::nullopt;
  MarkGone(options_.node_id, comm_id, rank, joiner->number, why);
  local_.erase({comm_id, rank});
  return EncodeLeave({.comm_id = comm_id,
                      .rank = rank,
                      .number = joiner->number,
                      .reason = std::string(Message(why)),
                      .refused = absl::IsFailedPrecondition(why)});
}

// Ends a join. The join no longer waits for a group; ranks of a group that wait for the rank wake.
void Communicators::MarkGone(int node, const std::string& comm_id, int rank, std::uint64_t number,
                             const absl::Status& why) {
  const bool replaced = waiting_.End(comm_id, rank, {.node = node, .number = number});
  for (const auto& [id, local] : local_) {
    Group& group = *local->group;
    if (group.comm_id != comm_id || static_cast<std::size_t>(rank) >= group.ranks.size()) continue;
    const Joiner& joiner = group.ranks[static_cast<std::size_t>(rank)];
    if (joiner.node == node && joiner.number == number) {
      group.gone.try_emplace(rank, Gone(rank, joiner, Message(why)));
    }
  }
  if (replaced) FormGroup(comm_id);
  changed_.NotifyAll();
}

void Communicators::Deliver(Group& group, int from, int to, Held held) {
  group.inbox[{from, to}].push_back(std::move(held));
  changed_.NotifyAll();
}

absl::Status Communicators::SendMessage(Group& group, int from, int to, PeerMessage message) {
  const Joiner& joiner = group.ranks[static_cast<std::size_t>(to)];
  const int node = joiner.node;
  MutexLock lock(mutex_);
  if (node == options_.node_id) {
    Deliver(group, from, to, {.message = std::move(message), .share = nullptr});
    return absl::OkStatus();
  }
  PeerLink* const link = LinkTo(node);
  TAHOMA_CHECK(link != nullptr);  // other nodes' ranks are known only through the link
  // The peer may have connected to us before we are connected to it.
  const auto deadline = CondVar::In(options_.run_timeout);
  while (!group.gone.contains(to) && !link->Connected(node) &&
         changed_.WaitUntil(mutex_, deadline)) {
  }
  if (group.gone.contains(to)) return group.gone.at(to);
  lock.Unlock();
  const absl::Status sent = link->Send(node, EncodeData(group.key, from, to, std::move(message)));
  if (sent.ok()) return sent;
  lock.Lock();  // the reason may be known by now
  return group.gone.contains(to) ? group.gone.at(to) : Gone(to, joiner, Message(sent));
}

absl::StatusOr<PeerMessage> Communicators::ReceiveMessage(Group& group, int from, int to) {
  const auto deadline = CondVar::In(options_.run_timeout);
  const MutexLock lock(mutex_);
  std::deque<Held>& inbox = group.inbox[{from, to}];
  const auto silent = [&] {
    return inbox.empty() && !group.gone.contains(from) && !group.gone.contains(to);
  };
  while (silent() && changed_.WaitUntil(mutex_, deadline)) {
  }
  if (silent()) {
    return DeadlineExceeded(
        "NRT_EXEC_HW_ERR_COLLECTIVES ({}): rank {} on {} sent nothing for {} ms",
        kNrtExecHwErrCollectives, from, group.ranks[static_cast<std::size_t>(from)].Node(),
        options_.run_timeout.count());
  }
  if (inbox.empty()) return group.gone.contains(from) ? group.gone.at(from) : group.gone.at(to);
  PeerMessage message = std::move(inbox.front().message);
  inbox.pop_front();
  return message;
}

// A node without a connection misses the message; OnPeerConnected tells the node everything later.
void Communicators::Tell(const wire::Request& message) {
  for (PeerLink* const link : {link_, efa_}) {
    if (link == nullptr) continue;
    // The state of links concerns only the nodes of the UltraServer.
    if (link == efa_ && message.method == kLinksMethod) continue;
    for (const int node : link->peers()) (void)link->Send(node, message);
  }
}

void Communicators::SetLinks(std::vector<LinkState> unhealthy, std::vector<torus::ChipIndex> dead,
                             std::vector<torus::ChipIndex> efa_down) {
  NodeLinks view;
  {
    const MutexLock lock(mutex_);
    NodeLinks& own = views_[options_.node_id];
    if (own.unhealthy == unhealthy && own.dead == dead && own.efa_down == efa_down) return;
    own.node = options_.node_id;
    own.epoch += 1;
    own.unhealthy = std::move(unhealthy);
    own.dead = std::move(dead);
    own.efa_down = std::move(efa_down);
    view = own;
  }
  Tell(EncodeLinks(view));
}

std::vector<wire::Request> Communicators::OnPeerConnected(int node) {
  const MutexLock lock(mutex_);
  reached_.insert(node);
  changed_.NotifyAll();
  std::vector<wire::Request> all;
  const auto own = views_.find(options_.node_id);
  if (own != views_.end() && node < kFirstEfaNode) {
    all.push_back(EncodeLinks(own->second));
  }
  for (TurnedAway& one : turned_away_) {
    if (one.untold.erase(node) == 0) continue;
    all.push_back(one.join);
    all.push_back(one.leave);
  }
  std::erase_if(turned_away_, [](const TurnedAway& one) { return one.untold.empty(); });
  for (const auto& [id, local] : local_) {
    all.push_back(
        EncodeJoin(id.first, id.second, local->group->ranks[static_cast<std::size_t>(id.second)]));
  }
  for (const auto& [comm_id, waiting] : waiting_.all()) {
    for (const auto& [rank, joiner] : waiting) {
      if (joiner.node == options_.node_id) all.push_back(EncodeJoin(comm_id, rank, joiner));
    }
  }
  return all;
}

void Communicators::OnPeerLost(int node, LostConnection lost, const absl::Status& why) {
  const MutexLock lock(mutex_);
  if (lost == LostConnection::kToPeer) reached_.erase(node);
  for (const auto& [id, local] : local_) {
    Group& group = *local->group;
    for (std::size_t rank = 0; rank < group.ranks.size(); ++rank) {
      if (group.ranks[rank].node != node) continue;
      const int number = static_cast<int>(rank);
      group.gone.try_emplace(number, Gone(number, group.ranks[rank], Message(why)));
    }
  }
  if (lost == LostConnection::kFromPeer) {
    // The peer will announce its joins again, perhaps as a new process that counts from 1.
    early_.erase(node);
    views_.erase(node);
    for (const std::string& comm_id : waiting_.EndAllOf(node)) FormGroup(comm_id);
  }
  changed_.NotifyAll();
}

// A message that cannot be read is dropped: ranks that wait for it run into their time limits, and
// other groups are not affected.
absl::Status Communicators::OnPeerMessage(int node, wire::Request message) {
  if (message.method == kJoinMethod) return OnJoin(node, message);
  if (message.method == kLeaveMethod) return OnLeave(node, message);
  if (message.method == kLinksMethod) return OnLinks(node, message);
  if (message.method == kDataMethod) return OnData(node, std::move(message));
  return absl::OkStatus();
}

absl::Status Communicators::OnJoin(int node, const wire::Request& message) {
  TAHOMA_ASSIGN_OR_RETURN(JoinMessage join, DecodeJoin(message));
  if (node < kFirstEfaNode) {
    // A node of our UltraServer shares our place except for the number, and an older node sends no
    // place.
    const NodePlace said = std::move(join.joiner.place);
    join.joiner.place = options_.place;
    join.joiner.place.node_id = node;
    if (!said.name.empty()) {
      join.joiner.place.name = said.name;
      join.joiner.place.efa = said.efa;
    }
  } else if (hw::FindInstanceType(join.joiner.place.instance_type) == nullptr ||
             join.joiner.place.Domain() == options_.place.Domain()) {
    return InvalidArgument("{} joins over EFA as {} of type \"{}\"", join.joiner.place.name,
                           join.joiner.place.Domain(), join.joiner.place.instance_type);
  }
  TAHOMA_RETURN_IF_ERROR(
      CheckJoin({.comm_id = join.comm_id,
                 .rank = join.rank,
                 .world_size = join.joiner.world_size,
                 .members = join.joiner.members},
                node < kFirstEfaNode ? options_.links.torus() : join.joiner.place.torus()));
  join.joiner.node = node;
  const WaitingRanks::JoinId id{.node = node, .number = join.joiner.number};
  const PeerLink* const link = LinkTo(node);
  const std::string proven = link == nullptr ? "" : link->NameOf(node);
  const MutexLock lock(mutex_);
  if (waiting_.Noted(id)) return absl::OkStatus();
  TAHOMA_RETURN_IF_ERROR(
      Annotate(waiting_.CheckHome(join.joiner, proven),
               fmt::format("rank {} of communicator \"{}\"", join.rank, join.comm_id)));
  TAHOMA_RETURN_IF_ERROR(waiting_.CheckRoom(node, join.comm_id, join.rank));
  waiting_.Note(id);
  TAHOMA_RETURN_IF_ERROR(waiting_.Add(join.comm_id, join.rank, std::move(join.joiner)));
  FormGroup(join.comm_id);
  changed_.NotifyAll();
  return absl::OkStatus();
}

absl::Status Communicators::OnLeave(int node, const wire::Request& message) {
  using Standing = WaitingRanks::Standing;
  TAHOMA_ASSIGN_OR_RETURN(const LeaveMessage leave, DecodeLeave(message));
  const MutexLock lock(mutex_);
  const WaitingRanks::JoinId id{.node = node, .number = leave.number};
  const Standing standing = waiting_.Of(leave.comm_id, leave.rank, id);
  waiting_.Note(id);
  MarkGone(node, leave.comm_id, leave.rank, leave.number, absl::CancelledError(leave.reason));
  if (!leave.refused || standing == Standing::kEnded) return absl::OkStatus();
  if (standing != Standing::kHolds) {
    return PermissionDenied(
        "communicator \"{}\": node {} refuses it for rank {}, which {}", leave.comm_id, node,
        leave.rank, standing == Standing::kBehind ? "is of another node" : "it has not joined");
  }
  // The refusing node has seen all conflicting joins. Here some joins may have ended before others
  // came, so every waiting rank is refused.
  Refuse(leave.comm_id, waiting_.Holders(leave.comm_id),
         absl::FailedPreconditionError(leave.reason));
  return absl::OkStatus();
}

absl::Status Communicators::OnLinks(int node, const wire::Request& message) {
  if (node >= kFirstEfaNode) return InvalidArgument("links of another domain");
  TAHOMA_ASSIGN_OR_RETURN(NodeLinks view, DecodeLinks(message, options_.links.id_count()));
  view.node = node;
  TAHOMA_RETURN_IF_ERROR(CheckView(node, view));
  const MutexLock lock(mutex_);
  views_[node] = std::move(view);
  return absl::OkStatus();
}

absl::Status Communicators::CheckView(int node, const NodeLinks& view) const {
  const int chips = torus::kInstanceShape.chip_count();
  for (const LinkState& state : view.unhealthy) {
    if (static_cast<int>(state.link / kPorts) / chips == node) continue;
    return PermissionDenied("node {} tells the state of {}, which is not its own", node,
                            TorusLinks::Name(state.link));
  }
  for (const std::vector<torus::ChipIndex>* const list : {&view.dead, &view.efa_down}) {
    for (const torus::ChipIndex chip : *list) {
      if (chip.value() / chips == node) continue;
      return PermissionDenied("node {} tells the state of chip {}, which is not its own", node,
                              chip.value());
    }
  }
  return absl::OkStatus();
}

absl::Status Communicators::OnData(int node, wire::Request message) {
  TAHOMA_ASSIGN_OR_RETURN(DataMessage data, DecodeData(std::move(message), kMaxGangLinks));
  const MutexLock lock(mutex_);
  const std::shared_ptr<Group> group = FindGroup(data.group);
  if (group == nullptr) return KeepEarly(node, std::move(data));
  TAHOMA_RETURN_IF_ERROR(CheckSender(*group, node, data.from, data.to));
  if (group->gone.contains(data.from)) return absl::OkStatus();
  absl::StatusOr<Held> held = Hold(node, std::move(data.message));
  if (!held.ok()) {
    // The rank's later messages would arrive with a gap, so the rank is out of the group.
    const Joiner& joiner = group->ranks[static_cast<std::size_t>(data.from)];
    MarkGone(node, group->comm_id, data.from, joiner.number, held.status());
    return held.status();
  }
  Deliver(*group, data.from, data.to, *std::move(held));
  return absl::OkStatus();
}

absl::Status Communicators::CheckSender(const Group& group, int node, int from, int to) const {
  const auto ranks = static_cast<int>(group.ranks.size());
  if (from >= ranks || to >= ranks) {
    return InvalidArgument(
        "communicator \"{}\" has {} ranks; node {} sends from rank {} to rank {}", group.comm_id,
        ranks, node, from, to);
  }
  const Joiner& sender = group.ranks[static_cast<std::size_t>(from)];
  if (sender.node != node) {
    return PermissionDenied(
        "communicator \"{}\": node {} sends in the name of rank {}, which is on {}", group.comm_id,
        node, from, sender.Node());
  }
  if (group.ranks[static_cast<std::size_t>(to)].node != options_.node_id) {
    return InvalidArgument(
        "communicator \"{}\": node {} sends to rank {}, which is not on this node", group.comm_id,
        node, to);
  }
  return absl::OkStatus();
}

// Keeps an opening until its group is formed here. Every rank waits for all openings before it
// sends anything else: kNotFound for any other early message.
absl::Status Communicators::KeepEarly(int node, DataMessage data) {
  if (!std::holds_alternative<Opening>(data.message)) {
    return NotFound("node {} sends data of group \"{}\", which is not formed here", node,
                    data.group);
  }
  TAHOMA_ASSIGN_OR_RETURN(Held held, Hold(node, std::move(data.message)));
  std::deque<Early>& early = early_[node];
  // likely an opening of a group that has ended
  if (early.size() >= kMaxEarlyOfNode) early.pop_front();
  early.push_back(
      {.group = std::move(data.group), .from = data.from, .to = data.to, .held = std::move(held)});
  return absl::OkStatus();
}

absl::StatusOr<Communicators::Held> Communicators::Hold(int node, PeerMessage message) {
  const std::string client = fmt::format("node {}", node);
  std::unique_ptr<rest::Budget::Share> share = held_.Admit(client);
  share->Hold(BytesOf(message));
  const rest::Budget::Over over = held_.Weight(client);
  if (over == rest::Budget::Over::kNobody) {
    return Held{.message = std::move(message), .share = std::move(share)};
  }
  const bool all = over == rest::Budget::Over::kAll;
  return ResourceExhausted("messages of {} that nobody has read would hold more than {} bytes",
                           all ? "all nodes" : client,
                           all ? options_.held_bytes : options_.held_bytes_of_peer);
}

}  // namespace tahoma::sim
