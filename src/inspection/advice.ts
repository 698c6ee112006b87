import { type CommandLine, commandLine, embed } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'
import type { KubeadmKubeconfig, KubeadmLeaf, KubeadmRow } from '../pki/kubeadm.ts'
import { kubeadmFolders, kubeadmKubeconfigs } from '../pki/kubeadm.ts'
import { bindingNotices } from '../pki/kubeadm-organization.ts'
import { kubeletRotationWindow, recreatedByKubelet } from '../pki/kubelet.ts'
import type { CertificateEntry, Role } from './entries.ts'
import { timeText } from './spans.ts'

// Advice for an expiring certificate, by its role. Names from a certificate are included in a command only if they are plain node
// names, because the command may be pasted.

/** `misissued`: subject, SANs or usages do not match the role, and a renewal that copies them would copy the fault. */
export type Urgency = 'expiring' | 'expired' | 'wrong' | 'misissued'

/** Returns how to replace a certificate, with the check's text at the beginning. */
export function reissueAdvice(what: string, entry: CertificateEntry, role: Role, urgency: Urgency): Advice {
  const { fix, next } = renewalAdvice(entry, role, urgency)
  return { fix: fix === undefined ? what : `${what}: ${fix}`, next }
}

/** Returns how to replace a certificate: a command if there is one. */
export function renewalAdvice(entry: CertificateEntry, role: Role, urgency: Urgency): Advice {
  if (role.isRecord) return recordAdvice(entry)
  if (role.kubelet !== undefined) return kubeletAdvice(entry, role, urgency)
  if (role.row !== undefined) return kubeadmAdvice(role.row, urgency)
  if (role.name?.startsWith('kubelet-serving, self-signed')) return selfSignedAdvice
  if (role.isTrusted || entry.certificate.isCa) return caAdvice(entry, urgency)
  const { owner } = entry.group
  if (owner.kind === 'user') return userAdvice(entry)
  if (owner.kind === 'served')
    return { fix: 'renew it on the server, then check that the process serves the new one' }
  if (owner.kind === 'value')
    return owner.object.kind === 'Secret'
      ? {
          fix: 'renew the certificate in this Secret, or check why cert-manager did not',
          next: 'kubectl get certificate,certificaterequest -A',
        }
      : { fix: 'renew the certificate in this ConfigMap' }
  return { fix: 'renew it with its issuer' }
}

const selfSignedAdvice: Advice = {
  fix: 'on that node move kubelet.crt and kubelet.key to another folder and restart the kubelet, which creates new ones; or set serverTLSBootstrap: true',
  next: recreatedByKubelet(['/var/lib/kubelet/pki/kubelet.crt', '/var/lib/kubelet/pki/kubelet.key']),
}

function recordAdvice({ group }: CertificateEntry): Advice {
  return group.owner.kind === 'issued'
    ? { fix: 'nothing to do: Kubernetes deletes old CSR objects by itself' }
    : { fix: 'nothing to do: the kubelet uses a newer file, and you may delete this one' }
}

/** Returns how to renew the certificate in a row of kubeadm's table. */
export function kubeadmAdvice(
  row: Exclude<KubeadmRow, { kind: 'service-account-key' }>,
  urgency: Urgency,
): Advice {
  if (row.kind === 'ca') {
    if (urgency === 'misissued')
      return {
        fix: 'restore the certificate of this CA from another control-plane node or a backup: a new one would be another CA, which no component trusts yet',
      }
    return urgency === 'expired'
      ? {
          fix: 'renew the CA certificate and reissue everything that it signed; no command of kubeadm does either',
          next: 'kcert rotate-ca recover --dry-run',
        }
      : {
          fix: 'plan the rotation of this CA now, because CAs are not renewed by kubeadm',
          next: 'kcert rotate-ca plan',
        }
  }
  // A renewal takes subject, SANs and usages from the old certificate.
  if (urgency === 'misissued') return { fix: creationNote(row), next: creationCommand(row) }
  return { next: commandLine`sudo kcert renew ${row.name}` }
}

/**
 * Returns the end of a command that restarts the component that uses a row's files. The kubelet restarts a stopped container of a
 * static pod.
 */
function restart({ usedBy }: KubeadmLeaf | KubeadmKubeconfig): CommandLine {
  if (usedBy === undefined) return commandLine``
  return usedBy === 'the kubelet'
    ? commandLine` && systemctl restart kubelet`
    : commandLine` && crictl ps -q --name ${`^${usedBy}$`} | xargs -r crictl stop --timeout 30`
}

