#include "lib/base/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "lib/base/status.h"

namespace tahoma {

void FreeSslContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

absl::StatusOr<SslContext> NewSslContext(const ssl_method_st* method, int version_least) {
  SslContext context(SSL_CTX_new(method));
  if (!context) return Internal("TLS cannot be set up: {}", LastTlsError());
  SSL_CTX_set_min_proto_version(context.get(), version_least);
  // Thousands of connections are idle: none keeps the 34 KiB of its buffers then.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  return context;
}

absl::Status UseCertificate(ssl_ctx_st& context, const std::string& cert_file,
                            const std::string& key_file) {
  if (SSL_CTX_use_certificate_chain_file(&context, cert_file.c_str()) != 1) {
    return InvalidArgument("TLS certificate {}: {}", cert_file, LastTlsError());
  }
  if (SSL_CTX_use_PrivateKey_file(&context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument("TLS key {} (for {}): {}", key_file, cert_file, LastTlsError());
  }
  return absl::OkStatus();
}

std::string LastTlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unreadable" : reason;
}

}  // namespace tahoma
