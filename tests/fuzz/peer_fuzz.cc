// A sim-node, as its peers, pods and plugin reach it, and a rank of a gang whose other rank lies.
//
// The input is a list of lines, each the header of a request as JSON, its payload in "payload":
//
//   {"id":5,"method":"peerJoin","params":{"commId":"default/c","rank":1,…}}   from node id % 8
//   {"id":0,"method":"commJoin","params":{"token":"…","commId":"c",…}}        from a pod
//   {"id":0,"method":"applyClaim","params":{…}}                               from the plugin
//   {"id":2,"method":"peerData","params":{…},"payload":"…"}  also what the lying rank says in place
//                                                            of its message 2
//
// Whatever is decoded is encoded again as the same; no call waits for anybody. wire_fuzz has the
// messages of the node socket.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "sim-node/node/election.h"
#include "sim-node/serve/communicator.h"
#include "sim-node/serve/communicator_calls.h"
#include "sim-node/serve/communicator_messages.h"
#include "sim-node/serve/communicator_of_instance.h"
#include "sim-node/serve/election_messages.h"
#include "sim-node/serve/memory_calls.h"
#include "sim-node/serve/node_server.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/unit/sim-node/participants/queue_peers.h"

namespace {

using namespace tahoma;
using namespace tahoma::sim;
namespace queues = tahoma::sim::testing;
using std::chrono::milliseconds;
using torus::ChipIndex;

// More than this is only planned, not moved: it would take long and show nothing more.
constexpr std::int64_t kMovedBytesMax = std::int64_t{1} << 20U;
constexpr std::size_t kLinesMax = 64;

// ---- Messages.

template <typename Decoded, typename Encode, typename Decode>
void CheckAgain(const absl::StatusOr<Decoded>& first, const Encode& encode, const Decode& decode) {
  if (!first.ok()) {
    TAHOMA_CHECK(absl::IsInvalidArgument(first.status()));
    return;
  }
  const wire::Request sent = encode(*first);
  const absl::StatusOr<Decoded> again = decode(sent);
  TAHOMA_CHECK_OK(again.status());
  const wire::Request same = encode(*again);
  TAHOMA_CHECK(same.params == sent.params && same.payload == sent.payload);
}

void CheckMessage(const wire::Request& message) {
  if (message.method == kJoinMethod) {
    CheckAgain(
        DecodeJoin(message),
        [](const JoinMessage& join) { return EncodeJoin(join.comm_id, join.rank, join.joiner); },
        DecodeJoin);
  } else if (message.method == kLeaveMethod) {
    CheckAgain(DecodeLeave(message), EncodeLeave, DecodeLeave);
  } else if (message.method == kLinksMethod) {
    CheckAgain(DecodeLinks(message, kMaxGangLinks), EncodeLinks,
               [](const wire::Request& sent) { return DecodeLinks(sent, kMaxGangLinks); });
  } else if (message.method == kDataMethod) {
    CheckAgain(
        DecodeData(message, kMaxGangLinks),
        [](const DataMessage& data) {
          return EncodeData(data.group, data.from, data.to, data.message);
        },
        [](const wire::Request& sent) { return DecodeData(sent, kMaxGangLinks); });
  } else if (message.method == kElectionMethod) {
    CheckAgain(DecodeNotice(message), EncodeNotice, DecodeNotice);
  }
}

// ---- The node.

Instance MakeInstance() {
  auto instance = Instance::Create({.type = hw::FindInstanceType("trn2u.48xlarge"),
                                    .name = "n0",
                                    .ultra_server = UltraServerPlace{.id = "us-0", .node_id = 0},
                                    .network_layers = {"nn-a", "nn-b", "nn-c"}},
                                   [n = std::uint64_t{0}]() mutable {
                                     return std::array<std::uint64_t, 2>{++n, 7};
                                   });
  TAHOMA_CHECK_OK(instance.status());
  // Their tokens end in …10000000000000007 and …20000000000000007.
  TAHOMA_CHECK_OK(
      instance
          ->ApplyClaim({.claim_uid = "u-1", .name_space = "default", .name = "a", .chips = {0, 1}})
          .status());
  TAHOMA_CHECK_OK(instance
                      ->ApplyClaim({.claim_uid = "u-2",
                                    .name_space = "default",
                                    .name = "b",
                                    .cores = {{.chip = 2, .cores = {0, 1}}}})
                      .status());
  return *std::move(instance);
}

class NoEvents final : public PeerEvents {
 public:
  std::vector<wire::Request> OnPeerConnected(int) override { return {}; }
  absl::Status OnPeerMessage(int, wire::Request) override { return absl::OkStatus(); }
  void OnPeerLost(int, LostConnection, const absl::Status&) override {}
};

// A link to peers that are never there.
PeerLink& DeadLink(int first_node) {
  static auto* const events = new NoEvents;
  std::vector<PeerAddress> peers;
  for (int node = first_node; node < first_node + 4; ++node) {
    if (node != 0) peers.push_back({.node_id = node, .address = "unix:/nonexistent/peer"});
  }
  auto link = PeerLink::Start(
      {.listen_address = "127.0.0.1:0", .peers = std::move(peers), .redial = std::chrono::hours(1)},
      *events);
  TAHOMA_CHECK_OK(link.status());
  return *link->release();
}

class Node {
 public:
  Node() {
    static PeerLink& domain = DeadLink(0);
    static PeerLink& efa = DeadLink(kFirstEfaNode);
    communicators_.Connect(domain);
    communicators_.ConnectEfa(efa);
    const auto called = [](const std::string&) {};
    AddCommunicatorCalls(server_, live_, calls_, called);
    AddMemoryCalls(server_, live_, memory_, called);
    election_.Start(now_);
  }

