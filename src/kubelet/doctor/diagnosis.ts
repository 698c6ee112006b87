import { orUndefined } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import type { Kubeconfig, KubeconfigUser } from '../../kubeconfig/kubeconfig.ts'
import { type OpenedKubeconfig, openKubeconfig } from '../../kubeconfig/open.ts'
import {
  currentLinkName,
  datedFileName,
  hasServingName,
  kubeletFile,
  recreatedByKubelet,
  servingNameRemedy,
  servingNameText,
} from '../../pki/kubelet.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'
import type { KubeletFacts, StoreEntry } from './facts.ts'
import type { Finding, Fix } from './finding.ts'
import { type EvaluatedPair, evaluatePair, type PairContext, type PairFault, type Role } from './pairs.ts'

// What is wrong with a kubelet's certificates, and which repairs need only the files on the node. A repair uses the newest usable pair.
// Without one, a new certificate must be signed.

interface Examined {
  readonly facts: KubeletFacts
  readonly now: Date
  readonly cas: readonly Certificate[]
  /** The kubeconfig; undefined when there is no readable one. */
  readonly opened: OpenedKubeconfig | undefined
}

/** Returns the findings, the worst first. A healthy kubelet has none. */
export async function diagnose(facts: KubeletFacts, now: Date): Promise<readonly Finding[]> {
  const cas = facts.trustBundles.flatMap(({ content }) => certificatesIn(content)).filter(({ isCa }) => isCa)
  const { kubeconfig } = facts
  const opened = kubeconfig && (await openKubeconfig(kubeconfig.content).catch(() => undefined))
  const examined: Examined = { facts, now, cas, opened }
  const single = [
    kubeconfigFinding(examined),
    storeFinding(examined, 'kubelet-client'),
    facts.ownServing === undefined ? servingFinding(examined) : ownServingFinding(examined),
    instanceFinding(facts),
  ].filter((finding) => finding !== undefined)
  const findings = [...single, ...modeFindings(examined), ...leftoverFindings(examined)]
  const ranks = { critical: 0, warning: 1, info: 2 }
  return findings.toSorted((a, b) => ranks[a.severity] - ranks[b.severity])
}

const named = ({ entries }: KubeletFacts, name: string): StoreEntry | undefined =>
  entries.find((entry) => entry.name === name)

const currentPath = ({ folder }: KubeletFacts, role: Role): string => `${folder}/${currentLinkName(role)}`

function contextOf({ facts, now, cas }: Examined, role: Role): PairContext {
  return {
    role,
    nowMs: now.getTime(),
    cas,
    ...(facts.nodeName !== undefined && { nodeName: facts.nodeName }),
  }
}

function evaluated(examined: Examined, role: Role, { content }: StoreEntry): EvaluatedPair {
  return content === undefined ? {} : evaluatePair(content, content, contextOf(examined, role))
}

/** Returns the path of the newest usable dated pair. */
function newestUsable(examined: Examined, role: Role): string | undefined {
  const { facts } = examined
  const usable = facts.entries.flatMap((entry) => {
    const file = kubeletFile(entry.name)
    if (file?.role !== role || file.part !== 'pair' || entry.kind !== 'file') return []
    const { leaf, fault } = evaluated(examined, role, entry)
    return leaf === undefined || fault !== undefined ? [] : [{ name: entry.name, leaf }]
  })
  const [newest] = usable.toSorted(
    (a, b) => b.leaf.notBeforeMs - a.leaf.notBeforeMs || (a.name < b.name ? 1 : -1),
  )
  return newest && `${facts.folder}/${newest.name}`
}

/** True when the current pair of a role is usable. */
function isSound(examined: Examined, role: Role): boolean {
  const entry = named(examined.facts, currentLinkName(role))
  if (entry?.kind !== 'link' || entry.content === undefined) return false
  const { leaf, fault } = evaluated(examined, role, entry)
  return leaf !== undefined && fault === undefined
}