/** Returns a note for operators before {@link creationCommand}. Its kubeadm decides whether the new certificate has an O. */
export function creationNote(row: KubeadmLeaf | KubeadmKubeconfig): string {
  return [onNodeText, ...bindingNotices(row)].join('. ')
}

const onNodeText =
  'create it again on the node itself, with --config FILE if the cluster was created with one'

/**
 * Returns the command with which kubeadm creates the files of a row again. kubeadm keeps an existing file and stops if half of a
 * pair exists. Therefore the existing files (by default all of them) are moved aside first: none is deleted before its
 * replacement exists.
 */
export function creationCommand(row: KubeadmLeaf | KubeadmKubeconfig, present = filesOf(row)): CommandLine {
  const phase = row.kind === 'leaf' ? ['certs', row.name] : ['kubeconfig', row.name.replace(/\.conf$/, '')]
  const aside =
    present.length === 0
      ? commandLine``
      : commandLine`old=$(mktemp -d /var/tmp/kubernetes-old-XXXXXX) && mv ${present} "$old" && `
  return commandLine`${embed(aside)}kubeadm init phase ${phase}${embed(restart(row))}`
}

/** Returns the files of a row, at kubeadm's paths. */
function filesOf(row: KubeadmLeaf | KubeadmKubeconfig): readonly string[] {
  const { kubernetes, pki } = kubeadmFolders
  return row.kind === 'leaf'
    ? [`${pki}/${row.file}.crt`, `${pki}/${row.file}.key`]
    : [`${kubernetes}/${row.name}`]
}

function kubeletAdvice(entry: CertificateEntry, role: Role, urgency: Urgency): Advice {
  const { certificate } = entry
  if (role.kubelet === 'kubelet-serving') {
    return {
      fix: 'check and approve the pending request of this node',
      next: 'kcert csr list --signer kubernetes.io/kubelet-serving',
    }
  }
  if (urgency === 'misissued') {
    const node = plainNodeName(certificate.subject.commonName)
    return {
      fix: 'create a kubelet.conf on a control-plane node, copy it to /etc/kubernetes of this node, move /var/lib/kubelet/pki/kubelet-client-* to another folder, and restart the kubelet',
      next: commandLine`kubeadm kubeconfig user --org system:nodes --client-name ${node} > kubelet.conf`,
    }
  }
  if (urgency !== 'expiring')
    return {
      fix: 'run this on the node; for a worker node, run it where the inventory is, with --inventory kcert.yaml',
      next: 'sudo kcert renew kubelet.conf',
    }
  const { earliest, latest } = kubeletRotationWindow(certificate.notBefore, certificate.notAfter)
  return {
    fix: `the kubelet requests a new one between ${timeText(earliest)} and ${timeText(latest)}; if it has not by then, read its log on the node`,
    next: 'journalctl -u kubelet | grep -i certificate',
  }
}

function plainNodeName(commonName: string | undefined): string {
  return commonName !== undefined && /^system:node:[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?$/.test(commonName)
    ? commonName
    : 'system:node:NODE'
}

function caAdvice({ group }: CertificateEntry, urgency: Urgency): Advice {
  const hasExpired = urgency === 'expired'
  if (group.owner.kind === 'cluster') {
    const otherwise = hasExpired
      ? 'the cluster needs a new CA and new certificates'
      : 'plan the rotation of the cluster CA now'
    return {
      fix: `compare it with /etc/kubernetes/pki/ca.crt of a control-plane node. If that one is newer, put it into this kubeconfig. If it is the same, ${otherwise}`,
    }
  }
  return {
    fix: hasExpired
      ? 'replace the CA with its successor, and reissue the certificates that it signed from that one'
      : 'create its successor now, add it to every bundle that contains this one, then reissue the certificates that this one signed',
  }
}

function userAdvice(entry: CertificateEntry): Advice {
  const row = kubeadmKubeconfigOf(entry)
  if (row === undefined)
    return {
      fix: 'request a new client certificate for this user (signer kubernetes.io/kube-apiserver-client) and put it into the kubeconfig',
    }
  const fix = `renew ${row} on a control-plane node, then copy /etc/kubernetes/${row} from there`
  return { fix, next: commandLine`sudo kcert renew ${row}` }
}

/** Returns kubeadm's kubeconfig from which a user's certificate was copied, by its subject. */
export function kubeadmKubeconfigOf({ certificate }: CertificateEntry): string | undefined {
  const { commonName } = certificate.subject
  return kubeadmKubeconfigs.find((row) => row.commonName !== undefined && row.commonName === commonName)?.name
}
