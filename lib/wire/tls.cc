#include "lib/wire/tls.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "lib/base/status.h"
#include "lib/base/tls.h"

namespace tahoma::wire {
namespace {

absl::StatusOr<SslContext> MakeContext(const TlsFiles& files) {
  TAHOMA_ASSIGN_OR_RETURN(SslContext context, NewSslContext(TLS_method(), TLS1_3_VERSION));
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  TAHOMA_RETURN_IF_ERROR(UseCertificate(*context, files.cert_file, files.key_file));
  if (SSL_CTX_load_verify_locations(context.get(), files.ca_file.c_str(), nullptr) != 1) {
    return InvalidArgument("TLS authority {}: {}", files.ca_file, LastTlsError());
  }
  return context;
}

}  // namespace

void FreeSsl::operator()(ssl_st* ssl) const { SSL_free(ssl); }

absl::StatusOr<Tls> Tls::Open(TlsFiles files) {
  TAHOMA_RETURN_IF_ERROR(MakeContext(files).status());
  return Tls(std::move(files));
}

absl::StatusOr<SslSession> Tls::NewSession(TlsRole role, int fd) const {
  TAHOMA_ASSIGN_OR_RETURN(const SslContext context, MakeContext(files_));
  SslSession session(SSL_new(context.get()));  // the session keeps the context alive
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
