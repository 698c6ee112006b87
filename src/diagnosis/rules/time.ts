import { commandLine } from '../../errors/command-line.ts'
import { spanText } from '../../inspection/spans.ts'
import type { Found } from '../found.ts'
import {
  certificateFileOf,
  forecastCommand,
  inspectCommand,
  isAt,
  kubeconfigOf,
  kubeletEvidence,
  nodeFolders,
  probeCommand,
  serverName,
  servingFileOf,
  shellPath,
} from '../place.ts'
import { type CauseRow, check, type Rule } from '../rule.ts'

// A certificate that is out of its time, or a clock that is.

const yearMs = 365 * 86_400_000

function lateBy({ currentTime, notAfter }: Found): number | undefined {
  return currentTime === undefined || notAfter === undefined
    ? undefined
    : Date.parse(currentTime) - Date.parse(notAfter)
}

function ended(found: Found): string {
  const late = lateBy(found)
  if (late !== undefined)
    return `ended on ${found.notAfter}, ${spanText(late)} before the clock of whoever refused it`
  return found.notAfter === undefined ? 'has ended' : `ended on ${found.notAfter}`
}

const clockAhead: CauseRow = {
  id: 'clock-ahead',
  holds: (found) => (lateBy(found) ?? yearMs * 2) > 0,
  evidence: (found) => {
    const late = lateBy(found)
    return late !== undefined && late > 10 * yearMs
      ? `the clock says ${found.currentTime}, more than ten years after the end of the certificate`
      : undefined
  },
  detail: 'the clock of the program that refuses is ahead of time',
  checks: (found) => [
    check(
      'date -u',
      found.currentTime === undefined
        ? 'another time than the true one'
        : `another time than the true one; the text says ${found.currentTime}`,
    ),
  ],
}

const leafEnded: CauseRow = {
  id: 'server-certificate-ended',
  holds: isAt('api-server', 'etcd', 'other', 'unknown'),
  detail:
    "the server's certificate was not renewed: kubeadm's last a year, and are renewed by kubeadm upgrade or by hand",
  checks: (found) => [
    check(probeCommand(found), 'CERT_EXPIRED'),
    check(
      'kcert renew',
      'on a control plane: what is due; kcert renew --all renews it and restarts what must be',
    ),
  ],
}

const outsideEnded: CauseRow = {
  id: 'certificate-outside-ended',
  holds: isAt('outside'),
  detail: ({ endpoints }) =>
    `${endpoints[0] ?? 'that server'} is none of the cluster's: whoever runs it has to renew it, or a proxy which opens TLS on the way out shows one of its own that has ended`,
  checks: (found) => [
    check(inspectCommand(found), 'what is served, by whom it was issued, and whether others see the same'),
  ],
}

const meshEnded: CauseRow = {
  id: 'mesh-certificate-ended',
  holds: isAt('mesh'),
  detail:
    "an issuer or root of the service mesh has ended (linkerd's trust anchor and issuer last a year unless others are given), or a proxy could not renew what it has",
  checks: () => [
    check('kcert inspect --cluster --only expired,expiring', 'Secrets and ConfigMaps of the mesh among them'),
  ],
}

const oldStillServed: CauseRow = {
  id: 'renewed-but-not-served',
  holds: isAt('api-server', 'etcd', 'kubelet', 'other', 'unknown'),
  detail: 'it was renewed on the disk, and the process still serves the old one',
  checks: (found) => [
    check(
      'kcert probe -i kcert.yaml',
      'OLD_CERTIFICATE_SERVED: the file on the node is newer than what is served',
    ),
    check(
      commandLine`kcert inspect ${shellPath(certificateFileOf(found) ?? servingFileOf(found))}`,
      'a certificate that is in its time, where what is served is not',
    ),
  ],
}

const caEnded: CauseRow = {
  id: 'ca-ended',
  holds: isAt('api-server', 'etcd', 'other', 'unknown'),
  evidence: (found) => {
    const { files } = found
    return files.some((path) => /(?:^|\/)ca\.(?:crt|pem)$/.test(path))
      ? 'the text names the file of a CA'
      : undefined
  },
  detail: 'the CA itself has ended, with all that it signed: after ten years with kubeadm',
  checks: () => [
    check('kcert inspect /etc/kubernetes/pki --only ca', 'a CA that is expired'),
    check('kcert rotate-ca recover --dry-run', 'what would bring the cluster back'),
  ],
}

