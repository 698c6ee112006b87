// A chain that is complete and in its time, and is refused all the same: for what its certificates say or how they are signed.

export const signatures = `
# usage-wrong: the certificate is not for this use: a server showed one for clients, or a client one for
  servers
> certificate specifies an incompatible key usage | unsuitable certificate purpose
> unsupported certificate purpose | INVALID_PURPOSE | invalid peer certificate: InvalidPurpose
> candidate chains with incompatible key usage
- made-for-the-other-side: its extended key usages lack serverAuth (for a server) or clientAuth (for a
  client); etcd members need both
  $ {inspect} # ROLE_USAGE_WRONG, or its extended key usages
  $ kcert verify CLIENT.crt --roots CA.crt --purpose client # for a client certificate: NOT TRUSTED because of
    its usages
- ca-restricts-usages: a CA between root and leaf is restricted to other usages
  $ {verify} # the certificate at fault, in the words of Go and of OpenSSL

# signature-wrong: a certificate was held against a CA that did not sign it: another key, or another name
> x509: ECDSA verification failure | x509: Ed25519 verification failure | crypto/rsa: verification error
> certificate signature failure | CERT_SIGNATURE_FAILURE | invalid peer certificate: BadSignature
> SEC_ERROR_BAD_SIGNATURE | signature check failed
> issuer name does not match subject from issuing certificate | subject issuer mismatch
- same-name-other-key: the CA was made anew under its old name ("kubernetes"), and certificates or trust of
  both are mixed
  $ kcert inspect /etc/kubernetes/pki -o tree # leaves that do not hang below ca.crt
  $ {verify} # the certificate at fault, in the words of Go and of OpenSSL

# signature-weak: a certificate is signed with SHA-1 or MD5, or its key is too small for the program of today
> insecure algorithm | ca md too weak | CA_MD_TOO_WEAK | ee key too small | EE_KEY_TOO_SMALL | SHA1-RSA
> keys are insecure | ERR_CERT_WEAK_SIGNATURE_ALGORITHM | ERR_CERT_WEAK_KEY
> SEC_ERROR_CERT_SIGNATURE_ALGORITHM_DISABLED | certificate key too weak | signature digest algorithm too weak
> Algorithm constraints check failed
- made-long-ago: it was made long ago, or with old settings: it must be issued again, with SHA-256 and RSA
  2048 or ECDSA P-256
  $ {inspect} # SIGNATURE_WEAK or KEY_WEAK
  $ kcert inspect --cluster --only problem # where else in the cluster

# issuer-not-a-ca: in the chain of {server} a certificate may not do what it does: it is no CA, or a CA that
  is restricted (path length, names, critical extensions)
> certificate is not authorized to sign other certificates
> parent certificate cannot sign this kind of certificate | invalid CA certificate | INVALID_CA
> too many intermediates for path length constraint | path length constraint exceeded | PATH_LENGTH_EXCEEDED
> unhandled critical extension | is not authorized to sign for this name | permitted subtree violation
> excluded subtree violation | issuer has name constraints but leaf | signing certificate is not a CA
- chain-not-allowed: a certificate was signed with another leaf, or below a CA that does not allow it
  $ {verify} # the certificate at fault, in the words of Go and of OpenSSL
- wrong-file-as-ca: a leaf was given where a CA belongs
  $ kcert inspect {kubeconfig} # a certificate of the cluster that is no CA

# ca-as-server-certificate: the certificate that {server} shows as its own is a CA; rustls and Firefox refuse
  that, Go and OpenSSL do not
> CaUsedAsEndEntity | SEC_ERROR_CA_CERT_USED_AS_END_ENTITY
- ca-serves-itself: it was made by openssl req -x509, which makes a CA unless told otherwise; a leaf below
  that CA is needed, or -addext basicConstraints=CA:FALSE
  $ {inspect} # a server certificate that is a CA

# revoked: the CA has called a certificate back, and this program looks
> certificate revoked | certificate has been revoked | tls: revoked certificate
> received fatal alert: certificate revoked | CERT_REVOKED | SEC_ERROR_REVOKED_CERTIFICATE
> invalid peer certificate: Revoked
- called-back: the certificate stands in a list (CRL) or an answer (OCSP) of its CA: it must be issued anew.
  Components of Kubernetes never look, and go on to accept it
  $ {inspect} # the serial number and issuer to ask about

# revocation-unknown: a program wants to know whether a certificate was called back (CRL, OCSP), and did not
  find out
> unable to get certificate CRL | CRL has expired | CRL is expired | CRL is not yet valid
> No OCSP response received | OCSP response has expired | failed to get OCSP response
> ocsp: error from server | ocsp: error from server: unauthorized | CRYPT_E_NO_REVOCATION_CHECK
> CRYPT_E_REVOCATION_OFFLINE | The revocation function was unable to check revocation
> RevocationStatusUnknown | unknown revocation status | UnknownRevocationStatus
- list-missing-or-old: the list of the CA is missing, old or out of reach. CAs of Kubernetes have none and its
  components never look: that program asks for it by itself (openssl -crl_check, ssl_crl of nginx, Windows,
  curl --cert-status)
  $ {verify} # TRUSTED: then nothing else is wrong with the certificate

# not-signed-by-ca-file: kubeadm found a certificate on disk that the CA beside it did not sign
> not signed by CA certificate
- leaves-of-another-ca: ca.crt was replaced, or restored from another cluster, and the certificates below it
  were not made anew
  $ kcert inspect /etc/kubernetes -o tree # leaves that do not hang below ca.crt
  $ kcert renew # on the control plane: what would be issued anew; --all does it

# strict-rules: Python 3.13 and newer, OpenSSL with -x509_strict, and rustls ask for extensions (or X.509
  version 3) that Go and other programs do without, and a certificate lacks them
> Missing Authority Key Identifier | Missing Subject Key Identifier
> CA cert does not include key usage extension | Basic Constraints of CA cert not marked critical
> UnsupportedCertVersion
- made-without-extensions: the CA or the leaf was made by openssl or a script without key identifiers, key
  usage or critical basic constraints; Kubernetes accepts it, and such clients do not
  $ {verify} # the certificate at fault, in the words of Go and of OpenSSL

# refused-by-platform: macOS and Chrome ask more of the certificate of a server than Kubernetes does: few days
  (macOS: 825 at most), alternative names, serverAuth
> ERR_CERT_VALIDITY_TOO_LONG | certificate is not standards compliant
- valid-for-too-long: a certificate of several years, as scripts make them (kubeadm:
  certificateValidityPeriod)
  $ {inspect} # its times, names and usages

# serial-reused: Firefox has seen another certificate with the same issuer and serial number, and refuses both
> SEC_ERROR_REUSED_ISSUER_AND_SERIAL
- ca-without-ledger: a script gives every certificate the same serial number (openssl x509 -set_serial 01), or
  a CA was made anew under its old name and counts from the beginning
  $ {inspect} # issuer and serial number of what is served

# no-valid-chains generic: every chain that leads to a trusted root breaks a rule
> x509: no valid chains built
- chain-not-allowed: usages or policies of a CA do not allow it
  $ {verify} # the certificate at fault, in the words of Go and of OpenSSL
  $ {probe} # whether others are concerned
`
