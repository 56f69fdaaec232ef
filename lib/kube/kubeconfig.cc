#include "lib/kube/kubeconfig.h"

#include <absl/strings/escaping.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "lib/base/ascii.h"
#include "lib/base/host_port.h"
#include "lib/base/json.h"
#include "lib/base/status.h"
#include "lib/kube/object.h"
#include "lib/kube/yaml.h"

namespace tahoma::kube {
namespace {

using json = Json;
namespace fs = std::filesystem;

constexpr std::size_t kFileBytesMax = 4 << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || fs::is_directory(path)) return NotFound("cannot read {}", path);
  std::string text;
  std::array<char, 16 << 10> piece;
  while (file.read(piece.data(), piece.size()) || file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > kFileBytesMax) {
      return InvalidArgument("{} is larger than {} bytes", path, kFileBytesMax);
    }
  }
  return text;
}

struct ConfigFile {
  std::string path;
  json content;
};

// An entry of "clusters", "users" or "contexts".
struct Entry {
  const ConfigFile* file = nullptr;
  const json* value = nullptr;

  std::string Text(std::string_view key) const { return std::string(StringAt(*value, {key})); }
  bool Flag(std::string_view key) const {
    const json* at = ValueAt(*value, {key});
    return at != nullptr && *at == true;
  }
  // Returns whether the key has a value that is neither null nor empty.
  bool Has(std::string_view key) const {
    const json* at = ValueAt(*value, {key});
    return at != nullptr && !at->empty() && *at != "";
  }
  // Returns the path in `key`, relative to the file's folder; empty without the key.
  std::string Path(std::string_view key) const {
    const std::string text = Text(key);
    return text.empty() ? text : (fs::path(file->path).parent_path() / text).string();
  }
  // Returns the content of `key`-data, which is base64, or else of the file in `key`.
  absl::StatusOr<std::string> Content(const std::string& key) const {
    const std::string encoded = Text(key + "-data");
    if (encoded.empty()) {
      const std::string path = Path(key);
      if (path.empty()) return std::string();
      return ReadFile(path);
    }
    std::string decoded;
    if (!absl::Base64Unescape({encoded.data(), encoded.size()}, &decoded)) {
      return InvalidArgument("{}: {}-data is not base64", file->path, key);
    }
    return decoded;
  }
};

absl::StatusOr<std::vector<ConfigFile>> ReadFiles(std::string_view paths) {
  std::vector<ConfigFile> files;
  const bool several = paths.find(':') != std::string_view::npos;
  while (!paths.empty()) {
    const std::string path(paths.substr(0, paths.find(':')));
    paths.remove_prefix(std::min(paths.size(), path.size() + 1));
    if (path.empty()) continue;
    const absl::StatusOr<std::string> text = ReadFile(path);
    if (absl::IsNotFound(text.status()) && several) continue;
    TAHOMA_RETURN_IF_ERROR(Annotate(text.status(), "kubeconfig"));
    absl::StatusOr<json> content = YamlToJson(*text);
    if (!content.ok()) return Annotate(content.status(), path);
    if (!content->is_object()) return InvalidArgument("{} is not a kubeconfig", path);
    files.push_back({path, *std::move(content)});
  }
  if (files.empty()) return NotFound("no kubeconfig file can be read");
  return files;
}

absl::StatusOr<Entry> Find(const std::vector<ConfigFile>& files, std::string_view list,
                           std::string_view kind, std::string_view name) {
  for (const ConfigFile& file : files) {
    const json* entries = ValueAt(file.content, {list});
    if (entries == nullptr || !entries->is_array()) continue;
    for (const json& entry : *entries) {
      if (StringAt(entry, {"name"}) != name) continue;
      const json* value = ValueAt(entry, {kind});
      if (value == nullptr || !value->is_object()) {
        return InvalidArgument("{}: the {} \"{}\" is empty", file.path, kind, name);
      }
      return Entry{&file, value};
    }
  }
  return NotFound("kubeconfig {}: there is no {} \"{}\"", files.front().path, kind, name);
}