  void Tell(std::uint64_t from, const wire::Request& request) {
    if (request.method == kElectionMethod) {
      OnNotice(from, request);
    } else if (request.method.starts_with("peer")) {
      (void)communicators_.OnPeerMessage(static_cast<int>(from % 8), request);
    } else if (request.method == wire::kWatchInventory) {
      (void)wire::DecodeWatchParams(request.params);  // the call itself would wait
    } else {
      (void)server_.ServePlugin(request);
      CheckReply(server_.ServeWorkload(request));
    }
  }

  void Lose(int node) {
    communicators_.OnPeerLost(node, LostConnection::kFromPeer, Aborted("it left"));
  }

 private:
  void OnNotice(std::uint64_t from, const wire::Request& request) {
    const auto notice = DecodeNotice(request);
    if (!notice.ok()) return;
    now_ += kNoticePeriod;
    election_.OnNotice(now_, kCableSides.at(from % 2), *notice);
    election_.OnTick(now_);
    for (const Election::Outgoing& out : election_.DrainNotices())
      CheckMessage(EncodeNotice(out.notice));
    (void)ClassFilesOf(election_.result());
  }
  static void CheckReply(const absl::StatusOr<wire::Reply>& reply) {
    TAHOMA_CHECK_OK(wire::EncodeReply(1, reply).status());
  }

  LiveInstance live_{MakeInstance()};
  NodeServer server_{live_, {.driver_version = "2.26.10.0", .workload_socket = "unix:/run/w.sock"}};
  Communicators communicators_{{.node_id = 0,
                                .links = live_.Read(LinksAround),
                                .place = live_.Read(PlaceOf),
                                .join_timeout = milliseconds(0),
                                .run_timeout = milliseconds(0)}};
  CommunicatorCalls calls_{communicators_};
  MemoryCalls memory_{communicators_, calls_};
  Election election_{{.serial = 0x10}};
  VirtualTime now_{};
};

// ---- A rank whose peer lies.

constexpr std::uint64_t kMemoryBytes = 4096;
const queues::Pods& Gang() {
  static const auto* const gang =
      new queues::Pods{{{.chip = ChipIndex(0), .ranks = 4}}, {{.chip = ChipIndex(1), .ranks = 4}}};
  return *gang;
}

// The operations of the gang. In the last, each rank writes to and reads from the other's memory.
constexpr std::size_t kScenarios = 4;
absl::Status Act(std::size_t scenario, int rank, Peer& peer) {
  static const auto* const links = new TorusLinks(torus::kInstanceShape, hw::kTrainium2.links);
  Participant self(*links, Gang(), rank, peer);
  if (scenario == kScenarios - 1) {
    const auto budget = std::make_shared<PageBudget>(std::uint64_t{1} << 20U);
    ClaimMemory memory({{.chip = ChipIndex(rank), .bytes = kMemoryBytes}}, budget);
    const MemoryPlace own{ChipIndex(rank), 0};
    const MemoryPlace other{ChipIndex(1 - rank), 100};
    return self
        .Access({.accesses = {{AccessKind::kRead, own, other, 16},
                              {AccessKind::kWrite, own, other, 8}}},
                memory, {})
        .status();
  }
  constexpr std::array kOperations = {Operation::kAllReduce, Operation::kAllToAll,
                                      Operation::kAllGather};
  return self
      .Run({.request = {.operation = kOperations.at(scenario), .bytes = 64}, .check = true}, {})
      .status();
}

// The messages of an honest rank 1 to rank 0.
std::vector<PeerMessage> Truth(std::size_t scenario) {
  queues::Exchange exchange;
  std::vector<PeerMessage> said;
  exchange.tamper = [&](int from, int, const PeerMessage& message) {
    if (from == 1) said.push_back(message);
  };
  std::jthread other([&] {
    queues::QueuePeer peer(exchange, 1);
    TAHOMA_CHECK_OK(Act(scenario, 1, peer));
  });
  queues::QueuePeer peer(exchange, 0);
  TAHOMA_CHECK_OK(Act(scenario, 0, peer));
  other.join();
  return said;
}

class Liar final : public Peer {
 public:
  explicit Liar(std::vector<PeerMessage> messages) : messages_(std::move(messages)) {}
  absl::Status Send(int, PeerMessage) override { return absl::OkStatus(); }
  absl::StatusOr<PeerMessage> Receive(int) override {
    if (next_ == messages_.size()) return Aborted("it is gone");
    return messages_[next_++];
  }

