// Unexpected content of files, and of the certificates in a chain.

export const files = `
// Files whose content is not what the program expects.
# signing-file-not-single: kube-controller-manager signs with one certificate, but --cluster-signing-cert-file contains several: it does not start
> expected 1 certificate, found | csr-controller::
- bundle-as-signing-file: a bundle of old and new CA was put into the signing file: during a rotation root-ca-file may be a bundle, the signing file never
  $ kcert inspect /etc/kubernetes/pki/ca.crt # CA_FILE_NOT_SINGLE
  $ kcert rotate-ca status # the phase of the rotation, and what is incomplete

# not-pem: a file does not contain a certificate or key in PEM
> failed to find any PEM data in certificate input | failed to find any PEM data in key input
> failed to find certificate PEM data in certificate input
> PEM block in certificate input after skipping PEM blocks | in key input after skipping PEM blocks
> found a certificate rather than a key in the PEM for the private key
> data does not contain any valid RSA or ECDSA certificates
> data does not contain a valid RSA or ECDSA private key | PEM routines:get_name:no start line | no start line
> ERR_OSSL_PEM_NO_START_LINE | unable to load certificates from PEM file | unable to parse bytes as PEM block
> illegal base64 data at input byte | error decoding certificate PEM block
> error decoding private key PEM block | failed to append ca cert to pool | Could not read certificate from
> Could not read private key from | unable to load Private Key | [SSL] PEM lib
- wrong-content: the file is empty, is DER or PKCS#12, has the key where the certificate should be, or is base64-encoded twice (a Secret whose data was encoded by hand)
  $ kcert inspect {certificateOrFile} # its content: NOTHING_FOUND, NOT_PLAIN_PEM or PEM_BLOCK_BAD
- key-encrypted: the private key is encrypted; Kubernetes does not read encrypted keys
  $ kcert inspect {certificateOrFile} # an encrypted key

# ca-bundle-invalid: the API server rejects a webhook, APIService or CRD: its caBundle is not PEM
> caBundle: Invalid value
- ca-bundle-not-pem: caBundle must be base64 of PEM; it is empty, encoded twice, or still the placeholder of a template
  $ kcert inspect MANIFEST.yaml # the content of its caBundle

# tls-secret-incomplete: the API server rejects a Secret of type kubernetes.io/tls: it needs tls.crt and
  tls.key, both in PEM
> data[tls.crt]: Required value | data[tls.key]: Required value | data[tls.crt]: Invalid value
> data[tls.key]: Invalid value
- key-missing-or-misnamed: the two have other names in it (cert.pem), or one is missing
  $ kcert inspect SECRET.yaml # its content, and whether both match

# keystore-not-opened: a keystore (PKCS#12) or an encrypted key was not opened
> keystore password was incorrect | mac verify failure | pkcs12: decryption password incorrect
> pkcs12: expected exactly | x509: decryption password incorrect | no DEK-Info header in block | bad decrypt
> digital envelope routines::unsupported | digital envelope routines:EVP_DecryptFinal
> Unsupported algorithm, Algorithm (RC2
- password-or-encryption: the password is wrong, ends with an unintended newline, or the file uses an old encryption (RC2, 3DES), which OpenSSL 3 and current Node.js do not open
  $ kcert inspect KEYSTORE.p12 --password-file PASSWORD # its content, also with old encryptions: then the cause is the program, not the password

# key-unsupported: this program does not support the key type
> contains an unsupported type of public key | containing RSA key larger than
> x509: unsupported elliptic curve | x509: unsupported public key | x509: unknown public key algorithm
> contained private key of unknown type | private key of unknown type
> tls: unsupported certificate: private key is | unsupported private key type
- unusual-key: DSA, Ed448, secp256k1, an RSA key of more than 8192 bits, or Ed25519 where the other side does not support it: RSA 2048 and ECDSA P-256 work everywhere
  $ kcert inspect {certificateOrFile} -o wide # type and length of the key

# file-not-read generic: {someFile} does not exist, cannot be read by this user, or has wrong content
> unable to read client-cert | unable to read client-key | unable to read certificate-authority
> unable to load root certificates | error setting certificate verify locations
> error setting certificate file | unable to set private key file | could not load PEM client certificate
> Could not find a suitable TLS CA certificate bundle | couldn't load the certificate file
> couldn't load the private key file | failed to load existing certificate | unable to load client CA file
> error reading CA cert file | unable to use specified CA cert | unable to use specified client cert
> missing client certificate | error creating self-signed certificates
> the trustAnchors parameter must be non-empty
- ca-key-elsewhere if caKey: the CA is kept elsewhere on purpose (an external CA), or the key was not copied
  when this control plane joined: nothing can be issued here without it
  ! {caKey} is the key of a CA
  $ kcert inspect /etc/kubernetes/pki # the CAs without a key; another control plane may have it
  $ kcert csr create --kubeadm all --node-name NODE --advertise-address ADDRESS --cert-dir requests --kubeconfig-dir requests # makes
    a request for every kubeadm certificate, for the owner of the key
- secret-not-mounted if podFile: the Secret does not exist yet, has keys other than tls.crt and tls.key, or is mounted elsewhere: cert-manager has not issued it, or a job that creates it did not run
  ! {podFile} is where pods have a Secret mounted
  $ kcert inspect --cluster --only problem # Secrets that are empty or do not match
- missing-or-closed: the path is wrong or relative to another folder, the file belongs to root, or it is a dangling link (kubelet-client-current.pem of a kubelet that never got a certificate)
  $ kcert inspect {certificateOrFile} # does not exist, permission denied, or what is in it
  $ kcert inspect {kubeconfig} # KUBECONFIG_FILE_UNREADABLE, with the path

# file-not-read generic if keyOrCertificate: {someFile} does not exist, cannot be read by this user, or has wrong content
> no such file or directory | permission denied
- ca-key-elsewhere, secret-not-mounted, missing-or-closed

# malformed: a certificate or key is damaged, or has an encoding that Go does not read
> x509: malformed | x509: invalid | x509: negative serial number | x509: trailing data | x509: failed to parse
> x509: certificate contains duplicate extensions | x509: RSA modulus is not | x509: missing ASN.1 contents
> x509: internal error: cannot parse | tls: failed to parse certificate | tls: failed to parse private key
> asn1: structure error | asn1: syntax error
- damaged-or-unusual: it was cut off, changed by an editor, or created by a program that violates DER
  $ kcert inspect {certificateOrFile} # CERT_UNREADABLE with the field and its offset; the other certificates of the file
    are read

// A complete chain within its validity that is still rejected, because of the certificates' content or signatures.
# usage-wrong: the certificate is not for this use: a server presented one for clients, or a client one for servers
> certificate specifies an incompatible key usage | unsuitable certificate purpose
> unsupported certificate purpose | INVALID_PURPOSE | invalid peer certificate: InvalidPurpose
> candidate chains with incompatible key usage
- wrong-extended-key-usage: its extended key usages lack serverAuth (for a server) or clientAuth (for a
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
- old-certificate: it is old, or was created with old settings: reissue it, with SHA-256 and RSA
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
- revoked-by-ca: the certificate is in a CRL or an OCSP response of its CA: reissue it. Kubernetes components never check revocation, and still accept it
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
- created-without-extensions: the CA or the leaf was created by openssl or a script without key identifiers, key
  usage or critical basic constraints; Kubernetes accepts it, but such clients do not
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL

# refused-by-platform: macOS and Chrome require more of a serving certificate than Kubernetes does: a short validity (macOS: at most 825 days), SANs, serverAuth
> ERR_CERT_VALIDITY_TOO_LONG | certificate is not standards compliant
- valid-for-too-long: a certificate of several years, as scripts create them (kubeadm:
  certificateValidityPeriod)
  $ {inspect} # its validity, SANs and usages

# serial-reused: Firefox has seen another certificate with the same issuer and serial number, and rejects both
> SEC_ERROR_REUSED_ISSUER_AND_SERIAL
- serial-numbers-repeated: a script gives every certificate the same serial number (openssl x509 -set_serial 01), or a CA was created again under its old name and restarts its serial numbers
  $ {inspect} # issuer and serial number of the served certificate

# no-valid-chains generic: every chain that leads to a trusted root breaks a rule
> x509: no valid chains built
- chain-not-allowed: usages or policies of a CA do not allow it
  $ {verify} # the certificate at fault, with the errors of Go and OpenSSL
  $ {probe} # whether others are concerned
`
