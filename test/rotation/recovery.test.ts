import { expect, test } from 'vitest'
import type { ClusterFile } from '../../src/ca/cluster-files.ts'
import { recoverFiles } from '../../src/ca/recovery.ts'
import { readDocuments } from '../../src/kubeconfig/documents.ts'
import { readKubeconfig } from '../../src/kubeconfig/kubeconfig.ts'
import { type Certificate, readCertificates } from '../../src/x509/certificate.ts'
import { looksLikePem, readPem } from '../../src/x509/pem.ts'
import { verifySignature } from '../../src/x509/signature.ts'
import { controlPlaneTree, workerTree } from '../pki/kubeadm-tree.ts'

// Nodes that kubeadm created ten years ago: the CAs have expired, and every leaf certificate long before.

const madeAt = new Date('2016-11-01T00:00:00Z')
const now = new Date('2026-11-21T12:00:00Z')
let serial = 0x5000
const issuer = { now, serialNumber: () => (serial++).toString(16) }
const pki = '/etc/kubernetes/pki'

function filesOf(node: string, tree: ReturnType<typeof controlPlaneTree>): ClusterFile[] {
  // In the kubelet's store, only the targets of links count. Older files next to them are unused.
  const isDated = (path: string): boolean => /kubelet-(?:client|server)-\d|\/kubelet\.(?:crt|key)$/.test(path)
  return [...tree.files].flatMap(([path, { bytes }]) =>
    isDated(path) ? [] : [{ node, path, content: bytes }],
  )
}

function cluster(): ClusterFile[] {
  return [
    ...filesOf('cp1', controlPlaneTree({ madeAt })),
    ...filesOf('w1', workerTree({ madeAt, nodeName: 'w1' })),
  ]
}

/** Returns the files after these writes. */
function after(
  files: readonly ClusterFile[],
  written: readonly { node: string; path: string; text: string }[],
) {
  const texts = new Map(written.map(({ node, path, text }) => [`${node}:${path}`, text]))
  return files.map((file) => {
    const text = texts.get(`${file.node}:${file.path}`)
    return text === undefined ? file : { ...file, content: Buffer.from(text) }
  })
}

async function certificatesIn({ content }: ClusterFile): Promise<Certificate[]> {
  if (looksLikePem(content)) return readCertificates(content)
  const [root] = (await readDocuments(Buffer.from(content).toString('utf8'))).documents
  const { clusters, users } = readKubeconfig(root!)
  const pems = [
    ...clusters.map((one) => one.certificateAuthority?.data),
    ...users.map((one) => one.clientCertificate?.data),
  ]
  return pems.flatMap((data) => (data === undefined ? [] : readCertificates(data)))
}

const holdsCertificates = ({ content }: ClusterFile): boolean =>
  /BEGIN CERTIFICATE|certificate-authority-data/.test(Buffer.from(content).toString('utf8'))

const namesOf = ({ subjectAltNames: { dns, ip } }: Certificate) => ({ dns, ip })

test('replaces every expired CA and leaf certificate with a valid one, for the same names and keys', async () => {
  const files = cluster()
  const { renewed, files: recovered, keyless, foreign } = await recoverFiles(files, issuer)
  expect([...new Set(renewed.map(({ old }) => old.subject.text))].sort()).toEqual([
    'CN=etcd-ca',
    'CN=front-proxy-ca',
    'CN=kubernetes',
  ])
  expect([keyless, foreign]).toEqual([[], []])
  const result = after(files, recovered)
  const cas = renewed.map((one) => one.renewed)
  for (const [index, file] of result.entries()) {
    if (!holdsCertificates(file)) continue
    const certificates = await certificatesIn(file)
    const before = await certificatesIn(files[index]!)
    expect(certificates.map(({ publicKey }) => publicKey.sha256)).toEqual(
      before.map(({ publicKey }) => publicKey.sha256),
    )
    expect(certificates.map(({ subject }) => subject.text)).toEqual(before.map(({ subject }) => subject.text))
    for (const one of certificates) {
      expect([file.path, one.notAfterMs > now.getTime()]).toEqual([file.path, true])
      const { dns, ip } = one.subjectAltNames
      expect({ dns, ip }).toEqual(namesOf(before[certificates.indexOf(one)]!))
      expect(cas.some((ca) => verifySignature(one, ca.publicKey).ok)).toBe(true)
    }
  }
  const touched = recovered.map(({ path }) => path)
  expect(touched).toContain(`${pki}/etcd/server.crt`)
  expect(touched).toContain('/etc/kubernetes/admin.conf')
  expect(touched.filter((path) => /\.key$|\.pub$/.test(path))).toEqual([])
})

test('keeps keys in place, also in files that contain a key and its certificate', async () => {
  const files = cluster()
  const { files: recovered } = await recoverFiles(files, issuer)
  const keysIn = (content: Uint8Array | string): string[] =>
    readPem(Buffer.from(content as string)).blocks.flatMap(({ label, der }) =>
      label.includes('KEY') ? [Buffer.from(der).toString('hex')] : [],
    )
  const pair = recovered.find(({ path }) => path.includes('kubelet-client-current'))!
  const before = files.find(({ node, path }) => node === pair.node && path === pair.path)!
  expect(keysIn(pair.text)).toEqual(keysIn(before.content))
  expect(keysIn(pair.text)).toHaveLength(1)
})

