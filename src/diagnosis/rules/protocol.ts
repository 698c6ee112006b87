// Alerts that say little of certificates, and handshakes that end without one.

export const protocol = `
# no-certificate-shown: {server} has no certificate, or speaks no TLS
> no peer certificate available | peer sent no certificates
> neither Certificates, GetCertificate, nor GetConfigForClient set in Config | Secret is not supplied by SDS
- started-without-certificate: the server was started without a certificate, or waits for the Secret that
  should hold it (a gateway: credentialName and its namespace); or what listens there is no TLS server
  $ {inspect} # no certificate, or that what answers does not speak TLS
  $ kcert inspect --cluster --only problem # Secrets without a certificate

# alert-decrypt-error: if side=server: in the log of a server: a client found the signature of this server
  wrong: its key is not that of its certificate || {server} found the signature of the client wrong: the key
  is not that of the client certificate
> tls alert: error decrypting message / decrypt error | ERR_SSL_DECRYPT_ERROR_ALERT
- key-of-another-certificate: certificate and private key do not belong together, and the program did not look
  at its start
  $ kcert inspect {kubeconfig} # KEY_MISMATCH for the client of a user
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only problem # on the node: KEY_MISMATCH

# alert-access-denied: {server} took the client certificate for valid, and its policy does not let that client
  in
> tls alert: access denied
- not-allowed-by-policy: the server allows certain names only (etcd --client-cert-allowed-hostname, a mesh)
  $ kcert inspect {kubeconfig} # as whom the client comes

# handshake-garbled: one side did not understand the TLS of the other, or what was sent is not what arrived
> tls alert: decode error | tls alert: illegal parameter | tls alert: unexpected message | tls: bad record MAC
> decryption failed or bad record mac | tls: received unexpected handshake message
> The TLS connection was non-properly terminated
- changed-on-the-way: something in between changes the stream (a firewall that inspects TLS, a broken network
  card or MTU), or one of the TLS libraries has a bug; it is no matter of certificates
  $ {probe} --tls 1.2 # whether TLS 1.2 goes
  $ {probe} --tls 1.3 # whether TLS 1.3 goes; and from another machine?
`
