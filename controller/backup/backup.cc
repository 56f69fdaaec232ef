#include "controller/backup/backup.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "controller/apiserver/storage/object_store.h"
#include "controller/store/store.h"
#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/base/utf8.h"
#include "lib/kube/object.h"

namespace tahoma::controller {
namespace {

constexpr std::string_view kFormat = "tahoma-backup";
constexpr int kVersion = 1;
constexpr std::size_t kPiece = 256UL << 10U;
constexpr std::size_t kBatch = 4UL << 20U;

// Returns the digest of all lines so far: a line that is changed, missing or moved changes all
// later digests.
Sha256Digest Chained(const Sha256Digest& before, std::string_view line) {
  std::string text(before.begin(), before.end());
  text += line;
  return Sha256(text);
}
std::string HexOf(const Sha256Digest& digest) {
  return Hex(std::string(digest.begin(), digest.end()));
}

std::string_view NameOf(Keyspace keyspace) { return keyspace == Keyspace::kApi ? "api" : "ledger"; }

std::string TextOf(const Json& line, std::string_view name) {
  return std::string(kube::StringAt(line, {name}));
}

absl::Status CheckHead(const Json& line) {
  const auto version = line.find("version");
  if (!line.is_object() || TextOf(line, "format") != kFormat || version == line.end() ||
      !version->is_number_integer()) {
    return DataLoss("line 1: this is no backup of Tahoma's");
  }
  if (*version != kVersion) {
    return FailedPrecondition("the backup has version {}, this program reads version {}",
                              version->dump(), kVersion);
  }
  if (TextOf(line, "store") != Store::kFormat) {
    return FailedPrecondition("the backup is of a store of format {}, this program has format {}",
                              TextOf(line, "store"), Store::kFormat);
  }
  return absl::OkStatus();
}

absl::Status TellRecord(const Json& line, const VisitRecord& visit) {
  const std::string keyspace = TextOf(line, "keyspace");
  if ((keyspace != "api" && keyspace != "ledger") || TextOf(line, "key").empty()) {
    return DataLoss("no record");
  }
  std::string value = TextOf(line, "value");
  if (line.contains("hex")) {
    std::optional<std::string> bytes = Unhex(TextOf(line, "hex"));
    if (!bytes) return DataLoss("\"hex\" is not hexadecimal");
    value = *std::move(bytes);
  }
  return visit(keyspace == "api" ? Keyspace::kApi : Keyspace::kLedger, TextOf(line, "key"),
               std::move(value));
}

}  // namespace

BackupWriter::BackupWriter(std::unique_ptr<Database::Moment> moment) : moment_(std::move(moment)) {}

void BackupWriter::AppendLine(std::string line, std::string& text) {
  line += '\n';
  chain_ = Chained(chain_, line);
  text += line;
}

absl::StatusOr<bool> BackupWriter::Append(std::string& text) {
  const std::size_t before = text.size();
  if (!std::exchange(begun_, true)) {
    AppendLine(Json{{"format", kFormat},
                    {"version", kVersion},
                    {"store", Store::kFormat},
                    {"sequence", moment_->sequence()}}
                   .dump(),
               text);
  }
  for (;;) {
    bool full = false;
    TAHOMA_RETURN_IF_ERROR(
        moment_->Scan(keyspace_, from_, [&](std::string_view key, std::string_view value) {
          Json line = {{"keyspace", NameOf(keyspace_)}, {"key", std::string(key)}};
          if (IsUtf8(value)) {
            line["value"] = std::string(value);
          } else {
            line["hex"] = Hex(value);
          }
          AppendLine(line.dump(), text);
          ++records_;
          from_ = std::string(key) + '\0';
          full = text.size() - before >= kPiece;
          return !full;
        }));
    if (full) return true;
    if (keyspace_ == Keyspace::kLedger) break;
    keyspace_ = Keyspace::kLedger;
    from_.clear();
  }
  text += Json{{"records", records_}, {"sha256", HexOf(chain_)}}.dump() + "\n";
  return false;
}

absl::Status VisitBackup(std::string_view text, const VisitRecord& visit) {
  Sha256Digest chain{};
  std::uint64_t records = 0;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = text.substr(0, end + 1);
    text.remove_prefix(line.size());
    const Json json = TryParseJson(line);
    if (number == 1) {
      TAHOMA_RETURN_IF_ERROR(CheckHead(json));
    } else if (!json.is_object()) {
      return DataLoss("line {} of the backup cannot be read", number);
    } else if (json.contains("sha256")) {
      if (json != Json{{"records", records}, {"sha256", HexOf(chain)}} || !text.empty()) {
        return DataLoss("the backup was changed: its checksum does not fit");
      }
      return absl::OkStatus();
    } else {
      TAHOMA_RETURN_IF_ERROR(
          Annotate(TellRecord(json, visit), fmt::format("line {} of the backup", number)));
      ++records;
    }
    chain = Chained(chain, line);
  }
  return DataLoss("the backup is not whole: its last line is missing");
}

absl::Status CheckBackup(std::string_view text) {
  return VisitBackup(
      text, [](Keyspace, const std::string&, const std::string&) { return absl::OkStatus(); });
}

absl::Status RestoreBackup(std::string_view text, const std::string& dir,
                           const std::function<void(const std::string&)>& log) {
  TAHOMA_RETURN_IF_ERROR(CheckBackup(text));
  std::error_code error;
  if (std::filesystem::exists(dir, error) && !std::filesystem::is_empty(dir, error)) {
    return FailedPrecondition("{} is not empty; restore into a new folder", dir);
  }
  TAHOMA_ASSIGN_OR_RETURN(const auto store, Store::Open({.dir = dir, .log = log}));
  WriteBatch begin;
  begin.Put(Keyspace::kMeta, std::string(Store::kRestoringKey), "1");
  TAHOMA_RETURN_IF_ERROR(store->Commit(std::move(begin)));
  WriteBatch batch;
  TAHOMA_RETURN_IF_ERROR(
      VisitBackup(text, [&](Keyspace keyspace, std::string key, std::string value) {
        batch.Put(keyspace, std::move(key), std::move(value));
        if (batch.bytes() < kBatch) return absl::OkStatus();
        return store->Commit(std::exchange(batch, WriteBatch()));
      }));
  TAHOMA_RETURN_IF_ERROR(store->Commit(std::move(batch)));
  TAHOMA_RETURN_IF_ERROR(apiserver::ObjectStore::RaiseVersion(*store));
  WriteBatch end;
  end.Delete(Keyspace::kMeta, std::string(Store::kRestoringKey));
  return store->Commit(std::move(end));
}

}  // namespace tahoma::controller