const kubeletServing: CauseRow = {
  id: 'kubelet-serving-ended',
  holds: isAt('kubelet'),
  evidence: kubeletEvidence,
  detail: 'the next serving certificate of the kubelet waits to be approved: nobody does by itself',
  checks: (found) => [
    check(
      'kcert csr list --pending --signer kubernetes.io/kubelet-serving',
      'a request of this node that waits; kcert csr approve --policy kubelet-serving approves what is right',
    ),
    check(forecastCommand(found), 'what keeps the kubelet from renewing'),
  ],
}

const clientEnded: CauseRow = {
  id: 'client-certificate-ended',
  detail:
    'a client shows a certificate that has ended: an admin.conf or a kubeconfig of a year ago, a kubelet that could not renew',
  checks: (found) => [
    check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'a client certificate that is expired'),
    check(
      commandLine`kcert inspect ${nodeFolders} --only expired`,
      'on the node of that client: what has ended there',
    ),
    check('kcert kubelet doctor', 'on that node: whether it is the kubelet, and how it is mended'),
  ],
}

const webhookEnded: CauseRow = {
  id: 'webhook-certificate-ended',
  holds: isAt('in-cluster'),
  evidence: ({ webhook }) => (webhook === undefined ? undefined : `the webhook "${webhook}" is called`),
  detail:
    'the certificate in the Secret of a webhook or aggregated API has ended, or its pod has not read the new one',
  checks: () => [
    check('kcert probe --webhooks', 'CERT_EXPIRED for this one'),
    check(
      'kcert inspect --cluster --only expired,expiring',
      'the Secret it comes from, where that has ended too',
    ),
  ],
}

const serverEnded: readonly CauseRow[] = [
  webhookEnded,
  kubeletServing,
  meshEnded,
  outsideEnded,
  leafEnded,
  oldStillServed,
  caEnded,
  clockAhead,
]

const combinedWords = 'certificate has expired or is not yet valid'

const notYetValid: Omit<Rule, 'words'> = {
  id: 'not-yet-valid',
  means: ({ notBefore, currentTime }) =>
    notBefore === undefined
      ? 'a certificate has not begun yet, by the clock of whoever refused it'
      : `a certificate begins on ${notBefore}, and the clock of whoever refused it says ${currentTime}`,
  causes: [
    {
      id: 'clock-behind',
      evidence: ({ notBefore, currentTime }) =>
        notBefore === undefined
          ? undefined
          : `the clock is ${spanText(Date.parse(notBefore) - Date.parse(currentTime!))} behind the beginning of the certificate`,
      detail:
        'a clock is behind on the machine that refuses (after a pause or a restore, without NTP), or was ahead on the one that signed. Kubernetes dates certificates back by 5 minutes; more is not forgiven',
      checks: (found) => [
        check('date -u', 'on both machines: another time than the true one'),
        check(inspectCommand(found), 'CERT_NOT_YET_VALID also by the clock of this machine'),
      ],
    },
    {
      id: 'made-for-later',
      detail: 'the certificate was made for later, or put in its place too early',
      checks: (found) => [
        check(inspectCommand(found), 'a notBefore that lies ahead, while the clocks are right'),
      ],
    },
  ],
}

export const timeRules: readonly Rule[] = [
  // Go has one sentence for both; the times behind it tell which.
  { ...notYetValid, words: [combinedWords], holds: ({ notBefore }) => notBefore !== undefined },
  {
    ...notYetValid,
    words: [
      'certificate is not yet valid',
      'certificate is not valid yet',
      'CERT_NOT_YET_VALID',
      'CertificateNotYetValidException',
      'invalid peer certificate: NotValidYet',
      'invalid peer certificate: certificate not valid yet',
    ],
  },
  {
    id: 'client-certificate-expired',
    words: [combinedWords, 'client SSL certificate verify error: (10:certificate has expired'],
    holds: ({ side }) => side === 'server',
    means: (found) => `a server refuses a client whose certificate ${ended(found)}`,
    causes: [clientEnded, clockAhead],
  },
  {
    id: 'certificate-expired',
    words: [
      combinedWords,
      'certificate has expired',
      'CERT_HAS_EXPIRED',
      'CertificateExpiredException',
      'invalid peer certificate: Expired',
      'ERR_CERT_DATE_INVALID',
      'SEC_ERROR_EXPIRED_CERTIFICATE',
      'SEC_ERROR_EXPIRED_ISSUER_CERTIFICATE',
      'certificate is expired',
      'invalid peer certificate: certificate expired',
      'errors in the certificate chain: NotTimeValid',
      'certificate is NOT trusted. The certificate chain uses expired certificate',
      'SEC_E_CERT_EXPIRED',
      'not valid anymore. Expired on',
    ],
    means: (found) => `the certificate of ${serverName(found)}, or a CA above it, ${ended(found)}`,
    causes: serverEnded,
  },
]
