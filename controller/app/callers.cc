#include "controller/app/callers.h"

#include <chrono>
#include <utility>
#include <vector>

#include "controller/access/identity_file.h"
#include "lib/base/files.h"
#include "lib/base/status.h"

namespace tahoma::controller {
namespace {

constexpr std::chrono::seconds kPollPeriod{1};

// Tokens of many: unlike a token file, which a cluster may mount with its usual mode.
absl::StatusOr<std::string> ReadIdentityFile(const std::string& path) {
  std::string open_to_others;
  TAHOMA_ASSIGN_OR_RETURN(std::string text, ReadSecretFile(path, [&](const std::string& line) {
                            open_to_others = line;
                          }));
  if (!open_to_others.empty()) return PermissionDenied("{}", open_to_others);
  if (text.size() > kIdentityFileBytesMost) {
    return InvalidArgument("{} is larger than {} bytes", path, kIdentityFileBytesMost);
  }
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Callers>> Callers::Open(const Options& options,
                                                       rest::Metrics& metrics, Log log) {
  if (!options.token_file.empty()) {  // once, not at every look
    const auto token = ReadTokenFile(options.token_file, log);
    if (!token.ok()) return Annotate(token.status(), "tokenFile");
  }
  std::unique_ptr<Callers> callers(new Callers(options, metrics, std::move(log)));
  TAHOMA_ASSIGN_OR_RETURN(callers->texts_, callers->Read());
  TAHOMA_ASSIGN_OR_RETURN(AccessTable table, callers->TableOf(callers->texts_));
  callers->access_ = std::make_shared<AccessControl>(std::move(table));
  if (!options.audit_file.empty()) {
    auto file = AuditFile::Open(options.audit_file, metrics, callers->log_);
    if (!file.ok()) return Annotate(file.status(), "auditFile");
    callers->audit_file_ = *std::move(file);
  }
  return callers;
}

Callers::Callers(const Options& options, rest::Metrics& metrics, Log log)
    : token_file_(options.token_file),
      identity_file_(options.identity_file),
      certificates_(!options.client_ca_file.empty()),
      audit_required_(options.audit_required),
      log_(std::move(log)),
      failures_(metrics.AddCounter("tahoma_identity_reload_failures_total",
                                   "Changes of tokenFile or identityFile that could not be used.")),
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
  auto table = texts.ok() ? TableOf(*texts) : absl::StatusOr<AccessTable>(texts.status());
  if (table.ok()) {
    access_->Replace(*std::move(table));
    texts_ = *std::move(texts);
    trouble_.clear();
    stale_.Set(0);
    log_("the identities were read again and are in force");
    return;
  }
  stale_.Set(1);
  std::string trouble(Message(table.status()));
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
    auto text = ReadIdentityFile(identity_file_);
    if (!text.ok()) return Annotate(text.status(), "identityFile");
    texts.identities = *std::move(text);
  }
  return texts;
}

absl::StatusOr<AccessTable> Callers::TableOf(const Texts& texts) const {
  std::vector<IdentityEntry> entries;
  if (!identity_file_.empty()) {
    TAHOMA_ASSIGN_OR_RETURN(entries, ParseIdentityFile(texts.identities, identity_file_));
  }
  // Last, so that errors count the entries of the file.
  if (!token_file_.empty()) entries.push_back(AdminOfToken(texts.token));
  return AccessTable::Make(entries, certificates_);
}

}  // namespace tahoma::controller
