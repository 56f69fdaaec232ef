// Who may be at the other end of a TCP connection: TLS in which both ends show a certificate.
//
//   absl::StatusOr<Tls> tls = Tls::Open({.cert_file = "tls.crt", .key_file = "tls.key",
//                                        .ca_file = "ca.crt"});
//   (*connection)->StartTls(*tls, TlsRole::kClient, 5s);     // lib/wire/socket.h
//   if (!(*connection)->Proves("node-1")) …
//
// Files are read again for each connection, so that certificates may be renewed while programs run
// (cert-manager writes new ones into the mounted Secret).
//
// Scope: OpenSSL sessions. Moving bytes is socket.h, what a name may do its caller's business.
//
// Thread safety: a value; NewSession from any thread.

#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

struct ssl_st;

namespace tahoma::wire {

enum class TlsRole : std::uint8_t { kClient, kServer };

// PEM files. The certificate is its program's own and for clients and servers; the authority's is
// that of the peers'.
struct TlsFiles {
  std::string cert_file = {};
  std::string key_file = {};
  std::string ca_file = {};
};

struct FreeSsl {
  void operator()(ssl_st* ssl) const;
};
using SslSession = std::unique_ptr<ssl_st, FreeSsl>;

class Tls {
 public:
  // kInvalidArgument names the file that is missing or does not fit.
  static absl::StatusOr<Tls> Open(TlsFiles files);

  // Over a connected socket that does not block; TLS 1.3. Fails as Open.
  absl::StatusOr<SslSession> NewSession(TlsRole role, int fd) const;

 private:
  explicit Tls(TlsFiles files) : files_(std::move(files)) {}

  TlsFiles files_;
};

// Whether the certificate that the peer has shown is for that DNS name: one of its subject
// alternative names, without wildcards.
bool IsCertifiedAs(const ssl_st& ssl, std::string_view name);

}  // namespace tahoma::wire