test('finds nothing to do when run again, and continues with the same CAs after a stop at any point', async () => {
  const files = cluster()
  const { files: recovered, renewed } = await recoverFiles(files, issuer)
  expect(await recoverFiles(after(files, recovered), issuer)).toMatchObject({ files: [], keyless: [] })
  const made = new Set(renewed.map((one) => one.renewed.fingerprintSha256))
  // Files with CAs are written first.
  for (const count of [3, 8, recovered.length - 1]) {
    const again = await recoverFiles(after(files, recovered.slice(0, count)), issuer)
    expect(again.files).toHaveLength(recovered.length - count)
    for (const one of again.renewed) expect(made).toContain(one.renewed.fingerprintSha256)
  }
})

test('names a CA without a key, and a leaf that no CA here can sign', async () => {
  const files = cluster().filter(({ path }) => path !== `${pki}/ca.key`)
  const { keyless, foreign } = await recoverFiles(files, issuer)
  expect(keyless.map(({ subject }) => subject.text)).toEqual(['CN=kubernetes'])
  expect(foreign).toContainEqual({ node: 'cp1', path: `${pki}/apiserver.crt`, subject: 'CN=kube-apiserver' })
})

const damaged = '-----BEGIN CERTIFICATE-----\nMIIB!not base64\n-----END CERTIFICATE-----\n'

/** Returns the file at a path on the control plane after the recovery. */
async function recoveredText(files: readonly ClusterFile[], path: string): Promise<string | undefined> {
  const { files: recovered } = await recoverFiles(files, issuer)
  return recovered.find((one) => one.node === 'cp1' && one.path === path)?.text
}

function withContent(path: string, content: (before: string) => string | Buffer): ClusterFile[] {
  return cluster().map((file) =>
    file.node === 'cp1' && file.path === path
      ? { ...file, content: Buffer.from(content(Buffer.from(file.content).toString('utf8')) as string) }
      : file,
  )
}

test.each([
  ['damaged blocks, before and behind', (pem: string) => `# old\n${damaged}${pem}\n${damaged}`],
  ['a block without an END line', (pem: string) => `${pem}-----BEGIN CERTIFICATE-----\nMIIB\n`],
  ['CRLF around it', (pem: string) => `note\r\n${damaged.replaceAll('\n', '\r\n')}${pem}`],
  [
    'an encrypted key',
    (pem: string) =>
      `${pem}-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMIIB\n-----END RSA PRIVATE KEY-----`,
  ],
])('keeps every byte of a bundle except renewed certificates: %s', async (_, around) => {
  const path = `${pki}/ca.crt`
  const marks = (text: string): string =>
    text.replace(/-----BEGIN CERTIFICATE-----\nMII[\w+/=\n]{200,}-----END CERTIFICATE-----/, 'CA')
  const files = withContent(path, around)
  const before = files.find((one) => one.node === 'cp1' && one.path === path)!
  const text = (await recoveredText(files, path)) ?? ''
  expect(text).not.toBe(Buffer.from(before.content).toString('utf8'))
  expect(marks(text)).toBe(marks(Buffer.from(before.content).toString('utf8')))
})

test('keeps damaged blocks in the CA data of a kubeconfig', async () => {
  const path = '/etc/kubernetes/admin.conf'
  const pattern = /(certificate-authority-data: )(\S+)/
  const dataIn = (text: string): string => Buffer.from(pattern.exec(text)![2]!, 'base64').toString('utf8')
  const files = withContent(path, (text) =>
    text.replace(pattern, `$1${Buffer.from(damaged + dataIn(text)).toString('base64')}`),
  )
  const data = dataIn((await recoveredText(files, path))!)
  expect(data.startsWith(damaged)).toBe(true)
  expect(readCertificates(data.slice(damaged.length))[0]!.notAfterMs).toBeGreaterThan(now.getTime())
})

test('refuses by name a bundle with bytes that would change', async () => {
  const latin1 = (pem: string) => Buffer.from(`# Zertifikat f\xfcr alle\n${pem}`, 'latin1')
  await expect(recoverFiles(withContent(`${pki}/ca.crt`, latin1), issuer)).rejects.toMatchObject({
    code: 'KCERT_EDIT_REFUSED',
    message: `cp1:${pki}/ca.crt has bytes that are not UTF-8`,
    why: expect.stringContaining('remove them on node cp1'),
    next: `kcert inspect ${pki}/ca.crt`,
  })
})

test('skips certificates that have not expired', async () => {
  const young = filesOf('cp1', controlPlaneTree({ madeAt: new Date('2026-11-01T00:00:00Z') }))
  expect(await recoverFiles(young, issuer)).toEqual({ renewed: [], files: [], keyless: [], foreign: [] })
})
