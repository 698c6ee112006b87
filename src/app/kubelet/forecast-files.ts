import { lstatSync, readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { shapedRequest } from '../../csr/request-shape.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError, messageOf } from '../../errors/kcert-error.ts'
import {
  type ControllerManagerFacts,
  type KubeletFacts,
  type SeenCertificate,
  seenCertificate,
  signingDurationMs,
} from '../../kubelet/forecast.ts'
import { kubeletFile, nodeUserPrefix } from '../../pki/kubelet.ts'
import { readKubeletConfiguration } from '../../pki/kubelet-configuration.ts'
import { readStaticPod } from '../../pki/static-pod.ts'
import { linkAt, readFile } from '../../system/files.ts'
import { isFolder } from '../../system/folders.ts'
import { type Certificate, readCertificates } from '../../x509/certificate.ts'
import { pendingOf, requestsOfKubelets } from './forecast-live.ts'

// What `kcert kubelet forecast` finds in files: those of the node, or copies from many nodes in one folder.

/** Deep enough for NODE/var/lib/kubelet/pki below a folder of copies. */
const deepest = 10
/** Folders of pods' volumes: they contain many files, but none of the kubelet. */
const passedOver = new Set(['pods', 'plugins', 'plugins_registry', 'device-plugins', 'containers'])

interface Kubelet {
  readonly folder: string
  readonly certificates: SeenCertificate[]
  configuration?: KubeletFacts['configuration']
  name?: string
  readonly unread: string[]
}

/** Returns the facts in these files and folders. Throws KCERT_FILE_NOT_FOUND, and KCERT_USAGE if there are no kubelet files. */
export async function factsInFiles(
  targets: readonly string[],
): Promise<{ kubelets: KubeletFacts[]; controllerManagers: ControllerManagerFacts[] }> {
  const kubelets = new Map<string, Kubelet>()
  const controllerManagers: ControllerManagerFacts[] = []
  const requests: RequestObject[] = []
  const kubeletAt = (folder: string): Kubelet => {
    const known = kubelets.get(folder) ?? { folder, certificates: [], unread: [] }
    kubelets.set(folder, known)
    return known
  }
  for (const path of targets.flatMap(filesBelow)) {
    const name = basename(path)
    const stored = kubeletFile(name)
    if (stored !== undefined) {
      if (stored.part === 'current' || stored.part === 'self-signed')
        addCertificate(kubeletAt(rootOf(path)), path, stored.role)
      continue
    }
    const text = textAt(path)
    if (text === undefined) continue
    if (/^kind:\s*"?KubeletConfiguration\b/m.test(text)) {
      const {
        rotateCertificates = false,
        serverTlsBootstrap = false,
        tlsCertFile,
      } = await readKubeletConfiguration(text, path)
      kubeletAt(dirname(path)).configuration = { rotateCertificates, serverTlsBootstrap, tlsCertFile }
    } else if (/^kind:\s*"?Pod\b/m.test(text) && text.includes('kube-controller-manager')) {
      const { containers } = await readStaticPod(text)
      const container = containers.find(({ program }) => program === 'kube-controller-manager')
      if (container !== undefined)
        controllerManagers.push({
          location: path,
          clusterSigningDurationMs: signingDurationMs(container.argv),
        })
    } else requests.push(...requestsIn(text))
  }
  const found = [...kubelets.values()].filter(
    ({ certificates, configuration }) => certificates.length > 0 || configuration !== undefined,
  )
  if (found.length === 0)
    throw new KcertError('KCERT_USAGE', `no files of a kubelet in ${targets.join(', ')}`, {
      why: 'looked for: kubelet-client-current.pem, kubelet-server-current.pem, kubelet.crt, and a KubeletConfiguration',
      next: 'kcert kubelet forecast /var/lib/kubelet',
    })
  const asked = requestsOfKubelets(requests)
  return {
    kubelets: found.map(({ folder, name = folder, certificates, configuration, unread }) => ({
      name,
      configuration,
      certificates: inUse(certificates),
      pending: pendingOf(asked, name),
      unread,
    })),
    controllerManagers,
  }
}

/** Returns the files below a folder, or the file itself. */
function filesBelow(target: string): string[] {
  const path = resolve(target)
  if (!isFolder(path)) {
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return [path]
    throw new KcertError('KCERT_FILE_NOT_FOUND', `${target} does not exist`, {
      next: commandLine`ls -l ${dirname(path)}`,
    })
  }
  const found: string[] = []
  const walk = (folder: string, depth: number): void => {
    let entries: ReturnType<typeof entriesOf>
    try {
      entries = entriesOf(folder)
    } catch (error) {
      throw new KcertError('KCERT_FILE_UNREADABLE', `${folder} cannot be read`, {
        why: messageOf(error),
        next: commandLine`ls -ld ${folder}`,
      })
    }
    for (const entry of entries) {
      if (entry.isDirectory() && depth < deepest && !passedOver.has(entry.name))
        walk(join(folder, entry.name), depth + 1)
      else if ((entry.isFile() || entry.isSymbolicLink()) && isOfInterest(entry.name))
        found.push(join(folder, entry.name))
    }
  }
  walk(path, 0)
  return found
}

function entriesOf(folder: string) {
  return readdirSync(folder, { withFileTypes: true }).sort((one, other) => (one.name < other.name ? -1 : 1))
}

function isOfInterest(name: string): boolean {
  const part = kubeletFile(name)?.part
  return part === 'current' || part === 'self-signed' || /\.(?:ya?ml|json)$/.test(name)
}

/** Returns /var/lib/kubelet for /var/lib/kubelet/pki/kubelet-client-current.pem. */
function rootOf(path: string): string {
  const folder = dirname(path)
  return basename(folder) === 'pki' ? dirname(folder) : folder
}

function addCertificate(kubelet: Kubelet, path: string, role: 'kubelet-client' | 'kubelet-serving'): void {
  const usage = role === 'kubelet-client' ? 'client' : 'serving'
  const leaf = leafAt(path)
  if (typeof leaf === 'string') {
    kubelet.unread.push(`${path} ${leaf}`)
    return
  }
  kubelet.certificates.push(seenCertificate(leaf, { usage, source: 'file', location: path }))
  const { commonName = '' } = leaf.subject
  if (commonName.startsWith(nodeUserPrefix)) kubelet.name = commonName.slice(nodeUserPrefix.length)
  // "w1@1795298400" is the common name of a kubelet's self-signed certificate.
  else if (/@\d+$/.test(commonName)) kubelet.name ??= commonName.replace(/@\d+$/, '')
}

/** The link in a copied folder has the path on its original node, but the file is next to it. */
function leafAt(path: string): Certificate | string {
  const read = readFile(path)
  const { linkTarget } = linkAt(path)
  const beside = linkTarget === undefined ? undefined : join(dirname(path), basename(linkTarget))
  const found = 'reason' in read && beside !== undefined ? readFile(beside) : read
  if ('reason' in found) return found.detail
  try {
    return readCertificates(found.bytes)[0] ?? 'contains no certificate'
  } catch (error) {
    return `contains no readable certificate: ${messageOf(error)}`
  }
}

/** A kubelet's self-signed certificate no longer counts after the cluster has issued one. */
function inUse(certificates: readonly SeenCertificate[]): SeenCertificate[] {
  const isGiven = certificates.some(({ usage, isSelfSigned }) => usage === 'serving' && !isSelfSigned)
  return certificates.filter(({ usage, isSelfSigned }) => !(isGiven && usage === 'serving' && isSelfSigned))
}

function textAt(path: string): string | undefined {
  const read = readFile(path)
  return 'reason' in read ? undefined : Buffer.from(read.bytes).toString('utf8')
}

/** Returns requests in the format of `kubectl get csr -o json`; none from any other file. */
function requestsIn(text: string): RequestObject[] {
  if (!text.includes('CertificateSigningRequest')) return []
  try {
    const value = JSON.parse(text) as { items?: unknown[] }
    return (Array.isArray(value.items) ? value.items : [value]).flatMap((item): RequestObject[] => {
      const request = shapedRequest(item as Record<string, unknown>)
      return 'fault' in request ? [] : [request]
    })
  } catch {
    return []
  }
}
