// The OpenSSL calls that all our TLS endpoints share: contexts, certificates and error texts.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto context, NewSslContext(TLS_server_method(), TLS1_2_VERSION));
//   TAHOMA_RETURN_IF_ERROR(UseCertificate(*context, "tls.crt", "tls.key"));
//
// Scope: code that HTTP (lib/rest) and our own protocols (lib/wire) share. Each endpoint decides
// for itself whom it trusts.
//
// Thread safety: a context may be used by many connections once it is made; errors are a thread's.

#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_method_st;

namespace tahoma {

struct FreeSslContext {
  void operator()(ssl_ctx_st* context) const;
};
using SslContext = std::unique_ptr<ssl_ctx_st, FreeSslContext>;

// Writes may be partial, and no session is resumed: a resumed one would skip the certificates.
absl::StatusOr<SslContext> NewSslContext(const ssl_method_st* method, int version_least);

// PEM files. kInvalidArgument names the one that is missing or does not fit.
absl::Status UseCertificate(ssl_ctx_st& context, const std::string& cert_file,
                            const std::string& key_file);

// The oldest error of OpenSSL's queue, which is empty afterwards.
std::string LastTlsError();

}  // namespace tahoma
