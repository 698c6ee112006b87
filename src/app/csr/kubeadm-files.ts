import { dirname, join } from 'node:path'
import { checkFiles, type NamedFile, type OutputFile } from '../../cli/command-files.ts'
import type { CreatedRequest } from '../../csr/create-report.ts'
import { createdRequest } from '../../csr/created-request.ts'
import type { KubeadmKubeconfigSpec, KubeadmRequest } from '../../csr/kubeadm-requests.ts'
import { makeRequest } from '../../csr/request-spec.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { kubeconfigDocument } from '../../kubeconfig/format.ts'
import { renderYaml } from '../../output/yaml.ts'
import { writeKeyPair } from '../../system/key-pair-files.ts'
import { withLock } from '../../system/lock.ts'
import { makeFolders } from '../../system/new-folder.ts'
import type { OutputChoice } from '../../system/output-file.ts'
import { generatePrivateKey, writePrivateKey } from '../../x509/new-key.ts'
import { writePem } from '../../x509/pem.ts'
import { finishInterruptedPair } from '../ca/ca-files.ts'

/** The folders of kubeadm's files. */
export interface KubeadmFolders {
  readonly certDir: string | undefined
  readonly kubeconfigDir: string | undefined
  /** PEM of the cluster's CA, for the kubeconfigs. Without it they can be completed later, as those of kubeadm must be. */
  readonly caPem: string | undefined
}

/**
 * Writes key and request of each row, and kubeconfigs with the embedded key, as `kubeadm certs generate-csr` does: mode 0600, in
 * new folders with mode 0700. Writes nothing if one of the files exists and must not be replaced.
 */
export async function writeKubeadmRequests(
  requests: readonly KubeadmRequest[],
  folders: KubeadmFolders,
  { inputs, ...choice }: OutputChoice & { readonly inputs: readonly NamedFile[] },
): Promise<CreatedRequest[]> {
  const planned = requests.map((request) => ({ request, files: filesOf(request, folders) }))
  for (const { files } of planned) await finishInterruptedPair(files.request)
  checkFiles({ inputs, outputs: planned.flatMap(({ files }) => outputsOf(files)), replace: choice.replace })
  const created: CreatedRequest[] = []
  for (const { request, files } of planned)
    created.push(await writeOne(request, files, folders.caPem, choice))
  return created
}

type Files =
  | { readonly request: string; readonly key: string }
  | { readonly request: string; readonly kubeconfig: string }

function filesOf(
  { row, file, kubeconfig }: KubeadmRequest,
  { certDir, kubeconfigDir }: KubeadmFolders,
): Files {
  if (kubeconfig !== undefined) {
    if (kubeconfigDir === undefined) throw missingFolder(row, '--kubeconfig-dir')
    const path = join(kubeconfigDir, file)
    return { kubeconfig: path, request: `${path}.csr` }
  }
  if (certDir === undefined) throw missingFolder(row, '--cert-dir')
  const base = join(certDir, file)
  return { key: `${base}.key`, request: `${base}.csr` }
}

// All of them are written with the mode of keys, as by kubeadm.
function outputsOf(files: Files): OutputFile[] {
  const by = 'kubeconfig' in files ? '--kubeconfig-dir' : '--cert-dir'
  return Object.values(files).map((path) => ({ by, path, holds: 'key' }))
}

function missingFolder(row: string, flag: string): KcertError {
  return new KcertError('KCERT_USAGE', `${flag} is required for ${row}`, {
    why: 'kubeadm uses --cert-dir /etc/kubernetes/pki and --kubeconfig-dir /etc/kubernetes',
    next: commandLine`kcert csr create --kubeadm ${row} --cert-dir pki --kubeconfig-dir .`,
  })
}

async function writeOne(
  { row, spec, kubeconfig }: KubeadmRequest,
  files: Files,
  caPem: string | undefined,
  choice: OutputChoice,
): Promise<CreatedRequest> {
  const key = generatePrivateKey(spec.keyType)
  const keyPem = writePrivateKey(key, 'kubernetes')
  const der = makeRequest(spec, key)
  makeFolders(dirname(files.request), 0o700)
  const secret = {
    path: 'key' in files ? files.key : files.kubeconfig,
    content: kubeconfig === undefined ? keyPem : kubeconfigText(kubeconfig, keyPem, caPem),
  }
  const wanted = { path: files.request, content: writePem('CERTIFICATE REQUEST', der) }
  // The request is not secret, but has mode 0600 as with kubeadm.
  await withLock(files.request, () => writeKeyPair(wanted, secret, { ...choice, mode: 0o600 }))
  return createdRequest(der, files, { row })
}

function kubeconfigText(
  { user, clusterName, server }: KubeadmKubeconfigSpec,
  keyPem: string,
  caPem: string | undefined,
): string {
  return renderYaml(
    kubeconfigDocument(
      { name: clusterName, server, certificateAuthority: caPem },
      { name: user, key: { pem: keyPem } },
    ),
  )
}
