#include "controller/app/check.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "controller/apiserver/storage/object_store.h"
#include "controller/core/core.h"
#include "controller/core/journal/block_record.h"
#include "controller/core/journal/record.h"
#include "controller/core/journal/usage_record.h"
#include "controller/store/database.h"
#include "controller/store/folder.h"
#include "controller/store/rocks_journal.h"
#include "controller/store/store.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "lib/kube/object.h"
#include "lib/kube/objects/claim.h"

namespace tahoma::controller {
namespace {

using apiserver::ObjectStore;
using kube::Allocation;

constexpr std::string_view kRestore =
    "keep the folder as it is and restore a backup into another one (controller restore BACKUP "
    "--data-dir NEW); in a cluster start with an empty folder";
constexpr std::string_view kGoOnWithLess =
    "put the missing log back, or restore a backup, or remove ACKNOWLEDGED to go on without these "
    "changes";
constexpr std::string_view kGiveAnew =
    "delete the pods and claims that are named, so that devices are given anew";
constexpr std::string_view kUpgrade = "use the program that wrote it";

// A gang run in the journal.
struct JournalRun {
  std::shared_ptr<const GangDecision> decision;
  bool allocated = false;
  bool undoing = false;
  std::set<std::uint32_t> released;  // indexes of claims
};

std::string DeviceName(const kube::DeviceResult& result) {
  return fmt::format("{}/{}/{}", result.driver, result.pool, result.device);
}

std::set<std::string> DevicesOf(const Allocation& allocation) {
  std::set<std::string> devices;
  for (const kube::DeviceResult& result : allocation.results) devices.insert(DeviceName(result));
  return devices;
}

class Check {
 public:
  explicit Check(std::string dir) : dir_(std::move(dir)), core_(NoPlan) {}

  FolderReport Run() {
    if (const absl::Status opened = Open(); !opened.ok()) return std::move(report_);
    const std::size_t tables = database_->CheckTables(
        [this](const absl::Status& damaged) { Wrong(Message(damaged), kRestore); });
    CheckFormat();
    ReadJournal();
    ReadObjects();
    CompareJournal();
    report_.found = fmt::format("{} is whole: {} objects, {} journal records, {} tables, change {}",
                                dir_, objects_, records_, tables, database_->sequence());
    return std::move(report_);
  }

 private:
  static std::vector<Decision> NoPlan(const ClusterState& /*state*/, const Queue& queue,
                                      WallTime /*now*/, Explaining /*explaining*/) {
    return std::vector<Decision>(queue.size());
  }

  void Wrong(std::string_view what, std::string_view remedy) {
    report_.wrong.push_back(fmt::format("{}: {}; {}", dir_, what, remedy));
  }

  // Opens the database. Faults that the folder alone shows are told first.
  absl::Status Open() {
    const auto fail = [this](const absl::Status& status, std::string_view remedy) {
      Wrong(Message(status), remedy);
      return status;
    };
    std::error_code ignored;
    if (!std::filesystem::is_directory(dir_, ignored)) {
      return fail(NotFound("there is no such folder"), "name the dataDir");
    }
    if (std::filesystem::exists(dir_ + "/LOCK", ignored)) {
      const absl::Status unused = Database::CheckUnused({.dir = dir_});
      if (!unused.ok()) return fail(unused, "nothing was looked at");
    }
    const absl::StatusOr<FolderFound> found = CheckFolder(dir_, /*guarded=*/true);
    if (!found.ok()) return fail(found.status(), kRestore);
    if (found->is_new) return fail(NotFound("it holds no store"), "name the dataDir");
    auto opened = Database::OpenReadOnly({.dir = dir_});
    if (!opened.ok()) return fail(opened.status(), kRestore);
    database_ = *std::move(opened);
    if (found->mark && database_->sequence() < found->mark->sequence) {
      Wrong(fmt::format("it ends with change {}, but {} had been acknowledged",
                        database_->sequence(), found->mark->sequence),
            kGoOnWithLess);
    }
    return absl::OkStatus();
  }

