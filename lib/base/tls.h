// The OpenSSL calls of all our TLS endpoints: contexts, certificates and error texts.
//
//   TAHOMA_ASSIGN_OR_RETURN(auto context, NewSslContext(TLS_server_method(), TLS1_2_VERSION));
//   TAHOMA_RETURN_IF_ERROR(UseCertificate(*context, "tls.crt", "tls.key"));
//
// Scope: code shared by HTTP (lib/rest) and our own protocols (lib/wire). Each endpoint decides for
// itself whom to trust.
//
// Thread safety: a finished context may serve many connections; errors belong to a thread.

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

// Writes may be partial, and no session is resumed: resuming would skip the certificates.
absl::StatusOr<SslContext> NewSslContext(const ssl_method_st* method, int version_least);

// PEM files. kInvalidArgument names a missing or wrong file.
absl::Status UseCertificate(ssl_ctx_st& context, const std::string& cert_file,
                            const std::string& key_file);

// Returns the oldest error of OpenSSL's queue, and empties the queue.
std::string LastTlsError();

}  // namespace tahoma
