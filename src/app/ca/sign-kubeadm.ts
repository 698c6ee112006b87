import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CertificateAuthority } from '../../ca/certificate-authority.ts'
import type { SignedControlPlane } from '../../ca/control-plane-report.ts'
import { checkRow, type KubeadmRow, rowOfRequest, rowPath, signedRows } from '../../ca/kubeadm-rows.ts'
import { builtInProfile, type SigningProfile } from '../../ca/profile.ts'
import { requestsOf } from '../../ca/request-file.ts'
import {
  type CheckedRequest,
  checkRequests,
  type Signed,
  signAll,
  signedCertificate,
} from '../../ca/signing.ts'
import { grantedTtlMs } from '../../ca/validity.ts'
import { checkFiles, type NamedFile } from '../../cli/command-files.ts'
import type { Context } from '../../cli/context.ts'
import { readInput } from '../../cli/input.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { type KubeadmCa, kubeadmCas, kubeadmFolders } from '../../pki/kubeadm.ts'
import { bindingNotices } from '../../pki/kubeadm-organization.ts'
import { isFolder } from '../../system/folders.ts'
import { makeFolders } from '../../system/new-folder.ts'
import { writePublicFile } from '../../system/output-file.ts'
import { defaultIssuanceLogPath, openCaFiles, withIssuanceLog } from './ca-files.ts'
import { durationMs } from './signing-profile.ts'

// `kcert ca sign --kubeadm`: signs the requests of a control plane with an external CA, each with the CA of its row.

export interface KubeadmSigningFlags {
  /** Folder with ca.crt, front-proxy-ca.crt, etcd/ca.crt and their keys. */
  readonly caDir: string
  readonly outDir: string
  readonly 'ca-password-file': string | undefined
  readonly duration: string | undefined
  readonly force: boolean
}

interface FoundRequest {
  readonly row: KubeadmRow
  readonly source: string
  readonly certificate: string
}

interface CaFiles {
  readonly ca: string
  readonly 'ca-key': string
  readonly issuanceLog: string
}

/** Signs the requests in files and folders, all or none, and returns the report. Throws KCERT_REQUEST_REFUSED as `checkRow` does. */
export async function signKubeadm(
  operands: readonly string[],
  flags: KubeadmSigningFlags,
  context: Context,
): Promise<SignedControlPlane> {
  const found = foundRequests(operands, flags.outDir)
  const files = caFilesOf(found, flags.caDir)
  checkFiles({
    inputs: [
      { by: '--ca-password-file', path: flags['ca-password-file'] },
      ...[...files.values()].flatMap(({ ca, 'ca-key': key }): NamedFile[] => [
        { by: '--ca-dir', path: ca },
        { by: '--ca-dir', path: key },
      ]),
      ...found.map(({ source }) => ({ by: 'REQUEST', path: source })),
    ],
    outputs: found.map(({ certificate }) => ({ by: '--out-dir', path: certificate, holds: 'public' })),
    replace: flags.force,
  })
  const requests = await checkedRequests(found, context)
  const ttlMs = ttlOf(flags)
  const signed = new Map<string, Signed>()
  // The files of all CAs are read before the first one signs.
  const cas: { readonly files: CaFiles; readonly signingCa: CertificateAuthority; readonly name: string }[] =
    []
  for (const [name, one] of files) {
    const given = { ca: one.ca, 'ca-key': one['ca-key'], 'ca-password-file': flags['ca-password-file'] }
    cas.push({ files: one, name, signingCa: await openCaFiles(given, context) })
  }
  for (const { files: one, signingCa, name } of cas) {
    const ofCa = found.filter(({ row }) => row.signer === name)
    const all = await withIssuanceLog(one.issuanceLog, (issuanceLog) =>
      ofCa.flatMap(({ row, source }) => {
        const asked = requests.filter((request) => request.source === source)
        return signAll(asked, signingCa, profileOf(row, ttlMs), issuanceLog, context.clock(), context.random)
      }),
    )
    for (const certificate of all) signed.set(certificate.asked.source, certificate)
  }
  return deliver(found, signed, files, flags)
}

function ttlOf({ duration }: KubeadmSigningFlags): number {
  const { ttlMs } = builtInProfile('server')
  const requestedMs = duration === undefined ? undefined : durationMs(duration)
  return grantedTtlMs(requestedMs, requestedMs ?? ttlMs)
}

function profileOf({ usages }: KubeadmRow, ttlMs: number): SigningProfile {
  const [first] = usages
  const name = usages.length > 1 ? 'peer' : first === 'serverAuth' ? 'server' : 'client'
  return { ...builtInProfile(name), ttlMs }
}