  void CheckFormat() {
    const auto format = database_->Get(Keyspace::kMeta, Store::kFormatKey);
    if (!format.ok()) {
      Wrong("it has no format version", kRestore);
    } else if (*format != Store::kFormat) {
      Wrong(fmt::format("it has format {}, this program reads format {}", *format, Store::kFormat),
            kUpgrade);
    }
    if (database_->Get(Keyspace::kMeta, Store::kRestoringKey).ok()) {
      Wrong("it holds a restore that did not end", "remove the folder and restore again");
    }
  }

  void ReadJournal() {
    const absl::Status read = database_->Scan(
        Keyspace::kLedger, kJournalPrefix, [this](std::string_view key, std::string_view value) {
          if (!key.starts_with(kJournalPrefix)) return false;
          ++records_;
          if (const absl::Status taken = TakeRecord(key, value); !taken.ok()) {
            Wrong(Message(taken), kRestore);
          }
          return true;
        });
    if (!read.ok()) Wrong(Message(read), kRestore);
  }

  absl::Status TakeRecord(std::string_view key, std::string_view value) {
    TAHOMA_ASSIGN_OR_RETURN(const StoredRecord stored, ReadStoredRecord(key, value));
    // As a start does: a record must be readable, and must fit behind the earlier records.
    TAHOMA_RETURN_IF_ERROR(core_.Restore(stored.sequence, stored.bytes));
    if (IsBlockEntry(stored.bytes) || IsUsageEntry(stored.bytes)) return absl::OkStatus();
    TAHOMA_ASSIGN_OR_RETURN(const Record record, DecodeRecord(stored.bytes));
    if (const auto* prepared = std::get_if<GangPrepared>(&record)) {
      runs_[stored.sequence].decision = prepared->decision;
    } else if (const auto* allocated = std::get_if<GangAllocated>(&record)) {
      runs_[allocated->run].allocated = true;
    } else if (const auto* undoing = std::get_if<GangUndoing>(&record)) {
      runs_[undoing->run].undoing = true;
    } else if (const auto* released = std::get_if<ClaimReleased>(&record)) {
      runs_[released->run].released.insert(released->claim);
    } else if (const auto* replaced = std::get_if<MemberReplaced>(&record)) {
      auto& decision = runs_[replaced->run].decision;
      decision = std::make_shared<const GangDecision>(WithMember(*decision, *replaced));
    } else if (const auto* added = std::get_if<MemberAdded>(&record)) {
      auto& run = runs_[added->run];
      run.decision = std::make_shared<const GangDecision>(WithMember(*run.decision, *added));
      for (const auto& claim : added->claims) run.released.erase(claim.index);
    }
    return absl::OkStatus();
  }

  void ReadObjects() {
    std::int64_t newest = 0;
    const auto version = database_->Get(Keyspace::kApi, ObjectStore::kVersionKey);
    if (version.ok()) {
      std::from_chars(version->data(), version->data() + version->size(), newest);
    }
    const absl::Status read = database_->Scan(Keyspace::kApi, ObjectStore::kObjectPrefix,
                                              [&](std::string_view key, std::string_view value) {
                                                if (!key.starts_with(ObjectStore::kObjectPrefix))
                                                  return false;
                                                ++objects_;
                                                const auto stored =
                                                    ObjectStore::ReadStored(key, value, newest);
                                                if (stored.ok()) {
                                                  TakeObject(*stored);
                                                } else {
                                                  Wrong(Message(stored.status()), kRestore);
                                                }
                                                return true;
                                              });
    if (!read.ok()) Wrong(Message(read), kRestore);
  }

