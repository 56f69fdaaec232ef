#include "lib/wire/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "lib/base/status.h"

namespace tahoma::wire {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

absl::StatusOr<Context> MakeContext(const TlsFiles& files) {
  Context context(SSL_CTX_new(TLS_method()));
  if (!context) return Internal("TLS cannot be set up: {}", LastTlsError());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A resumed session would skip the certificates.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.cert_file.c_str()) != 1) {
    return InvalidArgument("TLS certificate {}: {}", files.cert_file, LastTlsError());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument("TLS key {} (for {}): {}", files.key_file, files.cert_file,
                           LastTlsError());
  }
  if (SSL_CTX_load_verify_locations(context.get(), files.ca_file.c_str(), nullptr) != 1) {
    return InvalidArgument("TLS authority {}: {}", files.ca_file, LastTlsError());
  }
  return context;
}

}  // namespace

void FreeSsl::operator()(ssl_st* ssl) const { SSL_free(ssl); }

std::string LastTlsError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unreadable" : reason;
}

absl::StatusOr<Tls> Tls::Open(TlsFiles files) {
  TAHOMA_RETURN_IF_ERROR(MakeContext(files).status());
  return Tls(std::move(files));
}

absl::StatusOr<SslSession> Tls::NewSession(TlsRole role, int fd) const {
  TAHOMA_ASSIGN_OR_RETURN(const Context context, MakeContext(files_));
  SslSession session(SSL_new(context.get()));  // which keeps the context
  if (!session || SSL_set_fd(session.get(), fd) != 1) {
    return Internal("TLS cannot be set up: {}", LastTlsError());
  }
  if (role == TlsRole::kClient) {
    SSL_set_connect_state(session.get());
  } else {
    SSL_set_accept_state(session.get());
  }
  return session;
}

bool IsCertifiedAs(const ssl_st& ssl, std::string_view name) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(&ssl),
                                                                X509_free);
  if (!certificate || SSL_get_verify_result(&ssl) != X509_V_OK || name.empty()) return false;
  constexpr unsigned kFlags = X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  return X509_check_host(certificate.get(), name.data(), name.size(), kFlags, nullptr) == 1;
}

}  // namespace tahoma::wire
