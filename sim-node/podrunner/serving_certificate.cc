#include "sim-node/podrunner/serving_certificate.h"

#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "lib/base/files.h"
#include "lib/base/freed_by.h"
#include "lib/base/status.h"

namespace tahoma::sim {
namespace {

using Key = std::unique_ptr<EVP_PKEY, FreedBy<&EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreedBy<&X509_free>>;
using Memory = std::unique_ptr<BIO, FreedBy<&BIO_free>>;

bool AddExtension(X509* certificate, int nid, const std::string& value) {
  std::unique_ptr<X509_EXTENSION, FreedBy<&X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Certificate Make(const Key& key, const std::string& node, WallTime now) {
  Certificate certificate(X509_new());
  X509* made = certificate.get();
  // A random serial number: two certificates of one issuer name must differ (RFC 5280).
  std::unique_ptr<BIGNUM, FreedBy<&BN_free>> serial(BN_new());
  bool good = BN_rand(serial.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
              BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made)) != nullptr &&
              X509_set_version(made, 2) == 1;
  const std::time_t begin = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(now));
  ASN1_TIME_set(X509_getm_notBefore(made), begin - 3600);
  ASN1_TIME_set(X509_getm_notAfter(made), begin + 365L * 24 * 3600);
  X509_NAME* name = X509_get_subject_name(made);
  const std::string subject = "system:node:" + node;
  const void* raw = subject.data();
  good =
      good &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, static_cast<const unsigned char*>(raw),
                                 static_cast<int>(subject.size()), -1, 0) == 1 &&
      X509_set_issuer_name(made, name) == 1 && X509_set_pubkey(made, key.get()) == 1 &&
      AddExtension(made, NID_subject_alt_name,
                   fmt::format("DNS:{},DNS:localhost,IP:127.0.0.1", node)) &&
      AddExtension(made, NID_ext_key_usage, "serverAuth") &&
      X509_sign(made, key.get(), EVP_sha256()) > 0;
  return good ? std::move(certificate) : nullptr;
}

// Returns the text that `write` puts into memory; empty when it fails.
template <typename Write>
std::string Pem(const Write& write) {
  const Memory out(BIO_new(BIO_s_mem()));
  char* text = nullptr;
  if (!out || write(out.get()) != 1) return {};
  const long size = BIO_get_mem_data(out.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace

absl::StatusOr<ServingCertificate> MakeServingCertificate(const std::filesystem::path& folder,
                                                          const std::string& node, WallTime now) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = key ? Make(key, node, now) : nullptr;
  if (!certificate) {
    return Internal("no serving certificate could be made for node \"{}\"; a name of DNS is needed",
                    node);
  }
  ServingCertificate made{.cert_file = folder / "serving.crt", .key_file = folder / "serving.key"};
  const std::string key_text = Pem([&](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  const std::string certificate_text =
      Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate.get()); });
  if (key_text.empty() || certificate_text.empty()) {
    return Internal("the serving certificate of node \"{}\" cannot be written as PEM", node);
  }
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(made.key_file, key_text, 0600));
  TAHOMA_RETURN_IF_ERROR(WriteAtomically(made.cert_file, certificate_text, 0644));
  return made;
}

}  // namespace tahoma::sim
