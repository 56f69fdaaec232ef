// crash-controller: `controller --standalone` that kills itself with SIGKILL at a chosen write.
//
//   crash-controller DATA CRDS PORT_FILE N before|after commit|notice
//
// Counting begins with the first gang's commit or undoing, or the first sale of a Capacity Block.
// "commit" counts appends to the journal and the core's requests that change claims, bindings and
// CapacityBlocks; their order is always the same, except among the claims and pods of a gang.
// "notice" counts events and statuses of gangs and pods. The N-th write is the last; SIGKILL comes
// before or after it is carried out. The program prints that write as "crash: <write>" on stderr,
// and writes the API's address into PORT_FILE as the controller does. When no write is the N-th, it
// serves until killed from outside.

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "controller/app/offering_key.h"
#include "controller/app/options.h"
#include "controller/app/standalone.h"
#include "controller/core/journal/block_record.h"
#include "controller/core/journal/journal.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "controller/run/core_loop.h"
#include "lib/base/check.h"
#include "lib/base/clock.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/kube/transport.h"
#include "lib/rest/metrics.h"

namespace tahoma::controller {
namespace {

enum class WritePurpose { kCommit, kNotice };

// Counts writes and ends the program at the chosen write.
class Fuse {
 public:
  Fuse(int nth, bool before, WritePurpose purpose)
      : nth_(nth), before_(before), purpose_(purpose) {}

  void Arm() { armed_ = true; }

  bool before() const { return before_; }

  // Counts a write; true for the chosen write. The caller carries out all earlier writes, the
  // chosen write only unless before(), and then calls Blow.
  bool IsLast(WritePurpose purpose, const std::string& what) {
    const bool last = armed_ && purpose == purpose_ && ++count_ == nth_;
    if (last) fmt::print(stderr, "crash: {}\n", what);
    return last;
  }
  void Blow() { ::raise(SIGKILL); }

 private:
  const int nth_;
  const bool before_;
  const WritePurpose purpose_;
  std::atomic<bool> armed_ = false;
  std::atomic<int> count_ = 0;
};

std::string NameOf(const Record& record) {
  struct Name {
    const char* operator()(const GangPrepared&) const { return "GangPrepared"; }
    const char* operator()(const GangAllocated&) const { return "GangAllocated"; }
    const char* operator()(const GangBound&) const { return "GangBound"; }
    const char* operator()(const ClaimReleased&) const { return "ClaimReleased"; }
    const char* operator()(const MemberReplaced&) const { return "MemberReplaced"; }
    const char* operator()(const MemberAdded&) const { return "MemberAdded"; }
    const char* operator()(const GangUndoing&) const { return "GangUndoing"; }
    const char* operator()(const GangReleased&) const { return "GangReleased"; }
  };
  return std::visit(Name{}, record);
}

class CrashJournal final : public Journal {
 public:
  CrashJournal(Journal& journal, Fuse& fuse) : journal_(journal), fuse_(fuse) {}

  absl::Status Write(const JournalBatch& batch) override {
    if (batch.empty()) return journal_.Write(batch);
    std::string what = "journal";
    for (const JournalEntry& entry : batch.put) {
      if (IsBlockEntry(entry.bytes)) {
        fuse_.Arm();
        what += " BlockChanged";
        continue;
      }
      if (IsUsageEntry(entry.bytes)) continue;  // goes with records of gangs
      const auto record = DecodeRecord(entry.bytes);
      TAHOMA_CHECK_OK(record.status());
      if (std::holds_alternative<GangPrepared>(*record)) fuse_.Arm();
      if (std::holds_alternative<GangUndoing>(*record)) fuse_.Arm();
      what += " " + NameOf(*record);
    }
    const bool last = fuse_.IsLast(WritePurpose::kCommit, what);
    if (last && fuse_.before()) fuse_.Blow();
    absl::Status written = journal_.Write(batch);
    if (last) fuse_.Blow();
    return written;
  }

  absl::Status Load(const std::function<absl::Status(Sequence, std::string_view)>& visit) override {
    return journal_.Load(visit);
  }

 private:
  Journal& journal_;
  Fuse& fuse_;
};

WritePurpose PurposeOf(std::string_view target) {
  const auto has = [&](std::string_view text) {
    return target.find(text) != std::string_view::npos;
  };
  const bool pod_status = has("/pods/") && has("/status");
  return has("/events") || has("/gangs/") || pod_status ? WritePurpose::kNotice
                                                        : WritePurpose::kCommit;
}

class CrashTransport final : public kube::Transport {
 public:
  CrashTransport(kube::Transport& transport, Fuse& fuse) : transport_(transport), fuse_(fuse) {}

  absl::StatusOr<kube::Response> Send(const kube::Request& request) override {
    return SendAll({request}).front();
  }

  // Writes before the last write go together, as without the fuse.
  std::vector<absl::StatusOr<kube::Response>> SendAll(
      const std::vector<kube::Request>& requests) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const kube::Request& request = requests[i];
      if (request.method == "GET") continue;
      if (!fuse_.IsLast(PurposeOf(request.target),
                        fmt::format("{} {} {}", request.method, request.target, request.Text()))) {
        continue;
      }
      const std::size_t carried_out = fuse_.before() ? i : i + 1;
      transport_.SendAll({requests.begin(), requests.begin() + std::ptrdiff_t(carried_out)});
      fuse_.Blow();
    }
    return transport_.SendAll(requests);
  }

  absl::StatusOr<kube::Response> Stream(const kube::Request& request, const kube::LineSink& sink,
                                        std::chrono::milliseconds idle_timeout) override {
    return transport_.Stream(request, sink, idle_timeout);
  }

 private:
  kube::Transport& transport_;
  Fuse& fuse_;
};

absl::Status Run(const Options& options, Fuse& fuse) {
  const SystemClock clock;
  rest::Metrics metrics;
  TAHOMA_ASSIGN_OR_RETURN(const auto api, StandaloneApi::Open(options, {}, clock, metrics));
  CrashJournal journal(api->journal(), fuse);
  CrashTransport transport(api->transport(), fuse);
  CoreLoopOptions loop_options = StandaloneApi::LoopOptions();
  TAHOMA_ASSIGN_OR_RETURN(loop_options.core.blocks.offering_key, OfferingKeyOf(api->store()));
  loop_options.log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  CoreLoop loop(transport, journal, clock, std::move(loop_options));
  TAHOMA_RETURN_IF_ERROR(loop.Start());
  TAHOMA_RETURN_IF_ERROR(
      WriteAtomically(options.port_file, fmt::format("listenAddress: {}\n", api->address()), 0600));
  while (true) TAHOMA_RETURN_IF_ERROR(loop.WaitForFailure(std::chrono::hours(1)));
}

}  // namespace
}  // namespace tahoma::controller

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr,
               "usage: crash-controller DATA CRDS PORT_FILE N before|after commit|notice\n");
    return 2;
  }
  tahoma::controller::Options options;
  options.standalone = true;
  options.listen_address = "127.0.0.1:0";
  options.data_dir = argv[1];
  options.crd_dir = argv[2];
  options.port_file = argv[3];
  const auto purpose = std::string_view(argv[6]) == "commit"
                           ? tahoma::controller::WritePurpose::kCommit
                           : tahoma::controller::WritePurpose::kNotice;
  tahoma::controller::Fuse fuse(std::atoi(argv[4]), std::string_view(argv[5]) == "before", purpose);
  const absl::Status status = tahoma::controller::Run(options, fuse);
  fmt::print(stderr, "{}\n", tahoma::Message(status));
  return 1;
}
