#include "controller/access/callers.h"

#include <chrono>
#include <utility>
#include <vector>

#include "controller/access/identity_file.h"
#include "lib/base/files.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::chrono::seconds kPollPeriod{1};

// Reads the secrets of many callers: other users may not read the file, unlike a token file, which
// a cluster may mount with its usual mode.
absl::StatusOr<std::string> ReadSecrets(const std::string& path, std::size_t bytes_most) {
  std::string open_to_others;
  TAHOMA_ASSIGN_OR_RETURN(std::string text, ReadSecretFile(path, [&](const std::string& line) {
                            open_to_others = line;
                          }));
  if (!open_to_others.empty()) return PermissionDenied("{}", open_to_others);
  if (text.size() > bytes_most) {
    return InvalidArgument("{} is larger than {} bytes", path, bytes_most);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Callers>> Callers::Open(const Files& files, rest::Metrics& metrics,
                                                       Log log) {
  if (!files.tokens.empty()) {  // once, not at every look
    const auto token = ReadTokenFile(files.tokens, log);
    if (!token.ok()) return Annotate(token.status(), "tokenFile");
  }
  std::unique_ptr<Callers> callers(new Callers(files, metrics, std::move(log)));
  TAHOMA_ASSIGN_OR_RETURN(Texts texts, callers->Read());
  TAHOMA_RETURN_IF_ERROR(callers->Use(std::move(texts)));
  if (!files.audit.empty()) {
    auto file = AuditFile::Open(files.audit, metrics, callers->log_);
    if (!file.ok()) return Annotate(file.status(), "auditFile");
    callers->audit_file_ = *std::move(file);
  }
  return callers;
}

Callers::Callers(const Files& files, rest::Metrics& metrics, Log log)
    : token_file_(files.tokens),
      identity_file_(files.identities),
      access_key_file_(files.access_keys),
      certificates_(files.certificates),
      audit_required_(files.audit_required),
      log_(std::move(log)),
      failures_(metrics.AddCounter(
          "tahoma_identity_reload_failures_total",
          "Changes of tokenFile, identityFile or accessKeyFile that could not be "
          "used.")),
      stale_(metrics.AddGauge("tahoma_identities_stale",
                              "1 while the identities in force are not those of the files.")) {}

Callers::~Callers() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  end_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Callers::Start() {
  thread_ = std::thread([this] {
    while (Pause()) Poll();
  });
}

bool Callers::Pause() {
  const auto deadline = CondVar::In(kPollPeriod);
  const MutexLock lock(mutex_);
  while (!ending_ && end_.WaitUntil(mutex_, deadline)) {
  }
  return !ending_;
}

void Callers::Poll() {
  if (audit_file_ != nullptr) audit_file_->Poll();
  auto texts = Read();
  if (texts.ok() && *texts == texts_) {
    if (!trouble_.empty()) log_("the identities of the files are those in force again");
    trouble_.clear();
    stale_.Set(0);
    return;
  }
  const absl::Status used = texts.ok() ? Use(*std::move(texts)) : texts.status();
  if (used.ok()) {
    trouble_.clear();
    stale_.Set(0);
    log_("the identities were read again and are in force");
    return;
  }
  stale_.Set(1);
  std::string trouble(Message(used));
  if (trouble == trouble_) return;
  trouble_ = std::move(trouble);
  failures_.Increment();
  log_(fmt::format("the identities stay as they were: {}", trouble_));
}

AuditSink Callers::audit() {
  if (audit_file_ == nullptr) {
    return {.append = [log = log_](const std::string& line) { log("audit " + line); }};
  }
  AuditSink sink{.append = [this](const std::string& line) { audit_file_->Append(line); }};
  if (audit_required_) sink.writable = [this] { return audit_file_->Writable(); };
  return sink;
}

absl::StatusOr<Callers::Texts> Callers::Read() const {
  Texts texts;
  if (!token_file_.empty()) {
    auto token = ReadTokenFile(token_file_, [](const std::string&) {});
    if (!token.ok()) return Annotate(token.status(), "tokenFile");
    texts.token = *std::move(token);
  }
  if (!identity_file_.empty()) {
    auto text = ReadSecrets(identity_file_, kIdentityFileBytesMost);
    if (!text.ok()) return Annotate(text.status(), "identityFile");
    texts.identities = *std::move(text);
  }
  if (!access_key_file_.empty()) {
    auto text = ReadSecrets(access_key_file_, AccessKeys::kFileBytesMost);
    if (!text.ok()) return Annotate(text.status(), "accessKeyFile");
    texts.access_keys = *std::move(text);
  }
  return texts;
}

absl::Status Callers::Use(Texts texts) {
  TAHOMA_ASSIGN_OR_RETURN(AccessTable table, TableOf(texts));
  std::shared_ptr<const AccessKeys> keys;
  if (!access_key_file_.empty()) {
    auto parsed = AccessKeys::Parse(texts.access_keys, access_key_file_);
    if (!parsed.ok()) return Annotate(parsed.status(), "accessKeyFile");
    keys = std::make_shared<const AccessKeys>(*std::move(parsed));
  }
  if (access_ == nullptr) {
    access_ = std::make_shared<AccessControl>(std::move(table));
  } else {
    access_->Replace(std::move(table));
  }
  texts_ = std::move(texts);
  const MutexLock lock(mutex_);
  access_keys_ = std::move(keys);
  return absl::OkStatus();
}

CurrentAccessKeys Callers::access_keys() {
  if (access_key_file_.empty()) return {};
  return [this] {
    const MutexLock lock(mutex_);
    return access_keys_;
  };
}

absl::StatusOr<AccessTable> Callers::TableOf(const Texts& texts) const {
  std::vector<IdentityEntry> entries;
  if (!identity_file_.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(entries, ParseIdentityFile(texts.identities, identity_file_));
  }
  // Last: errors count the entries of the file.
  if (!token_file_.empty()) entries.push_back(AdminOfToken(texts.token));
  return AccessTable::Make(entries, certificates_);
}

}  // namespace tahoma::controller
