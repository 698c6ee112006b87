import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import type { KubeadmKubeconfig, KubeadmLeaf, KubeadmRow } from '../pki/kubeadm.ts'
import { kubeadmFolders, kubeadmKubeconfigs } from '../pki/kubeadm.ts'
import { kubeletRotationWindow } from '../pki/kubelet.ts'
import type { CertificateEntry, Role } from './entries.ts'
import { timeText } from './spans.ts'

// What to do about a certificate that runs out, by what it is. Names that others wrote into a certificate never get into a
// command unless they are plain node names: the command may be pasted.

/** `misissued`: subject, names or usages are not what its place needs, and a renewal that copies them would copy the fault. */
export type Urgency = 'expiring' | 'expired' | 'wrong' | 'misissued'

/** Returns how to replace a certificate, with what to do about it in the words of its check before. */
export function reissueAdvice(what: string, entry: CertificateEntry, role: Role, urgency: Urgency): string {
  return [what, renewalAdvice(entry, role, urgency)].join(': ')
}

/** Returns how to replace a certificate: a command where there is one. */
export function renewalAdvice(entry: CertificateEntry, role: Role, urgency: Urgency): string {
  if (role.isRecord) return recordAdvice(entry)
  if (role.kubelet !== undefined) return kubeletAdvice(entry, role, urgency)
  if (role.row !== undefined) return kubeadmAdvice(role.row, urgency)
  if (role.isTrusted || entry.certificate.isCa) return caAdvice(entry, urgency)
  const { owner } = entry.group
  if (owner.kind === 'user') return userAdvice(entry)
  if (owner.kind === 'served')
    return 'renew it on the server and see that the process there reads the new one: it may still hold the old one in memory'
  if (owner.kind === 'value')
    return owner.object.kind === 'Secret'
      ? 'renew the certificate in this Secret; if cert-manager manages it: kubectl get certificate,certificaterequest -A'
      : 'renew the certificate in this ConfigMap'
  return role.name?.startsWith('kubelet-serving, self-signed')
    ? 'move kubelet.crt and kubelet.key to another folder and restart the kubelet, which creates new ones; or set serverTLSBootstrap: true'
    : 'renew it with whoever issued it'
}

function recordAdvice({ group }: CertificateEntry): string {
  return group.owner.kind === 'issued'
    ? 'nothing here: the request object is a record, and is removed by itself'
    : 'nothing: the kubelet uses another by now and never deletes the old ones; this file may be removed'
}

/** kubeadm's own command, and what must start anew for it to count. */
export function kubeadmAdvice(
  row: Exclude<KubeadmRow, { kind: 'service-account-key' }>,
  urgency: Urgency,
): string {
  if (row.kind === 'ca') {
    if (urgency === 'misissued')
      return 'bring back the certificate of this CA from another control-plane node or a backup: a new one would be a new CA, which nobody trusts yet'
    return urgency === 'expired'
      ? 'the cluster needs a new CA: kubeadm renews none, and each certificate and kubeconfig under this one must be reissued'
      : 'plan the rotation of this CA now: kubeadm renews none, and whatever trusts or presents a certificate of it must follow step by step'
  }
  // `kubeadm certs renew` knows no kubelet.conf, and takes subject, names and usages of all others from the old certificate.
  if (urgency === 'misissued' || row.name === 'kubelet.conf') return anewAdvice(row)
  const renew = commandLine`kubeadm certs renew ${row.name}${embed(restart(row))}`
  return row.usedBy === undefined
    ? commandLine`copy the new ${`/etc/kubernetes/${row.name}`} to where it is used, after this: ${embed(renew)}`
    : renew
}

/** The end of a command that restarts what uses the files of a row. The kubelet starts a stopped container of a static pod again. */
function restart({ usedBy }: KubeadmLeaf | KubeadmKubeconfig): CommandLine {
  if (usedBy === undefined) return commandLine``
  return usedBy === 'the kubelet'
    ? commandLine` && systemctl restart kubelet`
    : commandLine` && crictl ps -q --name ${`^${usedBy}$`} | xargs -r crictl stop --timeout 30`
}