async function checkedRequests(found: readonly FoundRequest[], context: Context): Promise<CheckedRequest[]> {
  const entries = []
  for (const { source } of found) {
    const [entry, second] = requestsOf(source, await readInput(source, context))
    if (entry === undefined || second !== undefined)
      throw new KcertError('KCERT_REQUEST_REFUSED', `${source} contains several requests`, {
        why: 'the file of a kubeadm certificate contains one',
        next: commandLine`kcert inspect ${source}`,
      })
    entries.push(entry)
  }
  const rows = new Map(found.map(({ source, row }) => [source, row]))
  return checkRequests(entries, { subjectAttributes: [] }, ({ source }, request) => {
    const row = rows.get(source)
    if (row !== undefined) checkRow(row, request, source)
  })
}

function deliver(
  found: readonly FoundRequest[],
  signed: ReadonlyMap<string, Signed>,
  files: ReadonlyMap<string, CaFiles>,
  { force }: KubeadmSigningFlags,
): SignedControlPlane {
  const results = found.flatMap((one) => {
    const certificate = signed.get(one.source)
    if (certificate === undefined) return []
    const { organization } = certificate.certificate.subject
    return [{ ...one, signed: signedCertificate(certificate), organization }]
  })
  for (const { certificate, signed: one } of results) {
    makeFolders(dirname(certificate), 0o755)
    writePublicFile(certificate, one.pem, { replace: force })
  }
  return {
    apiVersion: 'kcert/v1',
    kind: 'SignedControlPlane',
    certificates: results.map(({ row, certificate, signed: { entry: _, ...one } }) => ({
      row: row.name,
      ca: row.signer,
      file: certificate,
      ...one,
    })),
    issuanceLogs: [...files.values()].map(({ issuanceLog }) => issuanceLog),
    next: results.flatMap((one) => (one.row.kind === 'kubeconfig' ? [nextOf(one)] : [])),
    notices: results.flatMap(({ row, organization, signed: { notices } }) => [
      ...notices.map((notice) => `${row.name}: ${notice}`),
      ...bindingNotices(row, organization),
    ]),
  }
}

/** The command that sets the certificate in its kubeconfig, which is next to the request, or on the node. */
function nextOf({ row, source, certificate }: FoundRequest): string {
  const beside = source.replace(/\.csr$/, '')
  const kubeconfig = existsSync(beside) ? beside : join(kubeadmFolders.kubernetes, row.name)
  return commandLine`kcert kubeconfig set-client ${kubeconfig} --client-certificate ${certificate}`
}

function caFilesOf(found: readonly FoundRequest[], folder: string): Map<KubeadmCa['name'], CaFiles> {
  const needed = kubeadmCas.filter(({ name }) => found.some(({ row }) => row.signer === name))
  return new Map(
    needed.map(({ name, file }) => {
      const ca = join(folder, `${file}.crt`)
      return [name, { ca, 'ca-key': join(folder, `${file}.key`), issuanceLog: defaultIssuanceLogPath(ca) }]
    }),
  )
}

/** The requests of files, and those in folders: in the folder itself, and of certificates in its pki folder, as in /etc/kubernetes. */
function foundRequests(operands: readonly string[], outDir: string): FoundRequest[] {
  const found = operands.flatMap((operand) =>
    isFolder(operand) ? requestsIn(operand, outDir) : [requestAt(operand, outDir)],
  )
  const inOrder = signedRows.flatMap((row) => found.filter((one) => one.row === row))
  const twice = inOrder.find((one, index) => inOrder[index + 1]?.row === one.row)
  if (twice === undefined) return inOrder
  const [first = '', second = ''] = found.filter(({ row }) => row === twice.row).map(({ source }) => source)
  throw new KcertError('KCERT_USAGE', `${first} and ${second} are both requests for ${twice.row.name}`, {
    why: 'sign the requests of each node in a call of its own',
  })
}

function requestsIn(folder: string, outDir: string): FoundRequest[] {
  const found = signedRows.flatMap((row) => {
    const path = rowPath(row)
    const paths = row.kind === 'leaf' ? [path, join('pki', path)] : [path]
    return paths
      .filter((one) => existsSync(join(folder, `${one}.csr`)))
      .map((one) => ({ row, source: join(folder, `${one}.csr`), certificate: join(outDir, `${one}.crt`) }))
  })
  if (found.length > 0) return found
  throw new KcertError('KCERT_USAGE', `${folder} contains no request of a kubeadm certificate`, {
    why: 'their names are those of kubeadm, such as apiserver.csr, etcd/server.csr and admin.conf.csr',
    next: commandLine`ls ${folder}`,
  })
}

function requestAt(source: string, outDir: string): FoundRequest {
  const row = rowOfRequest(source)
  if (row !== undefined) return { row, source, certificate: join(outDir, `${rowPath(row)}.crt`) }
  if (!existsSync(source)) {
    throw new KcertError('KCERT_FILE_NOT_FOUND', `${source} does not exist`, {
      next: commandLine`ls -l ${dirname(source)}`,
    })
  }
  throw new KcertError('KCERT_USAGE', `${source} is not the request of a kubeadm certificate`, {
    why: `with --kubeadm, the file name says which certificate it is: ${signedRows.map((one) => `${rowPath(one)}.csr`).join(', ')}`,
  })
}