function storeFinding(examined: Examined, role: Role): Finding | undefined {
  const { facts } = examined
  const path = currentPath(facts, role)
  const entry = named(facts, currentLinkName(role))
  const other = newestUsable(examined, role)
  const relink: readonly Fix[] | undefined =
    other === undefined ? undefined : [{ kind: 'link', path, to: other }]
  const finding = (id: Finding['id'], what: string, why: string, fixes = relink): Finding => ({
    ...{ id, severity: 'critical', path, what, why },
    next: fixes?.[0] === undefined ? withoutPair(facts, role) : fixText(fixes[0]),
    ...(fixes && { fixes }),
  })
  if (entry === undefined) {
    const hasPairs = facts.entries.some(
      ({ name }) => kubeletFile(name)?.role === role && kubeletFile(name)?.part === 'pair',
    )
    const isNamed = Buffer.from(facts.kubeconfig?.content ?? []).includes(path) && role === 'kubelet-client'
    if (!hasPairs && !isNamed) return undefined
    return finding(
      'LINK_MISSING',
      'the link is missing',
      'the kubelet reads its certificate only through this link',
    )
  }
  if (entry.kind === 'link') {
    if (entry.content === undefined)
      return finding(
        'LINK_DANGLING',
        `the link points to ${entry.linkTarget}, which does not exist`,
        'the kubelet finds no certificate',
      )
    return pairFinding(examined, role, entry, finding)
  }
  const { leaf, fault } = evaluated(examined, role, entry)
  const adopt: readonly Fix[] | undefined =
    leaf === undefined || fault !== undefined
      ? relink
      : [{ kind: 'adopt', path, to: adoptedPath(facts, role, leaf) }]
  return finding(
    'LINK_IS_FILE',
    'it is a regular file',
    'the kubelet requires a link, and does not start with a file',
    adopt,
  )
}

function pairFinding(
  examined: Examined,
  role: Role,
  entry: StoreEntry,
  finding: (id: Finding['id'], what: string, why: string) => Finding,
): Finding | undefined {
  const { now, facts } = examined
  const { leaf, fault } = evaluated(examined, role, entry)
  if (fault !== undefined) return finding(fault.id, fault.what, fault.why)
  if (leaf === undefined) return undefined
  const overdueMs = leaf.notBeforeMs + (leaf.notAfterMs - leaf.notBeforeMs) * 0.9
  if (now.getTime() < overdueMs) return undefined
  return {
    ...{ id: 'RENEWAL_OVERDUE', severity: 'warning', path: currentPath(facts, role) },
    what: `it expires at ${leaf.notAfter.toISOString()} and was not renewed`,
    why: 'a kubelet with rotateCertificates: true renews at 70 to 90 % of the validity, which has passed; its request may be pending',
    next: 'kcert csr list',
  }
}

/** Returns a name with the time of the certificate, so that the order of names stays that of the pairs. */
function adoptedPath(facts: KubeletFacts, role: Role, { notBefore }: Certificate): string {
  for (let seconds = 0; ; seconds++) {
    const name = datedFileName(role, new Date(notBefore.getTime() + seconds * 1000))
    if (named(facts, name) === undefined) return `${facts.folder}/${name}`
  }
}

/** The kubelet requests a new certificate at its start; without a bootstrap kubeconfig, the CA's key has to sign one. */
function withoutPair(facts: KubeletFacts, role: Role): string {
  const { node, hasBootstrapKubeconfig, kubeconfigPath } = facts
  if (role === 'kubelet-serving') return recreatedByKubelet([currentPath(facts, role)])
  return hasBootstrapKubeconfig
    ? recreatedByKubelet([kubeconfigPath])
    : commandLine`kcert renew kubelet.conf --node ${node} --inventory kcert.yaml`
}

