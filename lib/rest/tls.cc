#include "lib/rest/tls.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

std::string LastError() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unreadable" : reason;
}

std::vector<std::string> Entries(X509_NAME* name, int nid) {
  std::vector<std::string> values;
  for (int at = X509_NAME_get_index_by_NID(name, nid, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, nid, at)) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (size < 0) continue;
    values.emplace_back(text, text + size);
    OPENSSL_free(text);
  }
  return values;
}

}  // namespace

absl::StatusOr<SslContext> MakeServerContext(const TlsOptions& options) {
  SslContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return Internal("TLS cannot be set up: {}", LastError());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A resumed session would skip the client's certificate.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.cert_file.c_str()) != 1) {
    return InvalidArgument("TLS certificate {}: {}", options.cert_file, LastError());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument("TLS key {} (for {}): {}", options.key_file, options.cert_file,
                           LastError());
  }
  if (options.client_ca_file.empty()) return context;
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(options.client_ca_file.c_str());
  if (names == nullptr ||
      SSL_CTX_load_verify_locations(context.get(), options.client_ca_file.c_str(), nullptr) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return InvalidArgument("client CA {}: {}", options.client_ca_file, LastError());
  }
  SSL_CTX_set_client_CA_list(context.get(), names);
  SSL_CTX_set_verify(
      context.get(),
      SSL_VERIFY_PEER | (options.require_client_certificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
      nullptr);
  return context;
}

std::optional<ClientSubject> SubjectOf(const SSL& ssl) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(&ssl),
                                                                X509_free);
  if (!certificate || SSL_get_verify_result(&ssl) != X509_V_OK) return std::nullopt;
  X509_NAME* name = X509_get_subject_name(certificate.get());
  ClientSubject subject;
  const std::vector<std::string> common_names = Entries(name, NID_commonName);
  if (!common_names.empty()) subject.common_name = common_names.front();
  subject.organizations = Entries(name, NID_organizationName);
  return subject;
}

}  // namespace tahoma::rest
