import { shellWord } from '../../errors/shell-word.ts'
import type { Found } from '../found.ts'
import { check, type Rule } from '../rule.ts'

// How nodes come into a cluster and stay there: kubeadm join, TLS bootstrap, a kubelet's own renewal.

function bootstrapCheck({ node }: Found): string {
  return `kcert bootstrap check ${node === undefined ? 'NODE' : shellWord(node)}`
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
      `kubeadm join does not believe cluster-info: it has no right signature of the token${tokenId === undefined ? '' : ` ${tokenId}`}`,
    causes: [
      {
        id: 'token-ended',
        detail: 'the token has ended (24 h by default) or was mistyped',
        checks: ({ tokenId }) => [
          check(
            tokenId === undefined ? 'kcert token list' : `kcert token check ${tokenId}`,
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
      'cannot create certificate signing request',
      'SignerValidationFailure',
      'failed while requesting a signed certificate from the control plane',
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
]