  void TakeObject(const ObjectStore::Stored& stored) {
    const Json& body = *stored.object->body;
    const std::string key(stored.object->key);
    const std::string written =
        apiserver::ObjectKey(kube::StringAt(body, {"metadata", "namespace"}),
                             kube::StringAt(body, {"metadata", "name"}));
    if (written != key) {
      Wrong(fmt::format("the {} {} calls itself {}", stored.resource.plural, key, written),
            kRestore);
    }
    if (stored.resource.group.empty() && stored.resource.plural == "pods") {
      pods_[key] = {std::string(kube::UidOf(body)),
                    std::string(kube::StringAt(body, {"spec", "nodeName"}))};
    }
    if (stored.resource.group != "resource.k8s.io" || stored.resource.plural != "resourceclaims") {
      return;
    }
    const auto claim = kube::ParseResourceClaim(body);
    if (!claim.ok() || !claim->allocation) return;
    for (const kube::DeviceResult& result : claim->allocation->results) {
      if (result.admin_access) continue;
      const auto [holder, is_free] = holders_.emplace(DeviceName(result), key);
      if (is_free || holder->second == key) continue;
      Wrong(fmt::format("the device {} is allocated to the claims {} and {}", DeviceName(result),
                        holder->second, key),
            kGiveAnew);
    }
    claims_[key] = {std::string(kube::UidOf(body)), *claim->allocation};
  }

  // API writes follow the journal, and released claims leave the API first: an object may lack an
  // allocation of its run, but may not have another.
  void CompareJournal() {
    for (const auto& [id, run] : runs_) {
      if (run.decision == nullptr || !run.allocated || run.undoing) continue;
      const GangDecision& decision = *run.decision;
      for (std::uint32_t i = 0; i < decision.claims.size(); ++i) {
        if (!run.released.contains(i)) CompareClaim(id, decision, decision.claims[i]);
      }
      for (const DecidedPod& decided : decision.pods) {
        const auto pod = pods_.find(apiserver::ObjectKey(decision.key.ns, decided.name));
        if (pod == pods_.end() || pod->second.uid != decided.uid || pod->second.node.empty() ||
            pod->second.node == decided.node) {
          continue;
        }
        Wrong(fmt::format("the pod {} is bound to {}, but journal record {} says {}", pod->first,
                          pod->second.node, id, decided.node),
              kGiveAnew);
      }
    }
  }

  void CompareClaim(RunId id, const GangDecision& decision, const DecidedClaim& decided) {
    const auto claim = claims_.find(apiserver::ObjectKey(decision.key.ns, decided.name));
    if (decided.allocated_before || claim == claims_.end() || claim->second.uid != decided.uid ||
        DevicesOf(claim->second.allocation) == DevicesOf(decided.allocation)) {
      return;
    }
    Wrong(fmt::format("the claim {} has the devices {}, but journal record {} says {}",
                      claim->first, fmt::join(DevicesOf(claim->second.allocation), " "), id,
                      fmt::join(DevicesOf(decided.allocation), " ")),
          kGiveAnew);
  }

  struct KnownPod {
    std::string uid;
    std::string node;
  };
  struct KnownClaim {
    std::string uid;
    Allocation allocation;
  };

  const std::string dir_;
  FolderReport report_;
  std::shared_ptr<Database> database_;
  Core core_;
  std::map<RunId, JournalRun> runs_;
  std::map<std::string, KnownPod> pods_;
  std::map<std::string, KnownClaim> claims_;
  std::map<std::string, std::string> holders_;  // of devices
  std::size_t records_ = 0;
  std::size_t objects_ = 0;
};

}  // namespace

FolderReport CheckDataFolder(const std::string& dir) { return Check(dir).Run(); }

std::optional<int> RunCheckCommand(int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]) != "--check") return std::nullopt;
  std::string dir;
  config::Spec spec({.program = "controller --check",
                     .kind = "",
                     .summary = "Says whether a data folder is whole, and changes nothing in it."});
  spec.Word("DIR", &dir, "the dataDir of a controller that does not run",
            config::Spec::Need::kRequired);
  if (const std::optional<int> exit = config::Parse(argc - 1, argv + 1, spec)) return exit;
  const FolderReport report = CheckDataFolder(dir);
  for (const std::string& line : report.wrong) fmt::print("{}\n", line);
  if (!report.wrong.empty()) return 1;
  fmt::print("{}\n", report.found);
  return 0;
}

}  // namespace tahoma::controller
