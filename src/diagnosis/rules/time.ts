// A certificate outside its validity, or a wrong clock.

export const time = `
# not-yet-valid if notBefore: a certificate is valid from {notBefore}, and the clock of the verifying side says
  {currentTime} || a certificate is not valid yet by the clock of the verifying side
> certificate has expired or is not yet valid
- clock-behind: a clock is behind on the machine that rejects the certificate (after a pause or a restore, without NTP), or
  was ahead on the one that signed. Kubernetes backdates certificates by 5 minutes only
  ! the clock is {tooEarly} before the notBefore of the certificate
  $ date -u # on both machines: a wrong time
  $ {inspect} # CERT_NOT_YET_VALID also by the clock of this machine
- made-for-later: the certificate was issued for later, or installed too early
  $ {inspect} # a notBefore in the future, although the clocks are right

# not-yet-valid: a certificate is valid from {notBefore}, and the clock of the verifying side says {currentTime}
  || a certificate is not valid yet by the clock of the verifying side
> certificate is not yet valid | certificate is not valid yet | CERT_NOT_YET_VALID
> CertificateNotYetValidException | invalid peer certificate: NotValidYet
> invalid peer certificate: certificate not valid yet
- clock-behind, made-for-later

# client-certificate-expired if side=server: a server rejects a client whose certificate {ended}
> certificate has expired or is not yet valid
> client SSL certificate verify error: (10:certificate has expired
- client-certificate-ended: a client presents an expired certificate: an admin.conf or a kubeconfig of a
  year ago, a kubelet that could not renew
  $ kcert inspect {kubeconfig} # a client certificate that is expired
  $ kcert inspect /etc/kubernetes /var/lib/kubelet/pki --only expired # on the node of that client: what expired there
  $ kcert kubelet doctor # on that node: whether it is the kubelet, and how to repair it
- clock-ahead if !inTime: the clock of the program that rejects it is ahead
  ! the clock says {yearsLate}, more than ten years after the end of the certificate
  $ date -u # a wrong time[; the text says {currentTime}]

# certificate-expired: the certificate of {server}, or its CA, {ended}
> certificate has expired or is not yet valid | certificate has expired | CERT_HAS_EXPIRED
> CertificateExpiredException | invalid peer certificate: Expired | ERR_CERT_DATE_INVALID
> SEC_ERROR_EXPIRED_CERTIFICATE | SEC_ERROR_EXPIRED_ISSUER_CERTIFICATE | certificate is expired
> invalid peer certificate: certificate expired | errors in the certificate chain: NotTimeValid
> certificate is NOT trusted. The certificate chain uses expired certificate | SEC_E_CERT_EXPIRED
> not valid anymore. Expired on
- webhook-certificate-ended if at=in-cluster: the certificate in the Secret of a webhook or aggregated API expired, or its pod has not read the new one
  ! the webhook "{webhook}" is called
  $ kcert probe --webhooks # CERT_EXPIRED for this one
  $ kcert inspect --cluster --only expired,expiring # its Secret, if that expired too
- kubelet-serving-ended if at=kubelet: the next serving certificate of the kubelet is pending: Kubernetes does not approve it by itself
  ! {kubeletCalled}
  $ kcert csr list --pending --signer kubernetes.io/kubelet-serving # a pending request of this node; kcert
    csr approve --policy kubelet-serving approves valid ones
  $ {forecast} # why the kubelet does not renew
- mesh-certificate-ended if at=mesh: an issuer or root of the service mesh expired (linkerd's trust anchor
  and issuer last a year unless others are given), or a proxy could not renew its certificate
  $ kcert inspect --cluster --only expired,expiring # Secrets and ConfigMaps of the mesh among them
- certificate-outside-ended if at=outside: {thatServer} is not part of the cluster: its operator must renew it, or a TLS-inspecting proxy presents an expired certificate of its own
  $ {inspect} # the served certificate and its issuer; compare from another network
- server-certificate-ended if at=api-server,etcd,other,unknown: the server's certificate was not renewed:
  kubeadm's last a year, and are renewed by kubeadm upgrade or by hand
  $ {probe} # CERT_EXPIRED
  $ kcert renew # on a control plane: what is due; kcert renew --all renews it and restarts what uses it
- renewed-but-not-served if at=api-server,kubelet,etcd,other,unknown: it was renewed on disk, but the process still serves the old one
  $ kcert probe -i kcert.yaml # OLD_CERTIFICATE_SERVED: the file on the node is newer than the served certificate
  $ kcert inspect {servedFile} # a valid certificate, although the served one expired
- ca-ended if at=api-server,etcd,other,unknown: the CA itself expired (after ten years with kubeadm), so everything that it signed is rejected
  ! if caFile: the text names a CA file
  $ kcert inspect /etc/kubernetes/pki --only ca # a CA that is expired
  $ kcert rotate-ca recover --dry-run # what would recover the cluster
- clock-ahead
`
