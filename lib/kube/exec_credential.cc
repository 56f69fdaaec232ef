#include "lib/kube/exec_credential.h"

#include <filesystem>

#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/json_writer.h"
#include "lib/kube/object.h"

namespace tahoma::kube {
namespace {

constexpr std::string_view kCredentialV1 = "client.authentication.k8s.io/v1";
constexpr std::string_view kCredentialBeta = "client.authentication.k8s.io/v1beta1";
constexpr std::string_view kExecInfo = "KUBERNETES_EXEC_INFO";

absl::StatusOr<bool> MayAsk(const Json& exec, std::string_view command, bool terminal) {
  const std::string_view mode = StringAt(exec, {"interactiveMode"});
  if (mode == "Never") return false;
  if (mode == "Always" && !terminal) {
    return FailedPrecondition(
        "the program {} needs a terminal (interactiveMode: Always), and there is none", command);
  }
  if (mode.empty() || mode == "IfAvailable" || mode == "Always") return terminal;
  return InvalidArgument(
      "interactiveMode of the program {} is \"{}\"; Never, IfAvailable or Always is right", command,
      mode);
}

}  // namespace

absl::StatusOr<CredentialCall> CredentialCallOf(const Json& exec, const std::string& folder,
                                                const Json& cluster, bool terminal) {
  CredentialCall call{.command = std::string(StringAt(exec, {"command"})),
                      .args = StringsAt(exec, {"args"}),
                      .api_version = std::string(StringAt(exec, {"apiVersion"})),
                      .install_hint = std::string(StringAt(exec, {"installHint"}))};
  if (call.command.empty()) return InvalidArgument("exec names no command");
  if (call.api_version != kCredentialV1 && call.api_version != kCredentialBeta) {
    return InvalidArgument("apiVersion of the program {} is \"{}\"; {} or {} is right",
                           call.command, call.api_version, kCredentialV1, kCredentialBeta);
  }
  TAHOMA_ASSIGN_OR_RETURN(call.interactive, MayAsk(exec, call.command, terminal));
  if (call.command.find('/') != std::string::npos) {
    call.command = (std::filesystem::path(folder) / call.command).string();
  }
  for (const Json& variable : ListAt(exec, {"env"})) {
    call.environment.emplace_back(StringAt(variable, {"name"}), StringAt(variable, {"value"}));
  }
  Json info = {{"apiVersion", call.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", call.interactive}}}};
  if (BoolAt(exec, {"provideClusterInfo"})) info["spec"]["cluster"] = cluster;
  call.environment.emplace_back(kExecInfo, JsonText(info));
  return call;
}

absl::Status AddCredential(const CredentialCall& call, std::string_view printed,
                           ServerAccess& access) {
  const Json answer = TryParseJson(printed);
  if (answer.is_discarded() || KindOf(answer) != "ExecCredential") {
    return InvalidArgument("the program {} printed no ExecCredential in JSON", call.command);
  }
  if (ApiVersionOf(answer) != call.api_version) {
    return InvalidArgument(
        "exec plugin is configured to use API version {}, plugin returned version {}",
        call.api_version, ApiVersionOf(answer));
  }
  const std::string_view token = StringAt(answer, {"status", "token"});
  const std::string_view certificate = StringAt(answer, {"status", "clientCertificateData"});
  const std::string_view key = StringAt(answer, {"status", "clientKeyData"});
  if (certificate.empty() != key.empty()) {
    return InvalidArgument(
        "the program {} printed a certificate without a key, or a key without a certificate",
        call.command);
  }
  if (token.empty() && key.empty()) {
    return InvalidArgument("the program {} printed neither a token nor a certificate with its key",
                           call.command);
  }
  access.token = std::string(token);
  access.client_cert_pem = std::string(certificate);
  access.client_key_pem = std::string(key);
  return absl::OkStatus();
}

}  // namespace tahoma::kube