// The cluster as a credential program is shown it.
json ClusterInfo(const Entry& cluster, const ServerAccess& access) {
  json info = {{"server", access.server}};
  if (!access.tls_server_name.empty()) info["tls-server-name"] = access.tls_server_name;
  if (access.insecure_skip_tls_verify) info["insecure-skip-tls-verify"] = true;
  if (!access.ca_pem.empty()) {
    std::string encoded;
    absl::Base64Escape(access.ca_pem, &encoded);
    info["certificate-authority-data"] = encoded;
  }
  for (const json& extension : ListAt(*cluster.value, {"extensions"})) {
    if (StringAt(extension, {"name"}) != "client.authentication.k8s.io/exec") continue;
    if (const json* config = ValueAt(extension, {"extension"})) info["config"] = *config;
  }
  return info;
}

// Runs the program of the user's exec, if there is one and somebody runs programs.
absl::Status AddExec(const Entry& user, std::string_view name, const Entry& cluster,
                     const CredentialRunner& runner, ServerAccess& access) {
  if (!user.Has("exec")) return absl::OkStatus();
  if (runner.run == nullptr) {
    return Unimplemented(
        "{}: the user \"{}\" gets its credentials from a program (exec), which only kubectl tahoma "
        "runs; use a token or a client certificate",
        user.file->path, name);
  }
  const auto annotated = [&](const absl::Status& status) {
    return Annotate(status, fmt::format("{}: the user \"{}\"", user.file->path, name));
  };
  const auto call = CredentialCallOf(*ValueAt(*user.value, {"exec"}),
                                     fs::path(user.file->path).parent_path().string(),
                                     ClusterInfo(cluster, access), runner.terminal);
  if (!call.ok()) return annotated(call.status());
  const absl::StatusOr<std::string> printed = runner.run(*call);
  if (!printed.ok()) return annotated(printed.status());
  return annotated(AddCredential(*call, *printed, access));
}

// Whom the user acts as. If these were passed over, every request would be made with the rights of
// the user behind them.
void AddImpersonation(const Entry& user, ServerAccess& access) {
  access.impersonate_user = user.Text("as");
  access.impersonate_uid = user.Text("as-uid");
  access.impersonate_groups = StringsAt(*user.value, {"as-groups"});
  const json* const extra = ValueAt(*user.value, {"as-user-extra"});
  if (extra == nullptr || !extra->is_object()) return;
  for (const auto& [key, values] : MembersOf(*extra)) {
    access.impersonate_extra.emplace_back(key, StringsAt(*extra, {key}));
  }
}

absl::Status AddUser(const Entry& user, std::string_view name, ServerAccess& access) {
  if (user.Has("auth-provider")) {
    return Unimplemented(
        "{}: the user \"{}\" gets its credentials from a program (auth-provider), which is not "
        "supported; use a token or a client certificate",
        user.file->path, name);
  }
  if (user.Has("username")) {
    return Unimplemented("{}: the user \"{}\" has a password; use a token or a client certificate",
                         user.file->path, name);
  }
  AddImpersonation(user, access);
  TAHOMA_ASSIGN_OR_RETURN(access.client_cert_pem, user.Content("client-certificate"));
  TAHOMA_ASSIGN_OR_RETURN(access.client_key_pem, user.Content("client-key"));
  if (access.client_cert_pem.empty() != access.client_key_pem.empty()) {
    return InvalidArgument("{}: the user \"{}\" has a {} without a {}", user.file->path, name,
                           access.client_key_pem.empty() ? "client-certificate" : "client-key",
                           access.client_key_pem.empty() ? "client-key" : "client-certificate");
  }
  access.token = user.Text("token");
  // As in client-go, a token beside a token file is used while the file cannot be read; here the
  // file simply wins.
  access.token_file = user.Path("tokenFile");
  return absl::OkStatus();
}

struct Chosen {
  Entry context;
  Entry cluster;
  std::string cluster_name;
};

// Finds the context of that name, or the current one when it is empty, and its cluster.
absl::StatusOr<Chosen> Choose(const std::vector<ConfigFile>& files, std::string_view context) {
  std::string name(context);
  for (const ConfigFile& file : files) {
    if (name.empty()) name = std::string(StringAt(file.content, {"current-context"}));
  }
  if (name.empty()) return NotFound("kubeconfig {}: no current-context", files.front().path);
  TAHOMA_ASSIGN_OR_RETURN(const Entry chosen, Find(files, "contexts", "context", name));
  std::string cluster_name = chosen.Text("cluster");
  if (cluster_name.empty()) {
    return InvalidArgument("{}: the context \"{}\" names no cluster", chosen.file->path, name);
  }
  TAHOMA_ASSIGN_OR_RETURN(const Entry cluster, Find(files, "clusters", "cluster", cluster_name));
  return Chosen{chosen, cluster, std::move(cluster_name)};
}

}  // namespace

