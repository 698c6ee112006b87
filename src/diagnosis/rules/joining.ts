import { commandLine } from '../../errors/command-line.ts'
import type { Found } from '../found.ts'
import { inspectCommand, probeCommand } from '../place.ts'
import { check, type Rule } from '../rule.ts'

// How nodes come into a cluster and stay there: kubeadm join, TLS bootstrap, a kubelet's own renewal.

function bootstrapCheck({ node }: Found): string {
  return commandLine`kcert bootstrap check ${node ?? 'NODE'}`
}

export const joiningRules: readonly Rule[] = [
  {
    id: 'kubelet-client-expired',
    words: [
      'part of the existing bootstrap client certificate',
      'unable to load bootstrap kubeconfig',
      'The currently active client certificate has expired',
      'No valid client certificate is found',
    ],
    means: ({ notAfter }) =>
      `a kubelet has no client certificate that still counts${notAfter === undefined ? '' : ` (it ended on ${notAfter})`}, and nothing with which it could ask for another`,
    causes: [
      {
        id: 'renewal-missed',
        detail:
          'the node was off, or could not reach the API server, while its certificate was to be renewed; without bootstrap-kubelet.conf the kubelet cannot begin anew',
        checks: () => [
          check(
            'kcert kubelet doctor',
            'on that node: RENEWAL_OVERDUE or an expired pair; --fix takes a newer one where one lies there',
          ),
          check(
            'kcert renew',
            'on a control plane, or with kcert.yaml for all nodes: kubelet.conf among what is due',
          ),
        ],
      },
      {
        id: 'newer-pair-not-used',
        detail: 'a newer pair lies in /var/lib/kubelet/pki and the link or the kubeconfig names the old one',
        checks: () => [check('kcert kubelet doctor', 'LINK_DANGLING, LINK_IS_FILE or KUBECONFIG_EMBEDS')],
      },
    ],
  },
  {
    id: 'cluster-info-unsigned',
    words: ['could not find a JWS signature in the cluster-info ConfigMap', 'failed to verify JWS signature'],
    means: ({ tokenId }) =>
      ['kubeadm join does not believe cluster-info: it has no right signature of the token', tokenId]
        .filter(Boolean)
        .join(' '),
    causes: [
      {
        id: 'token-ended',
        detail: 'the token has ended (24 h by default) or was mistyped',
        checks: ({ tokenId }) => [
          check(
            tokenId === undefined ? 'kcert token list' : commandLine`kcert token check ${tokenId}`,
            'no such token, or expired',
          ),
          check('kcert token create', 'a new one, with the command to join by'),
        ],
      },
      {
        id: 'not-signed-yet',
        detail:
          'nobody signs: kube-controller-manager has no leader or bootstrapsigner is off, or cluster-info was just edited',
        checks: () => [check('kcert cluster-info verify', 'a signature that is missing or wrong')],
      },
    ],
  },
  {
    id: 'cluster-info-not-judged',
    isGeneric: true,
    words: ['abort connecting to API servers'],
    means:
      'kubeadm join gave up before it believed the cluster, and with less than --v=5 does not say at what',
    causes: [
      {
        id: 'token-ended-or-not-reached',
        detail:
          'the token has ended (its signature is gone from cluster-info), the address is not reached from this node, or the clock of this node is wrong',
        checks: (found) => [
          check(
            found.tokenId === undefined
              ? 'kcert token list'
              : commandLine`kcert token check ${found.tokenId}`,
            'from a control plane: no such token, or expired',
          ),
          check('kcert cluster-info verify', 'a signature that is missing or wrong'),
          check(probeCommand(found), 'from this node: UNREACHABLE, or ok'),
          check('date -u', 'on this node: another time than the true one'),
        ],
      },
    ],
  },
  {
    id: 'join-arguments-wrong',
    words: [
      'expected a 32 byte SHA-256 hash',
      'the bootstrap token is invalid',
      'without caCertHashes can be unsafe',
      'invalid public key hash',
    ],
    means: 'kubeadm join does not take its arguments: nothing was connected to',
    causes: [
      {
        id: 'mistyped-or-cut',
        detail:
          'a token is six and sixteen small letters and digits with a dot; a hash is sha256: and 64 hexadecimal digits',
        checks: () => [
          check('kcert token create', 'a new token, with the whole command to join by'),
          check('kcert cluster-info pin -o args', 'the hashes as kubeadm join takes them'),
        ],
      },
    ],
  },
  {
    id: 'uploaded-certificates',
    words: [
      'Secret "kubeadm-certs" was not found',
      'secrets "kubeadm-certs" is forbidden',
      'error decoding secret data with provided key',
      'cipher: message authentication failed',
    ],
    means: 'a control plane that joins did not get the certificates that another one uploaded for it',
    causes: [
      {
        id: 'uploaded-secret-gone',
        detail:
          'the Secret kubeadm-certs lives for two hours, as long as the token that owns it, and with it the right to read it goes; or --certificate-key is of an earlier upload: kubeadm init phase upload-certs --upload-certs makes both anew',
        checks: () => [
          check(
            'kcert token list',
            'no token that is described as the owner of kubeadm-certs, or one that ends soon',
          ),
        ],
      },
    ],
  },
  {
    id: 'ca-hash-mismatch',
    words: [
      'token CA hash does not match the Cluster CA certificate hash',
      'Configured cacerts checksum',
      'CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash',
      'bootstrap data already found and encrypted with different token',
    ],
    means:
      'k3s, RKE2 or Rancher: the token or checksum that was given is of another CA or cluster than the one that answers',
    causes: [
      {
        id: 'token-of-another-ca',
        detail:
          'the server was set up anew or its CA rotated, and the agent has the token of before; or a load balancer in between shows a certificate of its own',
        checks: (found) => [
          check(
            inspectCommand(found),
            'whose CA answers there; the server has its token in /var/lib/rancher/k3s/server/node-token',
          ),
        ],
      },
    ],
  },
  {
    id: 'pin-mismatch',
    words: ['none of the public keys', 'cluster CA found in cluster-info ConfigMap is invalid'],
    means: 'kubeadm join reached a cluster whose CA does not have the hash that it was given',
    causes: [
      {
        id: 'ca-was-replaced',
        detail:
          '--discovery-token-ca-cert-hash is of the CA before a rotation, or of another cluster; or cluster-info still has the old CA',
        checks: () => [
          check('kcert cluster-info pin', 'the hashes of today; -o args prints them for kubeadm join'),
          check('kcert cluster-info verify', 'whether cluster-info leads to the API servers that run'),
        ],
      },
    ],
  },
  {
    id: 'request-not-issued',
    words: [
      'timed out waiting for certificate signing request',
      'certificate request was not signed',
      'certificate signing request is denied',
      'SignerValidationFailure',
      'still unable to rotate certs',
    ],
    means: ({ node }) =>
      `a certificate was asked for${node === undefined ? '' : ` by the node ${node}`}, and did not come`,
    causes: [
      {
        id: 'request-waits',
        detail: 'nobody approved it, nobody signs for its signer, or the signer refused it',
        checks: () => [
          check('kcert csr list --pending', 'requests that wait; kcert csr explain NAME says for what'),
          check('kcert csr list --denied --failed', 'requests that were refused'),
        ],
      },
      {
        id: 'no-right-to-ask',
        detail: 'a kubelet that joins lacks the bindings of TLS bootstrap, or its token does not count',
        checks: (found) => [check(bootstrapCheck(found), 'the step at which it stopped, and why')],
      },
    ],
  },
  {
    id: 'secret-without-certificate',
    words: [
      'Error getting SSL certificate',
      'Unexpected error validating SSL certificate',
      'local SSL certificate',
      'Issuing certificate as Secret does not exist',
    ],
    means: 'a certificate is looked for in a Secret, and is not there, or is for another name',
    causes: [
      {
        id: 'not-issued-yet',
        detail:
          'cert-manager has not issued it (kubectl describe its Certificate, CertificateRequest, Order and Challenge), the Secret is in another namespace than the Ingress, or it was made by hand for other names',
        checks: () => [
          check(
            'kcert inspect --cluster --only problem',
            'Secrets without a certificate, or that do not fit',
          ),
          check('kcert inspect --cluster', 'whether the Secret is there at all, and its names'),
        ],
      },
    ],
  },
  {
    id: 'acme-refused',
    isGeneric: true,
    words: ['urn:ietf:params:acme:error', 'propagation check failed', 'failed to perform self check'],
    means:
      'cert-manager asks an ACME server (as that of Let’s Encrypt) for a certificate, and does not get it',
    causes: [
      {
        id: 'name-not-proven',
        detail:
          'the proof that the name is yours does not hold (HTTP-01: port 80 of the name leads elsewhere, is redirected or not reached from within; DNS-01: the record is not seen), or the server has issued too often for these names. What it asks for is in the Challenge: kubectl describe challenge',
        checks: () => [
          check('kcert inspect --cluster --only expired,expiring', 'what ends while it is not renewed'),
        ],
      },
    ],
  },
  {
    id: 'request-not-sent',
    isGeneric: true,
    words: [
      'cannot create certificate signing request',
      'failed while requesting a signed certificate from the control plane',
      'failed while requesting a signed certificate from the master',
    ],
    means: ({ node }) =>
      `the kubelet${node === undefined ? '' : ` of ${node}`} could not even ask for its certificate; why stands behind it`,
    causes: [
      {
        id: 'api-server-said-no',
        detail:
          'the API server was not reached, not trusted, or does not know the kubelet: its client certificate or bootstrap token has ended',
        checks: (found) => [
          check('kcert kubelet doctor', 'on that node: what is wrong with what it has'),
          check(bootstrapCheck(found), 'the step at which it stopped, and why'),
        ],
      },
    ],
  },
]
