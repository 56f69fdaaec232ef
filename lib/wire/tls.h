// Mutual TLS between our own programs: both ends of a TCP connection show a certificate.
//
//   absl::StatusOr<Tls> tls = Tls::Open({.cert_file = "tls.crt", .key_file = "tls.key",
//                                        .ca_file = "ca.crt"});
//   (*connection)->StartTls(*tls, TlsRole::kClient, 5s);     // lib/wire/socket.h
//   if (!(*connection)->Proves("node-1")) …
//
// Files are read again for each connection, so that certificates may be renewed while programs run
// (cert-manager writes new ones into the mounted Secret).
//
// Scope: OpenSSL sessions. socket.h moves the bytes; the caller decides what a name may do.
//
// Thread safety: a value; NewSession may be called from any thread.

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

// PEM files. cert_file is the program's own certificate, which must be valid for clients and
// servers; ca_file holds the authority that has signed the peers' certificates.
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
  // Checks the files. kInvalidArgument names the one that is missing or does not match the others.
  static absl::StatusOr<Tls> Open(TlsFiles files);

  // Returns a TLS 1.3 session on `fd`, a connected non-blocking socket. Fails as Open does;
  // kInternal when OpenSSL cannot make a session.
  absl::StatusOr<SslSession> NewSession(TlsRole role, int fd) const;

 private:
  explicit Tls(TlsFiles files) : files_(std::move(files)) {}

  TlsFiles files_;
};

// Whether the peer's verified certificate is for that DNS name: the name must be one of the subject
// alternative names; wildcards do not count.
bool IsCertifiedAs(const ssl_st& ssl, std::string_view name);

}  // namespace tahoma::wire