function servingFinding(examined: Examined): Finding | undefined {
  const { facts } = examined
  if (!facts.asksForServing) return selfSignedFinding(examined)
  const found = storeFinding(examined, 'kubelet-serving')
  if (found !== undefined || named(facts, currentLinkName('kubelet-serving')) !== undefined) return found
  return {
    ...{ id: 'SERVING_MISSING', severity: 'warning', path: currentPath(facts, 'kubelet-serving') },
    what: 'the kubelet has no serving certificate signed by the cluster',
    why: 'serverTLSBootstrap is on, and its request is not approved; logs and exec do not work',
    next: 'kcert csr approve --policy builtin',
  }
}

/** The pair that a kubelet creates at its first start and never renews. */
function selfSignedFinding({ facts, now }: Examined): Finding | undefined {
  const [certificate, key] = [named(facts, 'kubelet.crt'), named(facts, 'kubelet.key')]
  if (certificate?.content === undefined || key?.content === undefined) return undefined
  const evaluating = { role: 'kubelet-serving', nowMs: now.getTime(), cas: [] } as const
  const { fault } = evaluatePair(certificate.content, key.content, evaluating)
  // A self-signed certificate may have any subject.
  if (fault === undefined || !isAboutUse(fault))
    return servingNameFinding(certificate.content, `${facts.folder}/kubelet.crt`, facts)
  const files = ['kubelet.crt', 'kubelet.key'].map((name) => `${facts.folder}/${name}`)
  return {
    ...{ id: 'SELF_SIGNED_UNUSABLE', severity: fault.id === 'EXPIRED' ? 'warning' : 'critical' },
    ...{
      path: `${facts.folder}/kubelet.crt`,
      what: `the kubelet's own serving certificate: ${fault.what}`,
    },
    why: fault.id === 'EXPIRED' ? 'the kubelet keeps serving it, and never creates another' : fault.why,
    next: recreatedByKubelet(files),
    fixes: files.map((path) => ({ kind: 'remove', path })),
  }
}

function ownServingFinding({ facts }: Examined): Finding | undefined {
  const { path = '', content = new Uint8Array() } = facts.ownServing ?? {}
  if (certificatesIn(content).length > 0) return servingNameFinding(content, path, facts)
  return {
    ...{ id: 'UNREADABLE', severity: 'critical', path },
    what: 'no certificate can be read',
    why: 'the kubelet serves its tlsCertFile, and does not start without it',
    next: commandLine`kcert inspect ${path}`,
  }
}

function servingNameFinding(
  content: Uint8Array,
  path: string,
  { nodeName }: KubeletFacts,
): Finding | undefined {
  const [leaf] = certificatesIn(content)
  if (leaf === undefined || hasServingName(leaf.subject.commonName, nodeName)) return undefined
  return {
    ...{ id: 'SERVING_NAME', severity: 'info', path },
    what: `the serving certificate is for ${leaf.subject.text || 'an empty name'}`,
    why: servingNameText,
    fix: servingNameRemedy,
    next: servingNameRemedy,
  }
}

function instanceFinding({ instance }: KubeletFacts): Finding | undefined {
  const { path = '', changes = [], fault } = instance ?? {}
  const finding = { id: 'INSTANCE_CONFIG', severity: 'warning', path } as const
  if (fault !== undefined)
    return {
      ...finding,
      what: `it cannot be read: ${fault}`,
      why: 'kubeadm upgrade merges it into config.yaml, and fails',
      next: commandLine`cat ${path}`,
    }
  if (changes.length === 0) return undefined
  return {
    ...finding,
    what: `it changes ${changes.join(', ')}`,
    why: 'the kubelet does not read this file: the change takes effect when kubeadm upgrade merges it into config.yaml',
    fix: 'remove these settings from the file, or apply them now',
    next: 'kubeadm upgrade node phase kubelet-config && systemctl restart kubelet',
  }
}

function isAboutUse({ id }: PairFault): boolean {
  return id === 'PAIR_MISMATCH' || id === 'UNREADABLE' || id === 'EXPIRED'
}

