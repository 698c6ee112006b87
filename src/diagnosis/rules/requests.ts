// CertificateSigningRequests that the API server rejects, or whose approval it does not allow.

export const requests = `
# request-api-old: the API server has no CertificateSigningRequest of that version
> no matches for kind "CertificateSigningRequest"
> the server doesn't have a resource type "certificatesigningrequest
- v1beta1-is-gone: Kubernetes 1.22 removed certificates.k8s.io/v1beta1: apiVersion is
  certificates.k8s.io/v1, which needs spec.signerName and spec.usages
  $ kcert csr check MANIFEST.yaml # what the API server would reject in the manifest
  $ kcert csr create --help # creates the object in the current version

# request-invalid: the API server rejects a CertificateSigningRequest
> The CertificateSigningRequest " | cannot be handled as a CertificateSigningRequest
> cannot be handled as a CertificateSigningRequest: illegal base64 data at input byte
> PEM block type must be CERTIFICATE REQUEST | signer with system:masters group is not allowed
- breaks-a-rule: spec.request is base64 of the PEM on one line (base64 -w0), once; spec.signerName and
  spec.usages are required; admission rejects requests for system:masters from every user
  $ kcert csr check MANIFEST.yaml # each rule that it breaks, and what to change

# approver-without-right: the approver or signer lacks the permission for this signer: RBAC also requires the verb approve or sign on signers
> user not permitted to approve requests with signerName | user not permitted to sign requests with signerName
> user not permitted to attest
- signer-right-missing: a ClusterRole needs apiGroups certificates.k8s.io, resources signers, resourceNames
  with the signer, verbs approve (or sign), beside update on certificatesigningrequests/approval (or /status)
  $ kcert csr list --pending # the signers of the requests
  $ kcert inspect {kubectlConfig} # your user: CN is the user, O are the groups
`
