// Kubeconfig files: whatever the text, an answer; what is accepted names a server, and an error
// names the file.

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/status.h"
#include "lib/kube/kubeconfig.h"
#include "tests/fuzz/fuzz_target.h"

std::vector<std::string> FuzzSeeds() {
  return {
      "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
      "clusters: [{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}]\n"
      "users: [{name: u, user: {token: secret}}]\n"
      "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n",
      "clusters:\n- name: c\n  cluster:\n    server: http://a:1\n"
      "    certificate-authority-data: bm90IGEgY2VydGlmaWNhdGU=\n"
      "    insecure-skip-tls-verify: true\n    tls-server-name: a\n"
      "contexts:\n- {name: x, context: {cluster: c, user: u}}\ncurrent-context: x\n"
      "users:\n- name: u\n  user:\n    client-certificate-data: YQ==\n"
      "    client-key-data: YQ==\n    tokenFile: token\n",
      R"({"clusters":[{"name":"c","cluster":{"server":"http://a:1"}}],"contexts":[{"name":"x",)"
      R"("context":{"cluster":"c","user":"u"}}],"current-context":"x","users":[{"name":"u",)"
      R"("user":{"exec":{"command":"aws"}}}]})"};
}

void FuzzOne(std::string_view input) {
  // In memory: a disk would wait for its syncs.
  static const int file = memfd_create("kubeconfig", MFD_CLOEXEC);
  TAHOMA_CHECK(file >= 0 && ftruncate(file, 0) == 0);
  TAHOMA_CHECK(pwrite(file, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const auto access = tahoma::kube::LoadKubeconfig(path);
  if (access.ok()) {
    TAHOMA_CHECK(!access->server.empty());
    TAHOMA_CHECK(access->client_cert_pem.empty() == access->client_key_pem.empty());
  } else {
    TAHOMA_CHECK(!tahoma::Message(access.status()).empty());
  }
}