function kubeconfigFinding(examined: Examined): Finding | undefined {
  const { facts, opened } = examined
  const { kubeconfig, kubeconfigPath: path } = facts
  if (kubeconfig === undefined) {
    const next = facts.hasBootstrapKubeconfig
      ? 'systemctl restart kubelet'
      : 'kubeadm init phase kubeconfig kubelet'
    return {
      ...{ id: 'KUBECONFIG_MISSING', severity: 'critical', path, next },
      what: 'there is no kubeconfig',
      why: facts.hasBootstrapKubeconfig
        ? 'at its next start the kubelet creates one with bootstrap-kubelet.conf'
        : 'without it the kubelet cannot connect to an API server; the next command creates it on a control-plane node, and a worker must join again',
    }
  }
  const user = opened?.refusal === undefined ? userOf(opened?.kubeconfig) : undefined
  if (user === undefined) {
    return {
      ...{ id: 'KUBECONFIG_UNREADABLE', severity: 'critical', path },
      what:
        opened?.refusal === undefined
          ? 'it cannot be read, or has no user'
          : `client-go rejects it: ${opened.refusal}`,
      why: 'the kubelet does not start with it',
      next: commandLine`kcert inspect ${path}`,
    }
  }
  return userFinding(examined, user)
}

function userFinding(examined: Examined, user: KubeconfigUser): Finding | undefined {
  const { facts } = examined
  const { kubeconfigPath: path } = facts
  const { name, clientCertificate, clientKey } = user
  if (clientCertificate === undefined) return undefined
  const to = currentPath(facts, 'kubelet-client')
  const absolute = (file: string): string =>
    file.startsWith('/') ? file : `${path.slice(0, path.lastIndexOf('/'))}/${file}`
  const isCurrent = [clientCertificate, clientKey].every(
    (one) => one?.data === undefined && one?.file !== undefined && absolute(one.file) === to,
  )
  if (isCurrent) return undefined
  const certificates = clientCertificate.data ?? facts.named.get(absolute(clientCertificate.file ?? ''))
  const key = clientKey?.data ?? facts.named.get(absolute(clientKey?.file ?? ''))
  const nothing = new Uint8Array()
  const { fault } = evaluatePair(
    certificates ?? nothing,
    key ?? nothing,
    contextOf(examined, 'kubelet-client'),
  )
  const hasStore = facts.entries.some(({ name: its }) => kubeletFile(its)?.role === 'kubelet-client')
  // A valid certificate from another source is not a fault.
  if (!hasStore && fault === undefined) return undefined
  const isSafe = isSound(examined, 'kubelet-client')
  const embeds = clientCertificate.data !== undefined || clientKey?.data !== undefined
  const where = embeds ? 'embedded data' : `the file ${clientCertificate.file}`
  return {
    ...{ id: embeds ? 'KUBECONFIG_EMBEDS' : 'KUBECONFIG_ELSEWHERE', path },
    severity: fault === undefined ? 'warning' : 'critical',
    what: `user ${name} has ${where} instead of ${to}${fault === undefined ? '' : `: ${fault.what}`}`,
    why: 'the kubelet uses it at each start, and its renewed certificate is never written there',
    next: isSafe
      ? commandLine`kubectl config set-credentials ${name} --client-certificate ${to} --client-key ${to} --kubeconfig ${path}`
      : 'kcert kubelet doctor --fix',
    ...(isSafe && { fixes: [{ kind: 'point', path, user: name, to } as const] }),
  }
}

/** Returns the user of the current context, or the first one. */
function userOf(kubeconfig: Kubeconfig | undefined): KubeconfigUser | undefined {
  const context = kubeconfig?.contexts.find(({ name }) => name === kubeconfig.currentContext)
  return kubeconfig?.users.find(({ name }) => name === context?.user) ?? kubeconfig?.users[0]
}

const others = 0o077

