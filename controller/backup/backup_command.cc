#include "controller/backup/backup_command.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/backup/backup.h"
#include "lib/base/files.h"
#include "lib/base/status.h"
#include "lib/config/parse.h"
#include "lib/kube/http_transport.h"

namespace tahoma::controller {
namespace {

constexpr std::size_t kLineBytesMost = 64UL << 20U;
constexpr std::size_t kBackupBytesMost = 64UL << 30U;
constexpr std::string_view kTarget = "/v1/backup";

struct BackupOptions {
  std::string file;
  std::string admin_url;
  std::string token_file;
  std::string ca_file;
  std::string data_dir;
};

void LogLine(const std::string& line) { fmt::print(stderr, "controller: {}\n", line); }

config::Spec BackupSpec(BackupOptions& options) {
  config::Spec spec({.program = "controller backup",
                     .kind = "",
                     .summary = "Writes the content of a controller's store to a file."});
  spec.Word("FILE", &options.file, "the backup, which is replaced as a whole",
            config::Spec::Need::kRequired);
  spec.String("adminUrl", &options.admin_url, "admin API of a standalone controller that runs");
  spec.String("tokenFile", &options.token_file, "bearer token of the admin API");
  spec.String("caFile", &options.ca_file, "CA of the admin API's certificate, PEM");
  spec.String("dataDir", &options.data_dir, "or the folder of a controller that does not run");
  return spec;
}

config::Spec RestoreSpec(BackupOptions& options) {
  config::Spec spec({.program = "controller restore",
                     .kind = "",
                     .summary = "Makes a standalone controller's store of a backup."});
  spec.Word("FILE", &options.file, "the backup", config::Spec::Need::kRequired);
  spec.String("dataDir", &options.data_dir, "folder to make; it must be empty or absent");
  return spec;
}

absl::StatusOr<std::string> Fetch(const BackupOptions& options) {
  kube::ServerAccess access;
  access.server = options.admin_url;
  access.token_file = options.token_file;
  if (!options.ca_file.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(access.ca_pem, ReadFile(options.ca_file));
  }
  kube::HttpLimits limits;
  limits.max_line_bytes = kLineBytesMost;
  TAHOMA_ASSIGN_OR_RETURN(const auto transport,
                          kube::HttpTransport::Create(access, limits, LogLine));
  std::string text;
  const auto answer = transport->Stream(
      {.method = "GET", .target = std::string(kTarget)},
      [&](std::string_view line) {
        text.append(line).append("\n");
        return text.size() < kBackupBytesMost;
      },
      limits.request_timeout);
  if (!answer.ok()) return answer.status();
  if (answer->status != 200) {
    return FailedPrecondition("{}{} answered {}: {}", options.admin_url, kTarget, answer->status,
                              answer->body);
  }
  return text;
}

absl::StatusOr<std::string> ReadFolder(const std::string& dir) {
  if (!std::filesystem::exists(dir + "/CURRENT")) return NotFound("{} holds no store", dir);
  TAHOMA_ASSIGN_OR_RETURN(const auto store,
                          Store::Open({.dir = dir, .only_copy = true, .log = LogLine}));
  TAHOMA_ASSIGN_OR_RETURN(auto moment, store->Freeze());
  BackupWriter writer(std::move(moment));
  std::string text;
  for (bool more = true; more;) {
    TAHOMA_ASSIGN_OR_RETURN(more, writer.Append(text));
  }
  return text;
}

absl::Status Backup(const BackupOptions& options) {
  if (options.admin_url.empty() == options.data_dir.empty()) {
    return InvalidArgument("say either --admin-url or --data-dir");
  }
  TAHOMA_ASSIGN_OR_RETURN(const std::string text,
                          options.data_dir.empty() ? Fetch(options) : ReadFolder(options.data_dir));
  TAHOMA_RETURN_IF_ERROR(CheckBackup(text));
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(options.file, text, 0600));
  LogLine(fmt::format("{} bytes in {}", text.size(), options.file));
  return absl::OkStatus();
}

absl::Status Restore(const BackupOptions& options) {
  if (options.data_dir.empty()) return InvalidArgument("say --data-dir, a folder to make");
  TAHOMA_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file, kBackupBytesMost));
  TAHOMA_RETURN_IF_ERROR(Annotate(RestoreBackup(text, options.data_dir, LogLine), options.file));
  LogLine(fmt::format("{} is restored into {}", options.file, options.data_dir));
  return absl::OkStatus();
}

}  // namespace

std::optional<int> RunBackupCommand(int argc, const char* const* argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb != "backup" && verb != "restore") return std::nullopt;
  BackupOptions options;
  const config::Spec spec = verb == "backup" ? BackupSpec(options) : RestoreSpec(options);
  if (const std::optional<int> exit = config::Parse(argc - 1, argv + 1, spec)) return exit;
  const absl::Status status = verb == "backup" ? Backup(options) : Restore(options);
  if (status.ok()) return 0;
  LogLine(std::string(Message(status)));
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

Route BackupRoute(const Store& store) {
  const auto read = [&store](const rest::Request& /*request*/) {
    auto moment = store.Freeze();
    if (!moment.ok()) return rest::Response::FromStatus(moment.status());
    // A stream that ends without its last line tells its reader that it failed.
    auto writer = std::make_shared<BackupWriter>(*std::move(moment));
    return rest::Response::Stream("application/x-ndjson",
                                  [writer](std::string& out, std::chrono::milliseconds /*wait*/) {
                                    const absl::StatusOr<bool> more = writer->Append(out);
                                    return more.ok() && *more;
                                  });
  };
  return {.path = std::string(kTarget),
          .id = "getBackup",
          .summary = "The content of the store as of now, line by line; standalone only.",
          .answer = R"({"type":"string"})",
          .answer_type = "application/x-ndjson",
          .handler = read};
}

}  // namespace tahoma::controller