 private:
  const std::vector<PeerMessage> messages_;
  std::size_t next_ = 0;
};

struct Lie {
  std::uint64_t place = 0;
  DataMessage data;
};

void CheckLies(const std::vector<Lie>& lies) {
  if (lies.empty()) return;
  static const auto* const truth = [] {
    auto* all = new std::vector<std::vector<PeerMessage>>;
    for (std::size_t scenario = 0; scenario < kScenarios; ++scenario) {
      all->push_back(Truth(scenario));
    }
    return all;
  }();
  const std::size_t scenario = static_cast<std::size_t>(lies[0].data.to) % kScenarios;
  std::vector<PeerMessage> said = (*truth)[scenario];
  for (const Lie& lie : lies) {
    if (lie.place < said.size()) {
      said[lie.place] = lie.data.message;
    } else {
      said.push_back(lie.data.message);
    }
  }
  Liar liar(std::move(said));
  (void)Act(scenario, 0, liar);
}

// ---- Lines.

struct Line {
  std::uint64_t id = 0;
  wire::Request request;
};

bool IsLarge(const Json& params) {
  const auto large = [](const Json& object) {
    const Json* bytes = FindMember(object, "bytes");
    return bytes != nullptr && bytes->is_number() && *bytes > kMovedBytesMax;
  };
  if (large(params)) return true;
  const Json* accesses = FindMember(params, "accesses");
  return accesses != nullptr && accesses->is_array() &&
         std::any_of(accesses->begin(), accesses->end(), large);
}

std::optional<Line> ReadLine(std::string_view text) {
  Json header = TryParseJson(text);
  if (!header.is_object()) return std::nullopt;
  std::string payload;
  if (const Json* given = FindMember(header, "payload"); given != nullptr && given->is_string()) {
    payload = given->get<std::string>();
  }
  if (const Json* params = FindMember(header, "params"); params != nullptr && IsLarge(*params)) {
    header["params"]["check"] = false;
    header["params"]["move"] = false;
  }
  auto request = wire::DecodeRequest(
      {.header = header.dump(-1, ' ', false, Json::error_handler_t::replace), .payload = payload});
  if (!request.ok()) return std::nullopt;
  return Line{.id = request->id, .request = std::move(request->request)};
}

}  // namespace

void FuzzOne(std::string_view input) {
  Node node;
  std::vector<Lie> lies;
  for (std::size_t count = 0; count < kLinesMax && !input.empty(); ++count) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::optional<Line> line = ReadLine(input.substr(0, end));
    input.remove_prefix(std::min(end + 1, input.size()));
    if (!line) continue;
    CheckMessage(line->request);
    node.Tell(line->id, line->request);
    if (line->request.method != kDataMethod) continue;
    auto data = DecodeData(line->request, kMaxGangLinks);
    if (data.ok()) lies.push_back({.place = line->id, .data = *std::move(data)});
  }
  for (int other = 1; other < 8; ++other) node.Lose(other);
  CheckLies(lies);
}
