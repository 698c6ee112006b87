// A certificate that is out of its time, or a clock that is.

export const time = `
# not-yet-valid if notBefore: a certificate begins on {notBefore}, and the clock of whoever refused it says
  {currentTime} || a certificate has not begun yet, by the clock of whoever refused it
> certificate has expired or is not yet valid
- clock-behind: a clock is behind on the machine that refuses (after a pause or a restore, without NTP), or
  was ahead on the one that signed. Kubernetes dates certificates back by 5 minutes; more is not forgiven
  ! the clock is {tooEarly} behind the beginning of the certificate
  $ date -u # on both machines: another time than the true one
  $ {inspect} # CERT_NOT_YET_VALID also by the clock of this machine
- made-for-later: the certificate was made for later, or put in its place too early
  $ {inspect} # a notBefore that lies ahead, while the clocks are right

# not-yet-valid: a certificate begins on {notBefore}, and the clock of whoever refused it says {currentTime}
  || a certificate has not begun yet, by the clock of whoever refused it
> certificate is not yet valid | certificate is not valid yet | CERT_NOT_YET_VALID
> CertificateNotYetValidException | invalid peer certificate: NotValidYet
> invalid peer certificate: certificate not valid yet
- clock-behind, made-for-later

# client-certificate-expired if side=server: a server refuses a client whose certificate {ended}
> certificate has expired or is not yet valid
> client SSL certificate verify error: (10:certificate has expired
- client-certificate-ended: a client shows a certificate that has ended: an admin.conf or a kubeconfig of a
  year ago, a kubelet that could not renew
  $ kcert inspect {kubeconfig} # a client certificate that is expired
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the node of that client: what has
    ended there
  $ kcert kubelet doctor # on that node: whether it is the kubelet, and how it is mended
- clock-ahead if !inTime: the clock of the program that refuses is ahead of time
  ! the clock says {yearsLate}, more than ten years after the end of the certificate
  $ date -u # another time than the true one[; the text says {currentTime}]

# certificate-expired: the certificate of {server}, or a CA above it, {ended}
> certificate has expired or is not yet valid | certificate has expired | CERT_HAS_EXPIRED
> CertificateExpiredException | invalid peer certificate: Expired | ERR_CERT_DATE_INVALID
> SEC_ERROR_EXPIRED_CERTIFICATE | SEC_ERROR_EXPIRED_ISSUER_CERTIFICATE | certificate is expired
> invalid peer certificate: certificate expired | errors in the certificate chain: NotTimeValid
> certificate is NOT trusted. The certificate chain uses expired certificate | SEC_E_CERT_EXPIRED
> not valid anymore. Expired on
- webhook-certificate-ended if at=in-cluster: the certificate in the Secret of a webhook or aggregated API has
  ended, or its pod has not read the new one
  ! the webhook "{webhook}" is called
  $ kcert probe --webhooks # CERT_EXPIRED for this one
  $ kcert inspect --cluster --only expired,expiring # the Secret it comes from, where that has ended too
- kubelet-serving-ended if at=kubelet: the next serving certificate of the kubelet waits to be approved:
  nobody does by itself
  ! {kubeletCalled}
  $ kcert csr list --pending --signer kubernetes.io/kubelet-serving # a request of this node that waits; kcert
    csr approve --policy kubelet-serving approves what is right
  $ {forecast} # what keeps the kubelet from renewing
- mesh-certificate-ended if at=mesh: an issuer or root of the service mesh has ended (linkerd's trust anchor
  and issuer last a year unless others are given), or a proxy could not renew what it has
  $ kcert inspect --cluster --only expired,expiring # Secrets and ConfigMaps of the mesh among them
- certificate-outside-ended if at=outside: {thatServer} is none of the cluster's: whoever runs it
  has to renew it, or a proxy which opens TLS on the way out shows one of its own that has ended
  $ {inspect} # what is served, by whom it was issued, and whether others see the same
- server-certificate-ended if at=api-server,etcd,other,unknown: the server's certificate was not renewed:
  kubeadm's last a year, and are renewed by kubeadm upgrade or by hand
  $ {probe} # CERT_EXPIRED
  $ kcert renew # on a control plane: what is due; kcert renew --all renews it and restarts what must be
- renewed-but-not-served if at=api-server,kubelet,etcd,other,unknown: it was renewed on the disk, and the
  process still serves the old one
  $ kcert probe -i kcert.yaml # OLD_CERTIFICATE_SERVED: the file on the node is newer than what is served
  $ kcert inspect {servedFile} # a certificate that is in its time, where what is served is not
- ca-ended if at=api-server,etcd,other,unknown: the CA itself has ended, with all that it signed: after ten
  years with kubeadm
  ! if caFile: the text names the file of a CA
  $ kcert inspect /etc/kubernetes/pki --only ca # a CA that is expired
  $ kcert rotate-ca recover --dry-run # what would bring the cluster back
- clock-ahead
`
