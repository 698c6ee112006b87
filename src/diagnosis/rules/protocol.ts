// Unspecific alerts, and handshakes that end without an alert.

export const protocol = `
# no-certificate-shown: {server} has no certificate, or does not use TLS
> no peer certificate available | peer sent no certificates
> neither Certificates, GetCertificate, nor GetConfigForClient set in Config | Secret is not supplied by SDS
- started-without-certificate: the server was started without a certificate, or waits for its Secret (a gateway: credentialName and its namespace); or the server there does not use TLS
  $ {inspect} # no certificate, or that the server does not use TLS
  $ kcert inspect --cluster --only problem # Secrets without a certificate

# alert-decrypt-error: if side=server: in the log of a server: a client rejects the signature of this server: its key does not match its certificate || {server} rejects the signature of the client: its key does not match the client certificate
> tls alert: error decrypting message / decrypt error | ERR_SSL_DECRYPT_ERROR_ALERT
- key-of-another-certificate: certificate and private key do not match, and the program did not check that when it started
  $ kcert inspect {kubeconfig} # KEY_MISMATCH for the client of a user
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only problem # on the node: KEY_MISMATCH

# alert-access-denied: {server} accepts the client certificate, but its policy rejects that client
> tls alert: access denied
- not-allowed-by-policy: the server allows certain names only (etcd --client-cert-allowed-hostname, a mesh)
  $ kcert inspect {kubeconfig} # the user of the client

# handshake-garbled: one side did not understand the TLS of the other, or what was sent is not what arrived
> tls alert: decode error | tls alert: illegal parameter | tls alert: unexpected message | tls: bad record MAC
> decryption failed or bad record mac | tls: received unexpected handshake message
> The TLS connection was non-properly terminated
- changed-on-the-way: the network changes the stream (a firewall that inspects TLS, a broken network
  card or MTU), or one of the TLS libraries has a bug; certificates are not the cause
  $ {probe} --tls 1.2 # whether TLS 1.2 works
  $ {probe} --tls 1.3 # whether TLS 1.3 works; and from another machine?
`