/**
 * Returns how kubeadm creates the files of a row again. It keeps a file that is there, and stops at half a pair, so what is there
 * (by default all of them) is moved aside first: nothing is deleted before its replacement exists.
 */
export function anewAdvice(row: KubeadmLeaf | KubeadmKubeconfig, present = filesOf(row)): CommandLine {
  const phase = row.kind === 'leaf' ? ['certs', row.name] : ['kubeconfig', row.name.replace(/\.conf$/, '')]
  const aside =
    present.length === 0
      ? commandLine``
      : commandLine`old=$(mktemp -d /var/tmp/kubernetes-old-XXXXXX) && mv ${present} "$old" && `
  return commandLine`on the node itself, with --config FILE if the cluster was created with one: ${embed(aside)}kubeadm init phase ${phase}${embed(restart(row))}`
}

/** The files of a row, where kubeadm puts them. */
function filesOf(row: KubeadmLeaf | KubeadmKubeconfig): readonly string[] {
  const { kubernetes, pki } = kubeadmFolders
  return row.kind === 'leaf'
    ? [`${pki}/${row.file}.crt`, `${pki}/${row.file}.key`]
    : [`${kubernetes}/${row.name}`]
}

function kubeletAdvice(entry: CertificateEntry, role: Role, urgency: Urgency): string {
  const { certificate } = entry
  if (role.kubelet === 'kubelet-serving') {
    return 'check and approve the pending request of this node: kcert csr list --signer kubernetes.io/kubelet-serving'
  }
  if (urgency !== 'expiring') {
    const node = plainNodeName(certificate.subject.commonName)
    return commandLine`put the new file into /etc/kubernetes on the node, move /var/lib/kubelet/pki/kubelet-client-* to another folder there, and restart the kubelet; on a control-plane node: kubeadm kubeconfig user --org system:nodes --client-name ${node} > kubelet.conf`
  }
  const { earliest, latest } = kubeletRotationWindow(certificate.notBefore, certificate.notAfter)
  return `the kubelet asks for its successor between ${timeText(earliest)} and ${timeText(latest)}; if it has not by then, on the node: journalctl -u kubelet | grep -i certificate`
}

function plainNodeName(commonName: string | undefined): string {
  return commonName !== undefined && /^system:node:[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$/.test(commonName)
    ? commonName
    : 'system:node:NODE'
}

function caAdvice({ group }: CertificateEntry, urgency: Urgency): string {
  if (group.owner.kind === 'cluster') {
    const otherwise =
      urgency === 'expired'
        ? 'the cluster needs a new CA and new certificates'
        : 'plan the rotation of the cluster CA now'
    return `compare it with /etc/kubernetes/pki/ca.crt of a control-plane node: when that one is newer, put it into this kubeconfig; when it is the same, ${otherwise}`
  }
  return urgency === 'expired'
    ? 'replace the CA by its successor; certificates that it signed must be reissued by that one'
    : 'make its successor now, put both into every bundle that holds this one, then reissue the certificates under it'
}

function userAdvice(entry: CertificateEntry): string {
  const row = kubeadmKubeconfigOf(entry)
  if (row !== undefined) {
    return commandLine`copy the new /etc/kubernetes/${row} from a control-plane node, after this on it: kubeadm certs renew ${row}`
  }
  return 'request a new client certificate for this user (signer kubernetes.io/kube-apiserver-client) and put it into the kubeconfig'
}

/** The kubeconfig of kubeadm's that a user's certificate was copied from, by its subject. */
export function kubeadmKubeconfigOf({ certificate }: CertificateEntry): string | undefined {
  const { commonName } = certificate.subject
  return kubeadmKubeconfigs.find((row) => row.commonName !== undefined && row.commonName === commonName)?.name
}
