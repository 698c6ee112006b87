import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CreatedRequest } from '../csr/create-report.ts'
import { createdRequest } from '../csr/created-request.ts'
import type { KubeadmKubeconfigSpec, KubeadmRequest } from '../csr/kubeadm-requests.ts'
import { makeRequest } from '../csr/request-spec.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { kubeconfigDocument } from '../kubeconfig/format.ts'
import { renderYaml } from '../output/yaml.ts'
import { type OutputChoice, writeKeyFile } from '../system/output-file.ts'
import { generatePrivateKey, writePrivateKey } from '../x509/new-key.ts'
import { writePem } from '../x509/pem.ts'
import { checkFiles, type NamedFile, type OutputFile } from './command-files.ts'

/** Where kubeadm's files go. */
export interface KubeadmFolders {
  readonly certDir: string | undefined
  readonly kubeconfigDir: string | undefined
  /** PEM of the cluster's CA, for the kubeconfigs; they can be completed later, as those of kubeadm must be. */
  readonly caPem: string | undefined
}

/**
 * Writes key and request of each, and the kubeconfigs with the key in them, as `kubeadm certs generate-csr` does: 0600, in folders
 * that are made 0700. Nothing is written when one of the files is there already and must not be replaced.
 */
export function writeKubeadmRequests(
  requests: readonly KubeadmRequest[],
  folders: KubeadmFolders,
  { inputs, ...choice }: OutputChoice & { readonly inputs: readonly NamedFile[] },
): CreatedRequest[] {
  const planned = requests.map((request) => ({ request, files: filesOf(request, folders) }))
  checkFiles({ inputs, outputs: planned.flatMap(({ files }) => outputsOf(files)), replace: choice.replace })
  return planned.map(({ request, files }) => writeOne(request, files, folders.caPem, choice))
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
    const path = join(kubeconfigDir, kubeconfig.file)
    return { kubeconfig: path, request: `${path}.csr` }
  }
  if (certDir === undefined) throw missingFolder(row, '--cert-dir')
  const base = join(certDir, file!)
  return { key: `${base}.key`, request: `${base}.csr` }
}

// All of them are written as keys are, for kubeadm leaves them so.
function outputsOf(files: Files): OutputFile[] {
  const by = 'kubeconfig' in files ? '--kubeconfig-dir' : '--cert-dir'
  return Object.values(files).map((path) => ({ by, path, holds: 'key' }))
}

function missingFolder(row: string, flag: string): KcertError {
  return new KcertError('KCERT_USAGE', `it is not said where the files of ${row} go`, {
    next: `add ${flag} DIR (kubeadm's own: --cert-dir /etc/kubernetes/pki --kubeconfig-dir /etc/kubernetes)`,
  })
}

function writeOne(
  { row, spec, kubeconfig }: KubeadmRequest,
  files: Files,
  caPem: string | undefined,
  choice: OutputChoice,
): CreatedRequest {
  const key = generatePrivateKey(spec.keyType)
  const keyPem = writePrivateKey(key, 'kubernetes')
  const der = makeRequest(spec, key)
  mkdirSync(dirname(files.request), { recursive: true, mode: 0o700 })
  if ('key' in files) writeKeyFile(files.key, keyPem, choice)
  else writeKeyFile(files.kubeconfig, kubeconfigText(kubeconfig!, keyPem, caPem), choice)
  // No secret, but 0600 as kubeadm leaves it.
  writeKeyFile(files.request, writePem('CERTIFICATE REQUEST', der), choice)
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