function modeFindings({ facts, opened }: Examined): Finding[] {
  const { entries, folder, folderMode, kubeconfig } = facts
  const exposed = (path: string, mode: number): Finding => ({
    ...{ id: 'KEY_EXPOSED', severity: 'critical', path },
    what: `its mode is ${modeText(mode)}`,
    why: 'it contains a private key that users other than root can read or change; anyone who read it can act as the node until the certificate expires, so renew it too',
    next: commandLine`chmod 600 ${path} && kcert renew kubelet.conf`,
    fixes: [{ kind: 'mode', path, mode: 0o600 }],
  })
  const holdsKey = ({ name }: StoreEntry): boolean => {
    const part = kubeletFile(name)?.part
    return part !== undefined && part !== 'self-signed'
  }
  const files = entries
    .filter((entry) => entry.kind === 'file' && holdsKey(entry) && (entry.mode & others) !== 0)
    .map(({ name, mode }) => exposed(`${folder}/${name}`, mode))
  if (opened?.kubeconfig.users.some(isSecret) && kubeconfig !== undefined && (kubeconfig.mode & others) !== 0)
    files.push(exposed(kubeconfig.path, kubeconfig.mode))
  if (folderMode === undefined || (folderMode & 0o022) === 0) return files
  return [
    ...files,
    {
      ...{ id: 'FOLDER_WRITABLE', severity: 'critical' },
      path: folder,
      what: `its mode is ${modeText(folderMode)}`,
      why: 'users other than root can put a certificate there: check its files before you use them',
      next: commandLine`ls -l ${folder} && chmod 755 ${folder}`,
    },
  ]
}

function isSecret({ clientKey, credentials }: KubeconfigUser): boolean {
  return clientKey?.data !== undefined || credentials.some(({ kind }) => kind === 'token' || kind === 'basic')
}

function modeText(mode: number): string {
  return (mode & 0o7777).toString(8).padStart(4, '0')
}

function leftoverFindings(examined: Examined): Finding[] {
  const { facts } = examined
  const found: Finding[] = []
  for (const { name, kind } of facts.entries) {
    const file = kubeletFile(name)
    if (file === undefined || !(file.part === 'updated' || file.part === 'bootstrap-key')) continue
    const path = `${facts.folder}/${name}`
    const isSafe = isSound(examined, file.role)
    const stops = file.part === 'updated' && kind !== 'link'
    found.push({
      ...{ id: 'LEFTOVER', severity: stops ? 'critical' : 'info', path },
      what:
        file.part === 'updated'
          ? 'leftover of an interrupted change of the link'
          : 'key of an interrupted request',
      why: stops
        ? 'it is not a link, and the kubelet does not start with a file of this name'
        : 'the kubelet removes it when it completes the request',
      next: isSafe ? 'kcert kubelet doctor --fix' : commandLine`ls -l ${facts.folder}`,
      ...(isSafe && { fixes: [{ kind: 'remove', path }] }),
    })
  }
  if (facts.hasBootstrapKubeconfig && isSound(examined, 'kubelet-client')) {
    found.push({
      ...{ id: 'BOOTSTRAP_LEFT', severity: 'info', path: '/etc/kubernetes/bootstrap-kubelet.conf' },
      what: 'the bootstrap kubeconfig still exists',
      why: 'its token may still be valid; kubeadm deletes the file once a node has joined',
      next: 'shred -u /etc/kubernetes/bootstrap-kubelet.conf',
    })
  }
  return found
}

function fixText(fix: Fix): string {
  switch (fix.kind) {
    case 'link':
      return commandLine`ln -sfn ${fix.to} ${fix.path} && systemctl restart kubelet`
    case 'adopt':
      return commandLine`mv ${fix.path} ${fix.to} && ln -s ${fix.to} ${fix.path} && systemctl restart kubelet`
    default:
      return ''
  }
}

function certificatesIn(content: Uint8Array): readonly Certificate[] {
  return orUndefined(() => readCertificates(content)) ?? []
}
