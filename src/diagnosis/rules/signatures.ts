// A complete chain within its validity that is still rejected, because of the certificates' content or signatures.

export const signatures = `
# usage-wrong: the certificate is not for this use: a server presented one for clients, or a client one for servers
> certificate specifies an incompatible key usage | unsuitable certificate purpose
> unsupported certificate purpose | INVALID_PURPOSE | invalid peer certificate: InvalidPurpose
> candidate chains with incompatible key usage
- made-for-the-other-side: its extended key usages lack serverAuth (for a server) or clientAuth (for a
  client); etcd members need both
  $ {inspect} # ROLE_USAGE_WRONG, or its extended key usages
  $ kcert verify CLIENT.crt --roots CA.crt --purpose client # for a client certificate: NOT TRUSTED because of
    its usages
- ca-restricts-usages: a CA between root and leaf is restricted to other usages
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL

# signature-wrong: a certificate was verified with a CA that did not sign it: another key, or another name
> x509: ECDSA verification failure | x509: Ed25519 verification failure | crypto/rsa: verification error
> certificate signature failure | CERT_SIGNATURE_FAILURE | invalid peer certificate: BadSignature
> SEC_ERROR_BAD_SIGNATURE | signature check failed
> issuer name does not match subject from issuing certificate | subject issuer mismatch
- same-name-other-key: the CA was created again under its old name ("kubernetes"), and certificates of both are mixed
  $ kcert inspect /etc/kubernetes/pki -o tree # leaves not signed by ca.crt
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL

# signature-weak: a certificate is signed with SHA-1 or MD5, or its key is too small for current programs
> insecure algorithm | ca md too weak | CA_MD_TOO_WEAK | ee key too small | EE_KEY_TOO_SMALL | SHA1-RSA
> keys are insecure | ERR_CERT_WEAK_SIGNATURE_ALGORITHM | ERR_CERT_WEAK_KEY
> SEC_ERROR_CERT_SIGNATURE_ALGORITHM_DISABLED | certificate key too weak | signature digest algorithm too weak
> Algorithm constraints check failed
- made-long-ago: it is old, or was created with old settings: reissue it, with SHA-256 and RSA
  2048 or ECDSA P-256
  $ {inspect} # SIGNATURE_WEAK or KEY_WEAK
  $ kcert inspect --cluster --only problem # where else in the cluster

# issuer-not-a-ca: in the chain of {server} a certificate signed another although it is not a CA, or a CA that
  is restricted (path length, names, critical extensions)
> certificate is not authorized to sign other certificates
> parent certificate cannot sign this kind of certificate | invalid CA certificate | INVALID_CA
> too many intermediates for path length constraint | path length constraint exceeded | PATH_LENGTH_EXCEEDED
> unhandled critical extension | is not authorized to sign for this name | permitted subtree violation
> excluded subtree violation | issuer has name constraints but leaf | signing certificate is not a CA
- chain-not-allowed: a certificate was signed with another leaf, or below a CA that does not allow it
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL
- wrong-file-as-ca: a leaf is used in place of a CA
  $ kcert inspect {kubeconfig} # a certificate of the cluster that is no CA

# ca-as-server-certificate: the serving certificate of {server} is a CA; rustls and Firefox reject that, Go and OpenSSL do not
> CaUsedAsEndEntity | SEC_ERROR_CA_CERT_USED_AS_END_ENTITY
- ca-serves-itself: it was created by openssl req -x509, which creates a CA by default; a leaf below
  that CA is needed, or -addext basicConstraints=CA:FALSE
  $ {inspect} # a server certificate that is a CA

# revoked: the CA revoked a certificate, and this program checks that
> certificate revoked | certificate has been revoked | tls: revoked certificate
> received fatal alert: certificate revoked | CERT_REVOKED | SEC_ERROR_REVOKED_CERTIFICATE
> invalid peer certificate: Revoked
- called-back: the certificate is in a CRL or an OCSP response of its CA: reissue it. Kubernetes components never check revocation, and still accept it
  $ {inspect} # the serial number and issuer to ask about

# revocation-unknown: a program checks revocation (CRL, OCSP), and the check failed
> unable to get certificate CRL | CRL has expired | CRL is expired | CRL is not yet valid
> No OCSP response received | OCSP response has expired | failed to get OCSP response
> ocsp: error from server | ocsp: error from server: unauthorized | CRYPT_E_NO_REVOCATION_CHECK
> CRYPT_E_REVOCATION_OFFLINE | The revocation function was unable to check revocation
> RevocationStatusUnknown | unknown revocation status | UnknownRevocationStatus
- list-missing-or-old: the CRL is missing, old or unreachable. Kubernetes CAs have none and its components never check: that program requires it (openssl -crl_check, ssl_crl of nginx, Windows,
  curl --cert-status)
  $ {verify} # TRUSTED: then nothing else is wrong with the certificate

# not-signed-by-ca-file: kubeadm found a certificate on disk that the CA in the same folder did not sign
> not signed by CA certificate
- leaves-of-another-ca: ca.crt was replaced, or restored from another cluster, and the certificates that it signed were not reissued
  $ kcert inspect /etc/kubernetes -o tree # leaves not signed by ca.crt
  $ kcert renew # on the control plane: what would be reissued; --all does it

# strict-rules: Python 3.13 and newer, OpenSSL with -x509_strict, and rustls require extensions (or X.509 version 3) that Go and other programs do not, and a certificate lacks them
> Missing Authority Key Identifier | Missing Subject Key Identifier
> CA cert does not include key usage extension | Basic Constraints of CA cert not marked critical
> UnsupportedCertVersion
- made-without-extensions: the CA or the leaf was created by openssl or a script without key identifiers, key
  usage or critical basic constraints; Kubernetes accepts it, but such clients do not
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL

# refused-by-platform: macOS and Chrome require more of a serving certificate than Kubernetes does: a short validity (macOS: at most 825 days), SANs, serverAuth
> ERR_CERT_VALIDITY_TOO_LONG | certificate is not standards compliant
- valid-for-too-long: a certificate of several years, as scripts create them (kubeadm:
  certificateValidityPeriod)
  $ {inspect} # its validity, SANs and usages

# serial-reused: Firefox has seen another certificate with the same issuer and serial number, and rejects both
> SEC_ERROR_REUSED_ISSUER_AND_SERIAL
- ca-without-ledger: a script gives every certificate the same serial number (openssl x509 -set_serial 01), or a CA was created again under its old name and restarts its serial numbers
  $ {inspect} # issuer and serial number of the served certificate

# no-valid-chains generic: every chain that leads to a trusted root breaks a rule
> x509: no valid chains built
- chain-not-allowed: usages or policies of a CA do not allow it
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL
  $ {probe} # whether others are concerned
`
