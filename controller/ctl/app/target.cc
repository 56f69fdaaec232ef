#include "controller/ctl/app/target.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "controller/ctl/app/credential_program.h"
#include "controller/ctl/paint.h"
#include "controller/ctl/table.h"
#include "controller/model/admin_address.h"
#include "lib/base/environment.h"
#include "lib/base/files.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/kubeconfig.h"

namespace tahoma::controller {
namespace {

// Returns the address of the admin API: as given, from TAHOMA_ADMIN, or as the kubeconfig says.
absl::StatusOr<std::string> AdminOf(const AdminFlags& flags, const CommandTarget& target) {
  if (!flags.address.empty()) return flags.address;
  if (std::string address = FromEnvironment("TAHOMA_ADMIN"); !address.empty()) return address;
  TAHOMA_ASSIGN_OR_RETURN(std::string server,
                          kube::KubeconfigExtension(KubeconfigPaths(target), target.context,
                                                    kAdminExtension, kAdminExtensionServer));
  if (!server.empty()) return server;
  return NotFound(
      "the address of the controller's admin API is not known: give --admin or TAHOMA_ADMIN, such "
      "as http://127.0.0.1:8081 of kubectl port-forward");
}

}  // namespace

void DeclareTarget(config::Spec& spec, CommandTarget& target) {
  spec.String("kubeconfig", &target.kubeconfig, "kubeconfig; empty: KUBECONFIG, ~/.kube/config");
  spec.String("context", &target.context, "context of the kubeconfig; empty: the current one");
  spec.String("server", &target.server, "URL of the API server; empty: as the kubeconfig says");
  spec.Alias("-s", "server");
  spec.String("namespace", &target.ns, "namespace; empty: the context's");
  spec.Alias("-n", "namespace");
  spec.String("as", &target.user, "act as this user, if the server lets you");
  spec.Strings("asGroup", &target.groups, "with --as: act as a member of this group");
  spec.String("asUid", &target.uid, "with --as: act as the user of this uid");
  spec.String("color", &target.color, "colours: on a terminal (unless NO_COLOR is set), or as said",
              {"auto", "always", "never"});
}

std::string KubeconfigPaths(const CommandTarget& target) {
  if (!target.kubeconfig.empty()) return target.kubeconfig;
  if (std::string paths = FromEnvironment("KUBECONFIG"); !paths.empty()) return paths;
  return FromEnvironment("HOME") + "/.kube/config";
}

absl::StatusOr<kube::ServerAccess> AccessOf(const CommandTarget& target) {
  TAHOMA_ASSIGN_OR_RETURN(
      kube::ServerAccess access,
      kube::LoadKubeconfig(KubeconfigPaths(target), target.context,
                           {.run = RunCredentialProgram, .terminal = isatty(STDIN_FILENO) == 1}));
  if (!target.server.empty()) access.server = target.server;
  // As in kubectl, each flag takes the place of its own field of the kubeconfig.
  if (!target.user.empty()) access.impersonate_user = target.user;
  if (!target.uid.empty()) access.impersonate_uid = target.uid;
  if (!target.groups.empty()) access.impersonate_groups = target.groups;
  return access;
}

absl::StatusOr<std::unique_ptr<kube::HttpTransport>> Connect(const CommandTarget& target) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access, AccessOf(target));
  return kube::HttpTransport::Create(std::move(access), {}, Warn);
}

void DeclareAdmin(config::Spec& spec, AdminFlags& flags) {
  spec.String("admin", &flags.address,
              "URL of the controller's admin API; empty: TAHOMA_ADMIN, or as the kubeconfig says");
  spec.String("adminCaFile", &flags.ca_file,
              "certificates that the admin API is trusted by; empty: TAHOMA_ADMIN_CA_FILE, or "
              "those of the kubeconfig");
}

// The certificate of the admin API need not be of the cluster's authority.
absl::StatusOr<kube::ServerAccess> AdminAccess(const AdminFlags& flags,
                                               const CommandTarget& target) {
  TAHOMA_ASSIGN_OR_RETURN(kube::ServerAccess access, AccessOf(target));
  TAHOMA_ASSIGN_OR_RETURN(access.server, AdminOf(flags, target));
  const std::string file =
      flags.ca_file.empty() ? FromEnvironment("TAHOMA_ADMIN_CA_FILE") : flags.ca_file;
  if (file.empty()) return access;
  TAHOMA_ASSIGN_OR_RETURN(access.ca_pem, ReadFile(file));
  access.tls_server_name.clear();
  access.insecure_skip_tls_verify = false;
  return access;
}

void Warn(const std::string& line) { fmt::print(stderr, "kubectl-tahoma: {}\n", line); }

int Fail(const absl::Status& status) {
  Warn(std::string(Message(status)));
  return kCannot;
}

absl::Status Print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return absl::OkStatus();
  return Unavailable("cannot write to stdout: {}", std::strerror(errno));
}

int PrintText(const CommandTarget& target, std::string_view text) {
  const bool terminal = isatty(STDOUT_FILENO) == 1 && FromEnvironment("NO_COLOR").empty() &&
                        FromEnvironment("TERM") != "dumb";
  const bool painted = target.color == "always" || (target.color == "auto" && terminal);
  const absl::Status printed = Print(painted ? Painted(text) : text);
  return printed.ok() ? 0 : Fail(printed);
}

int PrintValue(const Json& value, std::string_view form) {
  const absl::Status printed = Print(form == "yaml" ? YamlText(value) : value.dump(2) + "\n");
  return printed.ok() ? 0 : Fail(printed);
}

}  // namespace tahoma::controller
