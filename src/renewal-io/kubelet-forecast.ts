import { messageOf } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { openKubeconfig } from '../kubeconfig/open.ts'
import {
  type ControllerManagerFacts,
  type KubeletFacts,
  type SeenCertificate,
  seenCertificate,
  signingDurationMs,
} from '../kubelet/forecast.ts'
import { type Flags, flagsOf } from '../pki/component-flags.ts'
import { kubeadmFolders } from '../pki/kubeadm.ts'
import { currentLinkName } from '../pki/kubelet.ts'
import {
  type KubeletConfiguration,
  readKubeletConfiguration,
  withKubeletFlags,
} from '../pki/kubelet-configuration.ts'
import type { FileContent, NodeAccess, ProcessFacts, ReadFile } from '../pki/node-access.ts'
import { linkedFrom } from '../site/certificate-files.ts'
import { staticPodDefinitions } from '../site/definitions.ts'
import { dropInsOn } from '../site/kubelet-drop-ins.ts'
import { textOf } from '../site/node-files.ts'
import { readCertificates } from '../x509/certificate.ts'

// What a node's own files show about its kubelet's certificates and their signer, without an API server.

export interface NodeForecastFacts {
  readonly kubelet: KubeletFacts
  readonly controllerManagers: readonly ControllerManagerFacts[]
}

/** Returns the facts of a node that the forecast needs. Throws the node's error if it is unreachable. */
export async function readForecast(node: NodeAccess): Promise<NodeForecastFacts> {
  const processes = await node.processes(['kubelet', 'kube-controller-manager'])
  const flags = flagsOf(processes.find(({ program }) => program === 'kubelet')?.argv ?? [])
  const unread: string[] = []
  const file = await configurationOf(node, flags, unread)
  const configured = withKubeletFlags<Partial<KubeletConfiguration>>(file ?? {}, flags)
  const folder = flags['cert-dir'] ?? kubeadmFolders.kubeletPki
  const servingFile = configured.tlsCertFile
  const [client, serving] = await Promise.all([
    clientOn(node, folder, flags, unread),
    firstOf(
      node,
      servingFile === undefined
        ? [`${folder}/${currentLinkName('kubelet-serving')}`, `${folder}/kubelet.crt`]
        : [servingFile],
      { usage: 'serving', unread },
    ),
  ])
  const manifests = configured.staticPodPath ?? `${kubeadmFolders.kubernetes}/manifests`
  // A setting in neither is off, if the file was read.
  const unset = file && false
  const { rotateCertificates = unset, serverTlsBootstrap = unset } = configured
  return {
    kubelet: {
      name: node.name,
      configuration: { rotateCertificates, serverTlsBootstrap, tlsCertFile: servingFile },
      certificates: [client, serving].filter((one) => one !== undefined),
      pending: [],
      unread,
    },
    controllerManagers: await controllerManagersOn(node, manifests, { processes, unread }),
  }
}

async function configurationOf(
  node: NodeAccess,
  flags: Flags,
  unread: string[],
): Promise<KubeletConfiguration | undefined> {
  const path = flags.config ?? '/var/lib/kubelet/config.yaml'
  const [file] = await node.readFiles([path])
  if (file?.found !== 'file') {
    unread.push(`its configuration ${path} ${failureOf(file)}`)
    return undefined
  }
  try {
    return await readKubeletConfiguration(textOf(file), path, await dropInsOn(node, flags))
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    unread.push(`its configuration ${path} cannot be read: ${error.why ?? error.message}`)
    return undefined
  }
}

/** Returns the client certificate from the kubelet's store, or before it has one, from its kubeconfig. */
async function clientOn(
  node: NodeAccess,
  folder: string,
  flags: Flags,
  unread: string[],
): Promise<SeenCertificate | undefined> {
  const current = `${folder}/${currentLinkName('kubelet-client')}`
  const kubeconfig = flags.kubeconfig ?? `${kubeadmFolders.kubernetes}/kubelet.conf`
  const [stored, named] = await node.readFiles([current, kubeconfig])
  if (stored?.found !== 'absent') return seenIn(stored, { usage: 'client', unread })
  const material = named?.found === 'file' ? await clientIn(named, unread) : undefined
  if (named?.found === 'file' && material?.data !== undefined)
    return seenIn({ ...named, content: material.data }, { usage: 'client', unread })
  const elsewhere = material?.file === undefined ? [] : [linkedFrom(kubeconfig, material.file)]
  return firstOf(node, [current, ...elsewhere].toReversed(), { usage: 'client', unread })
}

async function clientIn({ path, content }: ReadFile, unread: string[]) {
  const opened = await openKubeconfig(content)
  if (opened?.refusal !== undefined) {
    unread.push(`${path}: client-go refuses it: ${opened.refusal}`)
    return undefined
  }
  return opened?.kubeconfig.users.find(({ clientCertificate }) => clientCertificate !== undefined)
    ?.clientCertificate
}

interface Asked {
  readonly usage: SeenCertificate['usage']
  /** Receives what cannot be read. */
  readonly unread: string[]
}

/** Reads the first of these files that exists. */
async function firstOf(
  node: NodeAccess,
  paths: readonly string[],
  asked: Asked,
): Promise<SeenCertificate | undefined> {
  const files = await node.readFiles(paths)
  return seenIn(files.find(({ found }) => found !== 'absent') ?? files[0], asked)
}

function seenIn(file: FileContent | undefined, { usage, unread }: Asked): SeenCertificate | undefined {
  if (file === undefined) return undefined
  const fault = (what: string): undefined => {
    unread.push(`its ${usage} certificate ${file.path} ${what}`)
  }
  if (file.found !== 'file') return fault(failureOf(file))
  try {
    const [leaf] = readCertificates(file.content)
    if (leaf === undefined) return fault('contains no certificate')
    return seenCertificate(leaf, { usage, source: 'file', location: file.path })
  } catch (error) {
    return fault(`contains no readable certificate: ${messageOf(error)}`)
  }
}

/** Read from manifests, whether or not the process runs; otherwise from the command line of the running process. */
async function controllerManagersOn(
  node: NodeAccess,
  manifests: string,
  { processes, unread }: { readonly processes: readonly ProcessFacts[]; readonly unread: string[] },
): Promise<ControllerManagerFacts[]> {
  const paths = await node.matchPaths([`${manifests}/*`])
  const files = await node.readFiles(paths)
  const defined = await staticPodDefinitions(
    files.flatMap((file) =>
      file.found === 'file' ? [{ snapshot: { path: file.path }, text: textOf(file) }] : [],
    ),
  )
  const running = processes.map(({ program, pid, argv }) => ({ name: program, path: `process ${pid}`, argv }))
  const isSigner = ({ name }: { readonly name: string }): boolean => name === 'kube-controller-manager'
  const signer = defined.find(isSigner) ?? running.find(isSigner)
  if (signer === undefined) return []
  const { path: location, argv } = signer
  try {
    return [{ node: node.name, location, clusterSigningDurationMs: signingDurationMs(argv) }]
  } catch (error) {
    if (!(error instanceof KcertError)) throw error
    unread.push(`${location}: ${error.message}`)
    return []
  }
}

function failureOf(file: FileContent | undefined): string {
  if (file === undefined || file.found === 'absent')
    return file?.linkTarget === undefined
      ? 'does not exist'
      : `points to ${file.linkTarget}, which does not exist`
  return file.found === 'unreadable' ? `cannot be read: ${file.reason}` : 'is not a regular file'
}
