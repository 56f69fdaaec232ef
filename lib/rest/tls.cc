#include "lib/rest/tls.h"

#include <openssl/x509.h>

#include "lib/base/status.h"

namespace tahoma::rest {
namespace {

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
  TAHOMA_ASSIGN_OR_RETURN(SslContext context, NewSslContext(TLS_server_method(), TLS1_2_VERSION));
  TAHOMA_RETURN_IF_ERROR(UseCertificate(*context, options.cert_file, options.key_file));
  if (options.client_ca_file.empty()) return context;
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(options.client_ca_file.c_str());
  if (names == nullptr ||
      SSL_CTX_load_verify_locations(context.get(), options.client_ca_file.c_str(), nullptr) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return InvalidArgument("client CA {}: {}", options.client_ca_file, LastTlsError());
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