absl::StatusOr<std::string> KubeconfigExtension(std::string_view paths, std::string_view context,
                                                std::string_view name, std::string_view field) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<ConfigFile> files, ReadFiles(paths));
  TAHOMA_ASSIGN_OR_RETURN(const Chosen chosen, Choose(files, context));
  for (const json& extension : ListAt(*chosen.cluster.value, {"extensions"})) {
    if (StringAt(extension, {"name"}) == name) {
      return std::string(StringAt(extension, {"extension", field}));
    }
  }
  return std::string();
}

absl::StatusOr<ServerAccess> LoadKubeconfig(std::string_view paths, std::string_view context,
                                            const CredentialRunner& runner) {
  TAHOMA_ASSIGN_OR_RETURN(const std::vector<ConfigFile> files, ReadFiles(paths));
  TAHOMA_ASSIGN_OR_RETURN(const Chosen found, Choose(files, context));
  const Entry &chosen = found.context, &cluster = found.cluster;
  const std::string &cluster_name = found.cluster_name, user_name = chosen.Text("user");

  ServerAccess access{.server = cluster.Text("server")};
  if (access.server.empty()) {
    return InvalidArgument("{}: the cluster \"{}\" has no server", cluster.file->path,
                           cluster_name);
  }
  if (cluster.Has("proxy-url")) {
    return Unimplemented(
        "{}: the cluster \"{}\" is behind a proxy (proxy-url), which is not supported",
        cluster.file->path, cluster_name);
  }
  access.insecure_skip_tls_verify = cluster.Flag("insecure-skip-tls-verify");
  access.tls_server_name = cluster.Text("tls-server-name");
  TAHOMA_ASSIGN_OR_RETURN(access.ca_pem, cluster.Content("certificate-authority"));
  if (access.insecure_skip_tls_verify && !access.ca_pem.empty()) {
    return InvalidArgument(
        "{}: the cluster \"{}\" has a certificate authority and insecure-skip-tls-verify; only one "
        "can hold",
        cluster.file->path, cluster_name);
  }
  const std::string ns = chosen.Text("namespace");
  if (!ns.empty()) access.default_namespace = ns;
  if (user_name.empty()) return access;
  TAHOMA_ASSIGN_OR_RETURN(const Entry user, Find(files, "users", "user", user_name));
  TAHOMA_RETURN_IF_ERROR(AddUser(user, user_name, access));
  TAHOMA_RETURN_IF_ERROR(AddExec(user, user_name, cluster, runner, access));
  return access;
}

absl::StatusOr<ServerAccess> InClusterAccess(std::string_view host, std::string_view port,
                                             const std::string& folder) {
  if (host.empty() || port.empty()) {
    return FailedPrecondition(
        "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
        "give a kubeconfig");
  }
  ServerAccess access{.server = "https://" + JoinHostPort(host, port)};
  absl::StatusOr<std::string> ca = ReadFile(folder + "/ca.crt");
  if (!ca.ok())
    return FailedPrecondition("not a pod with a service account: {}", Message(ca.status()));
  access.ca_pem = *std::move(ca);
  access.token_file = folder + "/token";
  const absl::StatusOr<std::string> token = ReadFile(access.token_file);
  if (!token.ok()) {
    return FailedPrecondition("not a pod with a service account: {}", Message(token.status()));
  }
  const absl::StatusOr<std::string> ns = ReadFile(folder + "/namespace");
  if (ns.ok()) {
    const std::string_view name = Trimmed(*ns, " \t\r\n");
    if (!name.empty()) access.default_namespace = std::string(name);
  }
  return access;
}

absl::StatusOr<ServerAccess> FindAccess(
    std::string_view paths, absl::FunctionRef<std::string(const char* name)> environment) {
  if (!paths.empty()) return LoadKubeconfig(paths);
  return InClusterAccess(environment("KUBERNETES_SERVICE_HOST"),
                         environment("KUBERNETES_SERVICE_PORT"));
}

}  // namespace tahoma::kube
