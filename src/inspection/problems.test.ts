import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { craft, extension, extensions, spkiOf } from '../../test/fixtures/certificates.ts'
import { longRsaKey } from '../../test/fixtures/long-rsa.ts'
import { mlDsaCertificate, mlDsaKeys, mlDsaLeafOfEcdsaCa, mlDsaRequest } from '../../test/fixtures/ml-dsa.ts'
import { inspect, inspectNode, named, readerOf, sourcesOf, troubles } from '../../test/pki/inspected.ts'
import {
  certificatePem,
  controlPlaneTree,
  keyPem,
  type LeafOptions,
  type NodeFiles,
  type NodeTree,
  signedBy,
  type TestCa,
  testCa,
  testKey,
} from '../../test/pki/kubeadm-tree.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { Certificate } from '../x509/certificate.ts'
import { bitString, element, octetString, oid, sequence } from '../x509/der-writer.ts'
import type { KeyUsage } from '../x509/extensions.ts'
import { createRequest } from '../x509/issuing.ts'
import { oidOf } from '../x509/oids.ts'
import { writePem } from '../x509/pem.ts'
import { PublicKeyInfo } from '../x509/public-key.ts'
import type { InspectionOutcome } from './inspection.ts'
import { problemCodes } from './problems.ts'
import type { Problem } from './report.ts'
import type { Source, UnreadableSource } from './source.ts'

const now = new Date('2026-11-21T09:00:00Z')
const notBefore = new Date('2026-06-01T08:00:00Z')
const notAfter = new Date('2027-06-01T08:00:00Z')
const ca = testCa('kubernetes', testKey('ca'), notBefore)
const key = testKey('leaf')
const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64')
const day = 86_400_000

const keystore = `${process.env.KCERT_TRUTH ?? '../shared/truth'}/good-certs/p12/cfssl-passwordpkcs12.p12`

const seen = new Set<string>()

function noted(outcome: InspectionOutcome): Problem[] {
  for (const { code } of outcome.report.problems) seen.add(code)
  return outcome.report.problems
}

async function problemsOf(...sources: (Source | UnreadableSource)[]): Promise<Problem[]> {
  return noted(await inspect(now, sources))
}

/** Returns the problem with this code. The test fails when there is none, or more than one. */
function only(problems: readonly Problem[], code: string): Problem {
  const found = problems.filter((problem) => problem.code === code)
  expect({ code, problems, found: found.length }).toMatchObject({ found: 1 })
  return found[0]!
}

function pem(leaf: Partial<LeafOptions> = {}, signer: TestCa = ca): string {
  return certificatePem(
    signedBy(signer, {
      commonName: 'leaf',
      key,
      notBefore,
      notAfter,
      extendedKeyUsage: ['clientAuth'],
      ...leaf,
    }),
  )
}

const { files, cas } = controlPlaneTree({ madeAt: notBefore })
const clusterCa = (tree: NodeTree['cas'] = cas) => tree.get('ca')!

/** The control plane with one file replaced. */
async function problemsWith(path: string, text: string, mode = 0o600): Promise<Problem[]> {
  const changed: NodeFiles = new Map([...files, [path, { bytes: Buffer.from(text), mode }]])
  return noted(await inspectNode(now, { files: changed, folders: ['/etc/kubernetes'] }))
}

function treeLeaf(leaf: Partial<LeafOptions>, name = 'apiserver'): string {
  return pem({ key: testKey(name), ...leaf }, clusterCa())
}

const apiserver = '/etc/kubernetes/pki/apiserver.crt'
const apiserverNames = { subjectAltNames: { dns: ['kubernetes'] }, extendedKeyUsage: ['serverAuth'] }

describe('time', () => {
  test('reports an expired certificate as critical, with advice for its role', async () => {
    const text = treeLeaf({ ...apiserverNames, notAfter: new Date('2026-11-20T09:00:00Z') })
    expect(only(await problemsWith(apiserver, text), 'CERT_EXPIRED')).toEqual({
      source: apiserver,
      entry: '',
      code: 'CERT_EXPIRED',
      severity: 'critical',
      message: 'expired on 2026-11-20T09:00:00Z, 24 hours ago',
      next: 'sudo kcert renew apiserver',
    })
  })

  test('accepts the last second', async () => {
    const text = pem({ notAfter: now })
    expect(await problemsOf(named('f', text))).toMatchObject([{ code: 'CERT_EXPIRING_VERY_SOON' }])
    const late = await inspect(new Date(now.getTime() + 1000), [named('f', text)])
    expect(late.report.certificates[0]!.status).toBe('expired')
  })

  test('reports a certificate that is not yet valid as critical, and mentions clocks', async () => {
    const problem = only(
      await problemsOf(named('f', pem({ notBefore: new Date('2026-11-21T12:00:00Z') }))),
      'CERT_NOT_YET_VALID',
    )
    expect(problem).toMatchObject({
      severity: 'critical',
      message: 'not valid before 2026-11-21T12:00:00Z, in 3 hours',
    })
    expect(problem.fix).toContain('clocks')
  })

  test.each([
    ['CERT_EXPIRING', 29, 'warning'],
    ['CERT_EXPIRING_VERY_SOON', 6, 'critical'],
  ])('%s at %d days of a year, with severity %s', async (code, days, severity) => {
    const end = new Date(now.getTime() + days * day)
    const text = pem(
      { notBefore: new Date(end.getTime() - 365 * day), notAfter: end },
      testCa('kubernetes', testKey('ca'), new Date('2020-01-01')),
    )
    expect(only(await problemsOf(named('f', text)), code)).toMatchObject({
      severity,
      message: expect.stringContaining(`in ${days} days`),
    })
  })

  test('warns about a 24-hour certificate only in its last fifth', async () => {
    const at = (hours: number) =>
      pem({
        notBefore: new Date(now.getTime() - hours * 3_600_000),
        notAfter: new Date(now.getTime() + (24 - hours) * 3_600_000),
      })
    expect(await problemsOf(named('f', at(12)))).toEqual([])
    only(await problemsOf(named('f', at(20))), 'CERT_EXPIRING')
    only(await problemsOf(named('f', at(23))), 'CERT_EXPIRING_VERY_SOON')
  })

  test('warns about a leaf that outlives its CA, except kubeadm’s own ten-year CA', async () => {
    const short = testCa('short', testKey('short'), notBefore, 200)
    const problem = only(
      await problemsOf(named('ca', certificatePem(short.certificate)), named('f', pem({}, short))),
      'CERT_OUTLIVES_ISSUER',
    )
    expect(problem).toMatchObject({ source: 'f', severity: 'warning' })
    expect(problem.message).toContain('only until 2026-12-18T08:00:00Z')
  })

  test('reports a valid leaf of an expired CA as critical', async () => {
    const gone = testCa('gone', testKey('gone'), notBefore, 100)
    const problems = await problemsOf(
      named('ca', certificatePem(gone.certificate)),
      named('f', pem({}, gone)),
    )
    expect(only(problems, 'ISSUER_EXPIRED')).toMatchObject({ source: 'f', severity: 'critical' })
  })

  test('ignores an issuer that only has the same name', async () => {
    const gone = testCa('kubernetes', testKey('gone'), notBefore, 100)
    expect(
      (await problemsOf(named('x', certificatePem(gone.certificate)), named('f', pem()))).map(
        ({ code }) => code,
      ),
    ).toEqual(['CERT_EXPIRED'])
  })

  test('reports an expired member of a bundle as information, or as a warning when a valid certificate depends on it', async () => {
    const old = testCa('old', testKey('old'), notBefore, 100)
    const bundle = named('bundle.pem', certificatePem(old.certificate, ca.certificate))
    expect(only(await problemsOf(bundle), 'BUNDLE_MEMBER_EXPIRED')).toMatchObject({
      severity: 'info',
      entry: 'certificate 1',
    })
    const problems = await problemsOf(bundle, named('f', pem({}, old)))
    expect(only(problems, 'BUNDLE_MEMBER_EXPIRED')).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining('and it signed f'),
    })
  })

  test('reports a bundle of only expired CAs as critical', async () => {
    const old = ['old1', 'old2'].map((name) => testCa(name, testKey(name), notBefore, 100).certificate)
    const problems = await problemsOf(named('bundle.pem', certificatePem(...old)))
    expect(problems.map(({ code, severity }) => [code, severity])).toEqual([
      ['CERT_EXPIRED', 'critical'],
      ['CERT_EXPIRED', 'critical'],
    ])
  })

  test('advises to compare an expired CA in a kubeconfig with the cluster’s CA', async () => {
    const old = testCa('kubernetes', testKey('ca'), notBefore, 100)
    const config = `clusters:\n- name: k\n  cluster: {certificate-authority-data: ${base64(certificatePem(old.certificate))}}\nusers: []\n`
    const problem = only(await problemsOf(named('kubelet.kubeconfig', config)), 'CERT_EXPIRED')
    expect(problem).toMatchObject({
      severity: 'critical',
      fix: expect.stringContaining('compare it with /etc/kubernetes/pki/ca.crt'),
    })
  })

  test('advises to renew a kubelet’s expired client certificate, and to create one with a wrong subject again; only a plain node name is put into the command', async () => {
    const node = (commonName: string) =>
      pem({ commonName, organization: ['system:nodes'], notAfter: new Date('2026-11-01') })
    const next = async (name: string, code = 'ROLE_SUBJECT_WRONG') =>
      only(await problemsOf(named('f', pem({ commonName: name, organization: ['system:nodes', 'x'] }))), code)
        .next
    expect(only(await problemsOf(named('f', node('system:node:a'))), 'CERT_EXPIRED').next).toBe(
      'sudo kcert renew kubelet.conf',
    )
    expect(await next('system:node:worker-1.example')).toContain(
      '--client-name system:node:worker-1.example >',
    )
    expect(await next('system:node:$(reboot)')).toContain('--client-name system:node:NODE >')
  })

  test('advises to create the file again if subject, SANs or usages are wrong: a renewal would copy the fault', async () => {
    const next = async (leaf: Partial<LeafOptions>, code: string) =>
      only(await problemsWith(apiserver, treeLeaf(leaf)), code).next
    const recreateCommand = `old=$(mktemp -d /var/tmp/kubernetes-old-XXXXXX) && mv /etc/kubernetes/pki/apiserver.crt /etc/kubernetes/pki/apiserver.key "$old" && kubeadm init phase certs apiserver && crictl ps -q --name '^kube-apiserver$' | xargs -r crictl stop --timeout 30`
    expect(await next({ ...apiserverNames, extendedKeyUsage: ['clientAuth'] }, 'ROLE_USAGE_WRONG')).toBe(
      recreateCommand,
    )
    expect(await next({ extendedKeyUsage: ['serverAuth'] }, 'SAN_MISSING')).toContain(recreateCommand)
    const path = '/etc/kubernetes/scheduler.conf'
    const config = Buffer.from(files.get('/etc/kubernetes/controller-manager.conf')!.bytes).toString()
    expect(only(await problemsWith(path, config), 'ROLE_SUBJECT_WRONG').next).toBe(
      `old=$(mktemp -d /var/tmp/kubernetes-old-XXXXXX) && mv /etc/kubernetes/scheduler.conf "$old" && kubeadm init phase kubeconfig scheduler && crictl ps -q --name '^kube-scheduler$' | xargs -r crictl stop --timeout 30`,
    )
  })

  test('never prints a command that kubeadm does not have: certs renew kubelet.conf', async () => {
    const stranger = testCa('kubernetes', testKey('stranger'), notBefore)
    const user = pem({ commonName: 'system:node:cp1', organization: ['system:nodes'] }, stranger)
    const config = `clusters: []\nusers:\n- name: u\n  user: {client-certificate-data: ${base64(user)}, client-key-data: ${base64(keyPem(key))}}\n`
    const { next } = only(await problemsWith('/etc/kubernetes/kubelet.conf', config), 'CA_NOT_IN_BUNDLE')
    expect(next).not.toContain('renew')
    expect(next).toContain('kubeadm init phase kubeconfig kubelet')
  })

  test('does not say that a kubelet should have renewed a certificate with another’s key', async () => {
    const text =
      pem({ commonName: 'system:node:a', organization: ['system:nodes'] }) + keyPem(testKey('other'))
    const { next } = only(await problemsOf(named('f', text)), 'KEY_MISMATCH')
    expect(next).not.toContain('2027')
    expect(next).toBe('sudo kcert renew kubelet.conf')
  })

  test('does not say that kubeadm renews a CA', async () => {
    const old = testCa('kubernetes', testKey('ca'), notBefore, 180)
    const problem = only(
      await problemsWith('/etc/kubernetes/pki/ca.crt', certificatePem(old.certificate)),
      'CERT_EXPIRING_VERY_SOON',
    )
    expect(problem).toMatchObject({
      fix: 'plan the rotation of this CA now, because CAs are not renewed by kubeadm',
      next: 'kcert rotate-ca plan',
    })
  })
})

describe('relations', () => {
  test('reports a key that does not match the certificate next to it', async () => {
    const problems = await problemsOf(named('web.crt', pem()), named('web.key', keyPem(testKey('other'))))
    expect(only(problems, 'KEY_MISMATCH')).toMatchObject({
      source: 'web.crt',
      severity: 'critical',
      message: 'the key in web.key does not match this certificate',
    })
  })

  test('reports swapped keys, and the matching one', async () => {
    const swapped: NodeFiles = new Map([
      ...files,
      ['/etc/kubernetes/pki/etcd/server.key', files.get('/etc/kubernetes/pki/etcd/peer.key')!],
      ['/etc/kubernetes/pki/etcd/peer.key', files.get('/etc/kubernetes/pki/etcd/server.key')!],
    ])
    const { report } = await inspectNode(now, { files: swapped, folders: ['/etc/kubernetes'] })
    const server = report.certificates.find(({ source }) => source.endsWith('etcd/server.crt'))!
    expect(server.key).toEqual({
      source: '/etc/kubernetes/pki/etcd/server.key',
      entry: '',
      matches: false,
    })
    const problems = report.problems.filter(({ code }) => code === 'KEY_MISMATCH')
    expect(problems.map(({ source, message }) => [source, message])).toEqual([
      [
        '/etc/kubernetes/pki/etcd/peer.crt',
        'the key in /etc/kubernetes/pki/etcd/peer.key does not match this certificate; its key is in /etc/kubernetes/pki/etcd/server.key',
      ],
      [
        '/etc/kubernetes/pki/etcd/server.crt',
        'the key in /etc/kubernetes/pki/etcd/server.key does not match this certificate; its key is in /etc/kubernetes/pki/etcd/peer.key',
      ],
    ])
  })

  test('reports a mismatch for an overwritten certificate, even if a key for the new one exists elsewhere', async () => {
    const peer = Buffer.from(files.get('/etc/kubernetes/pki/etcd/peer.crt')!.bytes).toString()
    expect(only(await problemsWith(apiserver, peer), 'KEY_MISMATCH').message).toContain(
      'its key is in /etc/kubernetes/pki/etcd/peer.key',
    )
  })

  test('reports swapped keys of two users of a kubeconfig', async () => {
    const user = (name: string, of: string, keyOf: string) =>
      `- name: ${name}\n  user: {client-certificate-data: ${base64(pem({ key: testKey(of) }))}, client-key-data: ${base64(keyPem(testKey(keyOf)))}}\n`
    const config = `users:\n${user('a', 'leaf', 'other')}${user('b', 'other', 'leaf')}`
    expect(
      (await problemsOf(named('f', config))).map(({ code, entry, message }) => [code, entry, message]),
    ).toEqual([
      [
        'KEY_MISMATCH',
        'user a: client-certificate-data',
        'the key in user a: client-key-data does not match this certificate; its key is in user b: client-key-data',
      ],
      [
        'KEY_MISMATCH',
        'user b: client-certificate-data',
        'the key in user b: client-key-data does not match this certificate; its key is in user a: client-key-data',
      ],
    ])
  })

  test('compares the key in a file with the leaf, even if the CA comes first', async () => {
    const text = certificatePem(ca.certificate) + pem() + keyPem(key)
    expect((await problemsOf(named('f.pem', text))).filter(({ code }) => code === 'KEY_MISMATCH')).toEqual([])
  })

  test.each(['web-key.pem', 'web.key.pem'])('compares a key with the name %s', async (name) => {
    only(await problemsOf(named('web.pem', pem()), named(name, keyPem(testKey('other')))), 'KEY_MISMATCH')
  })

  test('reports no mismatch for keys with other names or in other folders', async () => {
    expect(
      await problemsOf(
        named('/a/web.crt', pem()),
        named('/b/web.key', keyPem(testKey('other'))),
        named('/a/x.key', keyPem(testKey('other'))),
      ),
    ).toEqual([])
  })

  test('compares the key in one file, one Secret or one kubeconfig user', async () => {
    const other = keyPem(testKey('other'))
    only(await problemsOf(named('f.pem', pem() + other)), 'KEY_MISMATCH')
    const secret = `kind: Secret\nmetadata: {name: s}\ndata:\n  tls.crt: ${base64(pem())}\n  tls.key: ${base64(other)}\n`
    expect(only(await problemsOf(named('f', secret)), 'KEY_MISMATCH').entry).toBe('Secret s data[tls.crt]')
    const config = `users:\n- name: u\n  user: {client-certificate-data: ${base64(pem())}, client-key-data: ${base64(other)}}\n`
    expect(only(await problemsOf(named('f', config)), 'KEY_MISMATCH').message).toContain(
      'user u: client-key-data',
    )
  })

  test('reports a leaf that the CA of its kubeadm folder did not sign', async () => {
    const stranger = testCa('kubernetes', testKey('stranger'), notBefore)
    const problems = await problemsWith(
      apiserver,
      pem({ key: testKey('apiserver'), ...apiserverNames }, stranger),
    )
    expect(only(problems, 'CA_NOT_IN_BUNDLE')).toMatchObject({
      source: apiserver,
      severity: 'critical',
      message: expect.stringContaining('/etc/kubernetes/pki/ca.crt'),
    })
    // All kubeconfigs of the folder trust the right CA, so each of them reports it.
    expect(problems.filter(({ code }) => code === 'KUBECONFIG_CA_NOT_OF_SERVER')).toHaveLength(5)
  })

  test('accepts a leaf with an intermediate that the root signed', async () => {
    const key2 = testKey('intermediate')
    const intermediate = {
      ...testCa('intermediate', key2, notBefore),
      certificate: signedBy(clusterCa(), {
        commonName: 'intermediate',
        key: key2,
        notBefore,
        notAfter,
        basicConstraints: { ca: true },
        keyUsage: ['keyCertSign'],
      }),
    }
    const chain =
      pem({ key: testKey('apiserver'), ...apiserverNames }, intermediate) +
      certificatePem(intermediate.certificate)
    expect((await problemsWith(apiserver, chain)).filter(({ severity }) => severity !== 'info')).toEqual([])
  })

  test('reports a Secret whose ca.crt did not sign its tls.crt', async () => {
    const other = testCa('kubernetes', testKey('stranger'), notBefore)
    const secret = `kind: Secret\nmetadata: {name: s}\ndata:\n  tls.crt: ${base64(pem())}\n  ca.crt: ${base64(certificatePem(other.certificate))}\n`
    expect(only(await problemsOf(named('f', secret)), 'CA_NOT_IN_BUNDLE').entry).toBe(
      'Secret s data[tls.crt]',
    )
  })

  test('does not treat the certificate after a damaged leaf as the leaf', async () => {
    const issuer = testCa('issuer', testKey('issuer'), notBefore)
    const stranger = testCa('stranger', testKey('stranger'), notBefore)
    const chain = base64(pem({}, issuer).replace(/M/g, '!') + certificatePem(issuer.certificate))
    const secret = `kind: Secret\nmetadata: {name: s}\ntype: kubernetes.io/tls\ndata:\n  tls.crt: ${chain}\n  tls.key: ${base64(keyPem(key))}\n  ca.crt: ${base64(certificatePem(stranger.certificate))}\n`
    const user = `users:\n- name: u\n  user: {client-certificate-data: ${chain}, client-key-data: ${base64(keyPem(key))}}\nclusters:\n- name: k\n  cluster: {server: "https://h", certificate-authority-data: ${base64(certificatePem(stranger.certificate))}}\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\n`
    for (const [text, entry] of [
      [secret, 'Secret s data[tls.crt]'],
      [user, 'user u: client-certificate-data'],
    ] as const) {
      const problems = await problemsOf(named('f', text))
      expect(problems.filter(({ severity }) => severity !== 'info')).toMatchObject([
        { code: 'PEM_BLOCK_BAD', entry: expect.stringContaining(entry) },
      ])
    }
  })

  const kubeconfig = (signer: TestCa, user: string) =>
    `clusters:\n- name: k\n  cluster: {server: "https://10.0.0.11:6443", certificate-authority-data: ${base64(certificatePem(signer.certificate))}}\nusers:\n- name: u\n  user: {client-certificate-data: ${base64(user)}, client-key-data: ${base64(keyPem(key))}}\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\n`

  test('reports a kubeconfig whose CA did not sign the served certificate', async () => {
    const other = testCa('kubernetes', testKey('stranger'), notBefore)
    const served: Source = { name: '10.0.0.11:6443', bytes: Buffer.from(pem(apiserverNames)) }
    const problem = only(
      await problemsOf(named('f', kubeconfig(other, pem({}, other))), served),
      'KUBECONFIG_CA_NOT_OF_SERVER',
    )
    expect(problem).toMatchObject({
      source: 'f',
      entry: 'cluster k: certificate-authority-data',
      severity: 'critical',
    })
    expect(await problemsOf(named('f', kubeconfig(ca, pem())), served)).toEqual([])
    // Another server's chain is not evidence.
    expect(
      await problemsOf(named('f', kubeconfig(other, pem({}, other))), { ...served, name: '10.0.0.12:6443' }),
    ).toEqual([])
  })

  test('assigns an address that the servers of two clusters share to the CA that the kubeconfig trusts', async () => {
    const other = controlPlaneTree({ madeAt: notBefore, algorithm: 'RSA' })
    const trees = [
      ...sourcesOf({ files, folders: ['/etc/kubernetes'], copiedTo: '/a' }),
      ...sourcesOf({ files: other.files, folders: ['/etc/kubernetes'], copiedTo: '/b' }),
    ]
    const config = (signer: TestCa) =>
      named('f', kubeconfig(signer, pem({}, signer)).replace('10.0.0.11', '10.96.0.1'))
    const stranger = testCa('kubernetes', testKey('stranger'), notBefore)
    const codes = async (signer: TestCa) =>
      (await problemsOf(...trees, config(signer)))
        .filter(({ code }) => code === 'KUBECONFIG_CA_NOT_OF_SERVER')
        .map(({ source }) => source)
    expect(await codes(clusterCa())).toEqual([])
    expect(await codes(clusterCa(other.cas))).toEqual([])
    expect(await codes(stranger)).toEqual(['f'])
  })

  test('distinguishes another CA of the same name by its key ID', async () => {
    const other = testCa('kubernetes', testKey('stranger'), notBefore)
    const idOf = ({ certificate }: TestCa) => Certificate.parse(certificate).subjectKeyId
    const same = `another CA of the same name, "CN=kubernetes", with key ID ${idOf(ca)}; `
    const served: Source = { name: '10.0.0.11:6443', bytes: Buffer.from(pem(apiserverNames)) }
    const problems = await problemsOf(named('f', kubeconfig(other, pem())), served)
    expect(only(problems, 'KUBECONFIG_CA_NOT_OF_SERVER').message).toBe(
      `the certificate of the API server (10.0.0.11:6443) is signed by ${same}this one has ${idOf(other)}`,
    )
    expect(only(problems, 'KUBECONFIG_CA_NOT_OF_CLIENT').message).toBe(
      `signed by ${same}the one of cluster "k" has ${idOf(other)}`,
    )
    const etcd = testCa('etcd-ca', testKey('stranger'), notBefore)
    const leaf = pem(
      {
        key: testKey('etcd-peer'),
        extendedKeyUsage: ['serverAuth', 'clientAuth'],
        subjectAltNames: { dns: ['a'] },
      },
      etcd,
    )
    expect(
      only(await problemsWith('/etc/kubernetes/pki/etcd/peer.crt', leaf), 'CA_NOT_IN_BUNDLE').message,
    ).toBe(
      `signed by another CA of the same name, "CN=etcd-ca", with key ID ${idOf(etcd)}; the one in /etc/kubernetes/pki/etcd/ca.crt has ${idOf(cas.get('etcd-ca')!)}`,
    )
  })

  test('reports a kubelet whose client certificate was not signed by the CA in the same pki folder', async () => {
    const stranger = testCa('kubernetes', testKey('stranger'), notBefore)
    const path = '/var/lib/kubelet/pki/kubelet-client-current.pem'
    const text =
      pem({ commonName: 'system:node:cp1', organization: ['system:nodes'] }, stranger) + keyPem(key)
    const changed: NodeFiles = new Map([...files, [path, { ...files.get(path)!, bytes: Buffer.from(text) }]])
    const folders = ['/etc/kubernetes/pki', '/var/lib/kubelet/pki']
    const codes = async (copiedTo: string) =>
      noted(await inspectNode(now, { files: changed, folders, copiedTo }))
        .filter(({ code }) => code === 'CA_NOT_IN_BUNDLE')
        .map(({ source, severity }) => [source, severity])
    expect(await codes('')).toEqual([[path, 'critical']])
    expect(await codes('/copy')).toEqual([[`/copy${path}`, 'critical']])
    // The folders of two nodes are independent.
    const apart = await problemsOf(
      ...sourcesOf({ files: changed, folders: [folders[0]!], copiedTo: '/a' }),
      ...sourcesOf({ files: changed, folders: [folders[1]!], copiedTo: '/b' }),
    )
    expect(apart.filter(({ code }) => code === 'CA_NOT_IN_BUNDLE')).toEqual([])
  })

  test('warns about a kubeconfig whose CA did not sign the client certificate', async () => {
    const other = testCa('elsewhere', testKey('stranger'), notBefore)
    const problem = only(
      await problemsOf(named('f', kubeconfig(other, pem()))),
      'KUBECONFIG_CA_NOT_OF_CLIENT',
    )
    expect(problem).toMatchObject({ severity: 'warning', entry: 'user u: client-certificate-data' })
  })

  test('reports a duplicate in a bundle as information', async () => {
    const problem = only(
      await problemsOf(named('f', certificatePem(ca.certificate, clusterCa().certificate, ca.certificate))),
      'BUNDLE_MEMBER_DUPLICATE',
    )
    expect(problem).toMatchObject({
      severity: 'info',
      entry: 'certificate 3',
      message: 'the same certificate as certificate 1',
    })
  })

  test('reports kubeadm’s ca.crt with two certificates, which stops kube-controller-manager', async () => {
    const path = '/etc/kubernetes/pki/ca.crt'
    const two = certificatePem(
      clusterCa().certificate,
      testCa('kubernetes', testKey('new'), notBefore).certificate,
    )
    expect(only(await problemsWith(path, two, 0o644), 'CA_FILE_NOT_SINGLE')).toMatchObject({
      source: path,
      severity: 'warning',
    })
  })

  test('reports a certificate that was issued for another key than the request’s', async () => {
    const request = createRequest({ subject: { commonName: 'leaf' } }, testKey('other'))
    const csr = {
      kind: 'CertificateSigningRequest',
      metadata: { name: 'c' },
      spec: { request: base64(writePem('CERTIFICATE REQUEST', request)) },
      status: { certificate: base64(pem()) },
    }
    expect(only(await problemsOf(named('f', JSON.stringify(csr))), 'KEY_MISMATCH').message).toContain(
      'another key than that of its request',
    )
  })
})

describe('content', () => {
  test('reports weak keys', async () => {
    const rsa = (modulusLength: number) => generateKeyPairSync('rsa', { modulusLength }).privateKey
    const p224 = generateKeyPairSync('ec', { namedCurve: 'P-224' }).privateKey
    const message = async (weak: LeafOptions['key']) =>
      only(await problemsOf(named('f', pem({ key: weak }))), 'KEY_WEAK').message
    expect(await message(rsa(1024))).toBe('RSA key of 1024 bits; the minimum is 2048')
    expect(await message(rsa(768))).toBe(
      'RSA key of 768 bits, which Kubernetes refuses since 1.33 (Go 1.24); the minimum is 2048',
    )
    expect(await message(p224)).toContain('P-224')
    const long = longRsaKey()
    const words =
      'RSA key of 8676 bits, which TLS in Go, and so Kubernetes, refuses: 8192 bits is the maximum'
    expect(await message(long)).toBe(words)
    const root = testCa('long', long, notBefore)
    const rootPem = certificatePem(root.certificate)
    expect(await problemsOf(named('ca.crt', rootPem))).toEqual([])
    expect(await problemsOf(named('f', pem({ key: rsa(2048) })))).toEqual([])
  })

  test('does not advise to fetch the file again for a curve or serial number that Go rejects', async () => {
    const secp256k1 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey
    const nextOf = async (der: Uint8Array) =>
      only(await problemsOf(named('f', writePem('CERTIFICATE', der))), 'CERT_UNREADABLE').fix
    expect(await nextOf(craft({ spki: spkiOf(secp256k1) }))).toContain('P-256, P-384 or P-521')
    expect(await nextOf(craft({ serialNumber: Uint8Array.of(0x02, 0x01, 0xfb) }))).toContain(
      'a positive serial number',
    )
  })

  test.each(['unsupported curve', 'serialNumber', 'extension for the second time'])(
    'gives the same advice for a SAN that resembles it in a certificate that must be reissued: %s',
    async (words) => {
      const uri = `https://${words.replaceAll(' ', '-')}/${words}%zz`
      const altNames = extension('subjectAltName', sequence(element(0x86, Buffer.from(uri))))
      const text = writePem('CERTIFICATE', craft({ tail: extensions([altNames]) }))
      const { message, fix } = only(await problemsOf(named('f', text)), 'CERT_UNREADABLE')
      expect(message).toContain(words)
      expect(fix).toBe('get the file again from its issuer')
    },
  )

  test('reports keys that Go cannot use: Ed448, RSA-PSS, X25519', async () => {
    const problemOf = async (odd: KeyObject) =>
      only(await problemsOf(named('f', pem({ key: odd }))), 'KEY_WEAK')
    const ed448 = generateKeyPairSync('ed448').privateKey
    expect((await problemOf(ed448)).message).toBe('Ed448 key, which Go, and so Kubernetes, does not support')
    const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey
    expect((await problemOf(pss)).message).toContain('RSA-PSS key')
    const { report } = await inspect(now, [named('f', pem({ key: ed448 }))])
    expect(report.certificates[0]!.publicKey.algorithm).toBe('Ed448')
  })

  describe('ML-DSA', () => {
    const unknown =
      'ML-DSA-65, which Kubernetes up to 1.37 and etcd up to 3.7 (Go 1.26) do not support; Kubernetes 1.38 (Go 1.27) is the first to support it, in TLS 1.3'
    const mlDsa = mlDsaKeys['ML-DSA-65']
    const rootName = { subject: { commonName: 'pq' }, issuer: { commonName: 'pq' } }
    const root = mlDsaCertificate(mlDsa, { ...rootName, basicConstraints: { ca: true } })
    const inFile = (...ders: Uint8Array[]) =>
      named('f', ders.map((der) => writePem('CERTIFICATE', der)).join(''))
    const ofRoot = (publicKey: KeyObject) => mlDsaCertificate(mlDsa, { issuer: rootName.subject, publicKey })
    const request = (signer = mlDsa) =>
      named('f', writePem('CERTIFICATE REQUEST', mlDsaRequest({ commonName: 'jane' }, mlDsa, signer)))

    test('reports the first minor version that supports the keys, and accepts the root’s own signature', async () => {
      const { report } = await inspect(now, [inFile(root)])
      expect(only(noted({ report } as InspectionOutcome), 'KEY_WEAK')).toMatchObject({
        severity: 'warning',
        message: unknown.replace('ML-DSA-65,', 'ML-DSA-65 key,'),
      })
      expect(report.certificates[0]).toMatchObject({
        publicKey: { algorithm: 'ML-DSA-65' },
        signatureAlgorithm: 'ML-DSA-65',
        issuerFound: { source: 'f' },
      })
      expect(report.problems.map(({ code }) => code)).not.toContain('SIGNATURE_UNSUPPORTED')
    })

    test('reports malformed keys as unusable by any program', async () => {
      const spki = sequence(sequence(oid(oidOf('ML-DSA-65'))), bitString(Buffer.alloc(1951)))
      const { message } = only(
        await problemsOf(inFile(mlDsaLeafOfEcdsaCa(mlDsa, { publicKey: spki }))),
        'KEY_WEAK',
      )
      expect(message).toBe('ML-DSA-65 key, which no program can use: it has 1951 bytes instead of 1952')
    })

    test('reports a signature on a certificate with another kind of key separately', async () => {
      const problems = await problemsOf(inFile(ofRoot(testKey('leaf')), root))
      expect(only(problems, 'SIGNATURE_UNSUPPORTED').message).toBe(`signed with ${unknown}`)
      expect((await problemsOf(inFile(ofRoot(mlDsaKeys.other)))).map(({ code }) => code)).toEqual([
        'KEY_WEAK',
      ])
    })

    test.each<[KeyUsage[] | undefined, string | undefined]>([
      [['digitalSignature', 'keyEncipherment'], 'its key usage has keyEncipherment, which'],
      [['keyAgreement', 'decipherOnly'], 'its key usage has keyAgreement and decipherOnly, which'],
      [['digitalSignature', 'nonRepudiation', 'keyCertSign', 'cRLSign'], undefined],
      [undefined, undefined],
    ])('key usage %j', async (keyUsage, message) => {
      const usage = keyUsage === undefined ? {} : { keyUsage }
      const codes = (problems: readonly Problem[]) =>
        problems.filter(({ code }) => code === 'KEY_USAGE_UNFIT')
      expect(codes(await problemsOf(inFile(mlDsaLeafOfEcdsaCa(mlDsa, usage))))).toEqual(
        message === undefined
          ? []
          : [expect.objectContaining({ severity: 'info', message: expect.stringContaining(message) })],
      )
      // kubeadm writes keyEncipherment into ECDSA certificates too, and every verifier accepts that.
      expect(codes(await problemsOf(inFile(mlDsaLeafOfEcdsaCa(testKey('leaf'), usage))))).toEqual([])
    })

    test('compares the key in a file with its certificate', async () => {
      const of = (key: KeyObject) => [
        named('a.crt', writePem('CERTIFICATE', root)),
        named('a.key', key.export({ format: 'pem', type: 'pkcs8' }) as string),
      ]
      const { report } = await inspect(now, of(mlDsa))
      expect(report.certificates[0]?.key).toEqual({ source: 'a.key', entry: '', matches: true })
      expect(report.keys[0]).toMatchObject({
        publicKey: { algorithm: 'ML-DSA-65' },
        matches: [{ source: 'a.crt' }],
      })
      expect((await inspect(now, of(mlDsaKeys.other))).report.keys[0]?.matches).toEqual([])
    })

    test('shows whether its own key signed a request, and that API servers reject it', async () => {
      const { report } = await inspect(now, [request()])
      expect(report.requests).toMatchObject([{ signatureValid: true }])
      expect(only(noted({ report } as InspectionOutcome), 'SIGNATURE_UNSUPPORTED').message).toBe(
        `signed with ${unknown}`,
      )
      const stolen = await inspect(now, [request(mlDsaKeys.other)])
      expect(stolen.report.requests).toMatchObject([{ signatureValid: false }])
      only(stolen.report.problems, 'REQUEST_SIGNATURE_WRONG')
    })

    test('reports what OpenSSL before 3.5 cannot verify as unknown, never as valid', async () => {
      const refuse = vi.spyOn(PublicKeyInfo.prototype, 'keyObject').mockImplementation(() => {
        throw new KcertError('KCERT_KEY_UNSUPPORTED', 'public key cannot be used')
      })
      onTestFinished(() => refuse.mockRestore())
      const unchecked =
        'the signature cannot be checked: the OpenSSL of this Node.js does not support ML-DSA-65'
      const leaf = ofRoot(mlDsaKeys.other)
      const { report } = await inspect(now, [inFile(leaf, root), request()])
      expect(
        report.certificates.map(({ issuerFound, issuerUnchecked }) => [issuerFound, issuerUnchecked]),
      ).toEqual([
        [undefined, true],
        [undefined, true],
      ])
      expect(report.requests).toMatchObject([{ signatureValid: false, signatureUnchecked: true }])
      expect(only(report.problems, 'REQUEST_SIGNATURE_WRONG').message).toBe(unchecked)
      const data = {
        'tls.crt': base64(writePem('CERTIFICATE', leaf)),
        'ca.crt': base64(writePem('CERTIFICATE', root)),
      }
      const secret = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data })
      expect(only(await problemsOf(named('f', secret)), 'CA_NOT_IN_BUNDLE').message).toBe(
        `signed by a CA named "CN=pq", but whether it is ca.crt is unknown: ${unchecked}`,
      )
    })
  })

  test('reports a CA with a critical extension that Go does not support', async () => {
    const odd = extension('nsComment', octetString(new Uint8Array(0)), true)
    const isCa = extension('basicConstraints', sequence(element(0x01, Uint8Array.of(0xff))), true)
    const messageOf = async (...list: Uint8Array[]) => {
      const text = writePem('CERTIFICATE', craft({ tail: extensions(list) }))
      const problem = only(await problemsOf(named('f', text)), 'CRITICAL_EXTENSION_UNKNOWN')
      expect(problem.severity).toBe('critical')
      return problem.message
    }
    expect(await messageOf(odd, isCa)).toBe(
      'a critical extension that Go does not support, nsComment: Kubernetes rejects each chain with this CA',
    )
    expect(await messageOf(odd)).toBe(
      'a critical extension that Go does not support, nsComment: Kubernetes rejects the certificate',
    )
  })

  test('reports a serving certificate without SANs: as a warning, or as critical in a serving role', async () => {
    expect(
      only(await problemsOf(named('f', pem({ extendedKeyUsage: ['serverAuth'] }))), 'SAN_MISSING').severity,
    ).toBe('warning')
    expect(
      only(await problemsWith(apiserver, treeLeaf({ extendedKeyUsage: ['serverAuth'] })), 'SAN_MISSING')
        .severity,
    ).toBe('critical')
    expect(await problemsOf(named('f', pem({ extendedKeyUsage: ['clientAuth'] })))).toEqual([])
  })

  test('reports usages that the role does not allow', async () => {
    const problem = only(
      await problemsWith(
        apiserver,
        treeLeaf({ subjectAltNames: { dns: ['x'] }, extendedKeyUsage: ['clientAuth'] }),
      ),
      'ROLE_USAGE_WRONG',
    )
    expect(problem.message).toBe(
      'apiserver needs the extended key usage serverAuth; the certificate has only clientAuth',
    )
    const config = `users:\n- name: u\n  user: {client-certificate-data: ${base64(pem({ extendedKeyUsage: ['serverAuth'], subjectAltNames: { dns: ['x'] } }))}, client-key-data: ${base64(keyPem(key))}}\n`
    only(await problemsOf(named('f', config)), 'ROLE_USAGE_WRONG')
    expect(
      await problemsOf(
        named(
          'f',
          config.replace(
            /client-certificate-data: [^,]*/,
            `client-certificate-data: ${base64(pem({ extendedKeyUsage: [] }))}`,
          ),
        ),
      ),
    ).toEqual([])
  })

  test('reports a CA file whose certificate is not a CA, or may not sign', async () => {
    const path = '/etc/kubernetes/pki/front-proxy-ca.crt'
    const key2 = testKey('front-proxy-ca')
    const message = async (leaf: Partial<LeafOptions>) =>
      only(
        await problemsWith(
          path,
          pem(
            { key: key2, commonName: 'front-proxy-ca', extendedKeyUsage: [], ...leaf },
            cas.get('front-proxy-ca')!,
          ),
        ),
        'ROLE_USAGE_WRONG',
      ).message
    expect(await message({})).toContain('not a CA')
    expect(await message({ basicConstraints: { ca: true }, keyUsage: ['digitalSignature'] })).toContain(
      'lacks keyCertSign',
    )
  })

  test('reports a subject without the permissions of its role', async () => {
    const path = '/etc/kubernetes/pki/front-proxy-client.crt'
    const text = pem(
      { key: testKey('front-proxy-client'), commonName: 'somebody' },
      cas.get('front-proxy-ca')!,
    )
    expect(only(await problemsWith(path, text), 'ROLE_SUBJECT_WRONG').message).toBe(
      'subject CN=somebody: front-proxy-client needs CN=front-proxy-client',
    )
    // Clients match serving certificates by other names.
    expect(
      (await problemsWith(apiserver, treeLeaf({ ...apiserverNames, commonName: 'api' }))).filter(
        ({ severity }) => severity !== 'info',
      ),
    ).toEqual([])
  })

  test('checks a kubelet’s subject', async () => {
    const path = '/var/lib/kubelet/pki/kubelet-client-current.pem'
    const source = (commonName: string, ...organization: string[]): Source => ({
      name: path,
      bytes: Buffer.from(pem({ commonName, organization }) + keyPem(key)),
      file: { path, mode: 0o600, linkTarget: 'x.pem' },
    })
    expect(
      only(await problemsOf(source('worker-1', 'system:nodes')), 'ROLE_SUBJECT_WRONG').message,
    ).toContain('needs CN=system:node:NAME')
    expect(only(await problemsOf(source('system:node:a')), 'ROLE_SUBJECT_WRONG').message).toContain(
      'needs O=system:nodes',
    )
    expect(await problemsOf(source('system:node:a', 'system:nodes'))).toEqual([])
  })

  test('warns about system:masters, and reports it as information in kubeadm’s files', async () => {
    const masters = (commonName: string) => pem({ commonName, organization: ['system:masters'] })
    const severity = async (text: string) =>
      only(await problemsOf(named('f', text)), 'SYSTEM_MASTERS').severity
    expect(await severity(masters('root'))).toBe('warning')
    expect(await severity(masters('kubernetes-super-admin'))).toBe('warning')
    expect(await severity(masters('kubernetes-admin'))).toBe('info')
    const older = treeLeaf(
      { commonName: 'kube-apiserver-kubelet-client', organization: ['system:masters'] },
      'apiserver-kubelet-client',
    )
    const problems = await problemsWith('/etc/kubernetes/pki/apiserver-kubelet-client.crt', older)
    expect(problems.filter(({ code }) => code === 'SYSTEM_MASTERS').map((one) => one.severity)).toEqual([
      'info',
      'info',
    ])
    expect(problems.filter((one) => one.severity !== 'info')).toEqual([])
  })

  const withUids = (uids: readonly string[], leaf: Partial<LeafOptions> = {}) => {
    const attributes = [['2.5.4.3', 'ann'], ...uids.map((uid) => ['1.3.6.1.4.1.57683.2', uid])]
    return pem({ subject: attributes.map(([type = '', value = '']) => [{ type, value }]), ...leaf })
  }

  test.each([
    [['u-1', 'u-2'], 'its subject has 2 user UIDs: "u-1", "u-2"'],
    [[''], 'its subject has an empty user UID'],
  ])(
    'reports the user UIDs %j of a client certificate as critical: API servers answer 401',
    async (uids, message) => {
      expect(only(await problemsOf(named('f', withUids(uids))), 'USER_UID_INVALID')).toMatchObject({
        severity: 'critical',
        message: `${message} (OID 1.3.6.1.4.1.57683.2), and API servers since Kubernetes 1.33 answer 401`,
        fix: 'reissue it with one user UID, or with none: renew it with its issuer',
      })
    },
  )

  test('accepts one user UID, and two only if no API server reads the user', async () => {
    const [two, serving] = [
      ['u-1', 'u-2'],
      { extendedKeyUsage: ['serverAuth'], subjectAltNames: { dns: ['a'] } },
    ]
    expect(await problemsOf(named('f', withUids(['u-1'])))).toEqual([])
    expect(await problemsOf(named('f', withUids(two, serving)))).toEqual([])
    const etcdCa = cas.get('etcd-ca')!
    const ofEtcd = certificatePem(
      signedBy(etcdCa, {
        ...{ commonName: '', key: testKey('apiserver-etcd-client'), notBefore, notAfter },
        subject: [
          [{ type: '2.5.4.3', value: 'kube-apiserver-etcd-client' }],
          ...two.map((value) => [{ type: '1.3.6.1.4.1.57683.2', value }]),
        ],
        extendedKeyUsage: ['clientAuth'],
      }),
    )
    const problems = await problemsWith('/etc/kubernetes/pki/apiserver-etcd-client.crt', ofEtcd)
    expect(problems.filter(({ severity }) => severity !== 'info')).toEqual([])
  })

  test('accepts apiserver-kubelet-client with the O of kubeadm 1.29 to 1.36.0, and with no other O', async () => {
    const withOrganization = (organization: string) => {
      const subject = { commonName: 'kube-apiserver-kubelet-client', organization: [organization] }
      return problemsWith(
        '/etc/kubernetes/pki/apiserver-kubelet-client.crt',
        treeLeaf(subject, 'apiserver-kubelet-client'),
      )
    }
    const problems = await withOrganization('kubeadm:cluster-admins')
    expect(problems.filter(({ severity }) => severity !== 'info')).toEqual([])
    expect(only(await withOrganization('dev'), 'ROLE_SUBJECT_WRONG')).toMatchObject({
      message: expect.stringContaining(
        'needs no O, or from an older kubeadm O=system:masters, or from an older kubeadm O=kubeadm:cluster-admins',
      ),
      fix: expect.stringContaining(
        'kubectl get clusterrolebinding kubeadm:apiserver-kubelet-client || kubectl create clusterrolebinding',
      ),
      next: expect.stringMatching(
        /mv \S+\.crt \S+\.key "\$old" && kubeadm init phase certs apiserver-kubelet-client/,
      ),
    })
  })
})

describe('kubeconfigs that clients reject', () => {
  const whole = 'clusters: []\nusers: []\ncontexts: []\n'

  test('reports a missing token file as critical', async () => {
    const text = 'clusters: []\nusers:\n- {name: u, user: {tokenFile: /run/token}}\ncontexts: []\n'
    expect(only(await problemsOf(named('/x/f', text)), 'KUBECONFIG_FILE_UNREADABLE')).toMatchObject({
      severity: 'critical',
      entry: 'user u: tokenFile /run/token',
      message: '/run/token: no such file',
    })
  })

  test('reads Y as true like client-go, and reports insecure-skip-tls-verify: Y', async () => {
    const text = 'clusters:\n- name: k\n  cluster: {server: "https://a", insecure-skip-tls-verify: Y}\n'
    expect((await problemsOf(named('f', text))).map(({ code }) => code)).toEqual(['KUBECONFIG_INSECURE'])
  })

  test.each([
    [
      '\\/ in JSON',
      '{"clusters": [], "users": [], "x": "a\\/b"}',
      'line 1: the escape \\/, which client-go refuses, in JSON too',
    ],
    [
      '%YAML 1.2',
      `%YAML 1.2\n---\n${whole}`,
      'line 1: a directive that client-go refuses: it supports only %YAML 1.1',
    ],
  ])('reports %s as critical, with advice', async (_name, text, message) => {
    expect(only(await problemsOf(named('f', text)), 'DOCUMENT_MALFORMED')).toMatchObject({
      severity: 'critical',
      message,
      fix: 'correct it: kubectl and every other client reject the whole file because of it',
    })
  })

  test('reports Latin-1 in a comment as critical, and accepts CR line ends and text after JSON', async () => {
    const latin = { ...named('f', ''), bytes: Buffer.from(`# caf\u00e9\n${whole}`, 'latin1') }
    expect(only(await problemsOf(latin), 'DOCUMENT_MALFORMED').message).toMatch(/^not UTF-8/)
    expect(await problemsOf(named('f', whole.replaceAll('\n', '\r')))).toEqual([])
    expect(await problemsOf(named('f', '{"clusters": [], "users": []}\ntrailing\n'))).toEqual([])
  })

  test('reports a kubeconfig after an empty first document, which no client reads', async () => {
    expect(
      only(await problemsOf(named('f', `---\n---\n${whole}`)), 'KUBECONFIG_FIELD_MALFORMED'),
    ).toMatchObject({
      severity: 'critical',
      message: expect.stringContaining('clients read only the first one, even if it is empty'),
      fix: 'move it to its own file, or remove the documents before it',
    })
  })
})

describe('kubeconfig users', () => {
  const user = (fields: string) =>
    problemsOf(named('admin.conf', `clusters: []\nusers:\n- name: a\n  user: {${fields}}\ncontexts: []\n`))

  test('reports a client key without a certificate, unless the user has another credential', async () => {
    const data = `client-key-data: ${base64(keyPem(key))}`
    expect(only(await user(data), 'KUBECONFIG_FIELD_MALFORMED')).toMatchObject({
      severity: 'warning',
      message: expect.stringContaining('a client key without client-certificate or client-certificate-data'),
      fix: expect.stringContaining('put the certificate that was issued for this key'),
    })
    expect(await user(`${data}, token: abc`)).toEqual([])
  })
})

describe('files', () => {
  test.each([
    [0o644, 'warning', 'every user of this machine can read the private key'],
    [0o640, 'info', 'the group of the file can read the private key'],
  ])('a private key of mode %o', async (mode, severity, message) => {
    const problem = only(await problemsOf(named('/x/k.key', keyPem(key), mode)), 'KEY_READABLE_BY_OTHERS')
    expect(problem).toMatchObject({ severity, next: 'chmod 600 /x/k.key' })
    expect(problem.message).toContain(message)
  })

  test('does not put a path with shell characters into a command', async () => {
    expect(
      only(await problemsOf(named('/x/$(a) b.key', keyPem(key), 0o644)), 'KEY_READABLE_BY_OTHERS').fix,
    ).toBe('set its mode to 600')
  })

  test('treats a kubeconfig with a key as a key file', async () => {
    const config = `users:\n- name: u\n  user: {client-certificate-data: ${base64(pem())}, client-key-data: ${base64(keyPem(key))}}\n`
    expect(only(await problemsOf(named('f', config, 0o644)), 'KEY_READABLE_BY_OTHERS').entry).toBe(
      'user u: client-key-data',
    )
  })

  test('treats a kubeconfig with a token or a password as a key file too', async () => {
    const config = (user: string) => `users:\n- name: u\n  user: {${user}}\n`
    for (const user of ['token: abc', 'username: a, password: b']) {
      expect(
        only(await problemsOf(named('/x/f', config(user), 0o644)), 'KEY_READABLE_BY_OTHERS'),
      ).toMatchObject({
        severity: 'warning',
        entry: 'user u',
        next: 'chmod 600 /x/f',
      })
    }
    expect(
      only(await problemsOf(named('/x/f', config('token: abc'), 0o644)), 'KEY_READABLE_BY_OTHERS').message,
    ).toBe('mode 0644: every user of this machine can read the token')
    const byFile = await problemsOf(named('/x/f', config('tokenFile: /run/token'), 0o644))
    expect(byFile.filter(({ code }) => code === 'KEY_READABLE_BY_OTHERS')).toEqual([])
    expect(await problemsOf(named('/x/f', config('token: abc'), 0o600))).toEqual([])
  })

  test('reports a password that opens nothing, also for keys and keystores in Secrets', async () => {
    const locked = key.export({
      format: 'pem',
      type: 'pkcs8',
      cipher: 'aes-256-cbc',
      passphrase: 'x',
    }) as string
    const { report } = await inspect(now, [named('f', locked)], { password: 'y' })
    expect(only(noted({ report } as InspectionOutcome), 'KEY_LOCKED')).toMatchObject({
      severity: 'warning',
      message: 'the password in --password-file does not decrypt the private key',
    })
    expect((await inspect(now, [named('f', locked)], { password: 'x' })).report.problems).toEqual([])
  })

  test.runIf(existsSync(keystore))('a locked keystore in a Secret is information', async () => {
    const secret = `kind: Secret\nmetadata: {name: a}\ndata: {keystore.p12: ${base64(readFileSync(keystore))}}\n`
    const problem = only(await problemsOf(named('s', secret)), 'KEYSTORE_LOCKED')
    expect(problem).toMatchObject({ severity: 'info', entry: 'Secret a data[keystore.p12]' })
    const { report } = await inspect(now, [named('f', readFileSync(keystore))], { password: 'wrong' })
    expect(only(report.problems, 'KEYSTORE_LOCKED').fix).toBe(
      'give the file with its password with --password-file',
    )
  })

  test.runIf(existsSync(keystore))('a keystore that its password guards may be read by others', async () => {
    const file = named('f', readFileSync(keystore), 0o644)
    const { report } = await inspect(now, [file], { password: 'password' })
    expect(report.keys).toMatchObject([{ encrypted: true, publicKey: { sha256: expect.any(String) } }])
    expect(report.problems.map(({ code }) => code)).not.toContain('KEY_READABLE_BY_OTHERS')
  })

  test('repairs joined, indented, single-line or escaped blocks with the advised command', async () => {
    const two = pem() + pem({ commonName: 'other' })
    const spoilt = [
      two.replaceAll('-----\n-----', '----------'),
      two.replaceAll(/^/gm, '  '),
      two.replaceAll(/(?<!-----)\n/g, '').replaceAll('CERTIFICATE-----\n', 'CERTIFICATE-----'),
      two.replaceAll('\n', '\\n'),
    ]
    for (const text of spoilt) {
      const bad = (await problemsOf(named('f', text))).filter(({ code }) => code === 'PEM_BLOCK_BAD')
      const command = /sed -E .* f \| grep \./.exec(bad[0]!.next)![0].replace(' f ', ' - ')
      const { stdout } = spawnSync('sh', ['-c', command], { input: text, encoding: 'utf8' })
      const { report } = await inspect(now, [named('f', stdout)])
      expect([report.certificates.length, report.problems], text).toEqual([2, []])
    }
  })

  test('gives the same advice for a label that resembles a layout defect', async () => {
    const text = '-----BEGIN goes on after its dashes-----\n!!!!\n-----END goes on after its dashes-----\n'
    const { fix } = only(await problemsOf(named('f', text + pem())), 'PEM_BLOCK_BAD')
    expect(fix).toBe('correct or remove the block: Kubernetes silently ignores it')
  })

  test('reads all valid blocks next to a damaged one', async () => {
    const broken = pem().replace('-----END CERTIFICATE-----', '-----END CERT-----')
    const { report } = await inspect(now, [named('f', certificatePem(ca.certificate) + broken + pem())])
    expect(report.certificates.map(({ entry }) => entry)).toEqual(['certificate 1', 'certificate 3'])
    expect(only(noted({ report } as InspectionOutcome), 'PEM_BLOCK_BAD')).toMatchObject({
      severity: 'warning',
      entry: 'certificate 2',
      message: expect.stringMatching(/^line \d+: CERTIFICATE: /),
    })
  })

  test('reports a certificate that Kubernetes ignores because of its headers or its label', async () => {
    const headed = pem().replace('-----\n', '-----\nProc-Type: x\n\n')
    const trusted = pem().replaceAll('CERTIFICATE', 'X509 CERTIFICATE')
    for (const text of [headed, trusted])
      expect(only(await problemsOf(named('f', text)), 'PEM_BLOCK_BAD').message).toContain('Kubernetes skips')
  })

  test('reports a malformed certificate with field and offset, and reads the others', async () => {
    const der = Buffer.from(signedBy(ca, { commonName: 'x', key, notBefore, notAfter }))
    der[der.indexOf(Buffer.from([0x17, 0x0d])) + 2] = 0x58
    const { report } = await inspect(now, [named('f', certificatePem(der, ca.certificate))])
    expect(report.certificates).toHaveLength(1)
    const problem = only(noted({ report } as InspectionOutcome), 'CERT_UNREADABLE')
    expect(problem).toMatchObject({ severity: 'critical', entry: 'certificate 1' })
    expect(problem.message).toMatch(
      /^line 1: certificate: tbsCertificate\.validity\.notBefore at offset \d+: /,
    )
    expect(problem.fix).toContain('reject the whole file')
  })

  test('reports malformed requests and keys', async () => {
    only(
      await problemsOf(named('f', writePem('CERTIFICATE REQUEST', Buffer.from([0x30, 3, 2, 1, 9])))),
      'REQUEST_UNREADABLE',
    )
    only(
      await problemsOf(named('f', writePem('PRIVATE KEY', Buffer.from([0x30, 3, 2, 1, 9])))),
      'KEY_UNREADABLE',
    )
    only(
      await problemsOf(named('f', writePem('OPENSSH PRIVATE KEY', Buffer.from('openssh-key-v1')))),
      'KEY_UNREADABLE',
    )
  })

  test('reports a request that its own key did not sign', async () => {
    const der = Buffer.from(createRequest({ subject: { commonName: 'jane' } }, key))
    der[der.indexOf(Buffer.from('jane'))] = 0x4a
    only(await problemsOf(named('f', writePem('CERTIFICATE REQUEST', der))), 'REQUEST_SIGNATURE_WRONG')
  })

  test('reports documents and fields that cannot be read', async () => {
    expect(
      only(await problemsOf(named('f', 'kind: Secret\ndata: [\n')), 'DOCUMENT_MALFORMED').message,
    ).toMatch(/^line 3: /)
    const secret = 'kind: Secret\nmetadata: {name: s}\ndata: {tls.crt: "*"}\n'
    expect(only(await problemsOf(named('f', secret)), 'FIELD_MALFORMED')).toMatchObject({
      entry: 'Secret s data[tls.crt]',
      message: expect.stringContaining('not base64'),
    })
  })

  test.each([
    ['', 'empty'],
    [base64('hello'), 'no certificate in PEM'],
    [base64(keyPem(key)), 'no certificate in PEM'],
    [base64(base64(pem())), 'base64 once more'],
  ])('reports a TLS Secret without a certificate: %#', async (value, reason) => {
    const data = `data: {tls.crt: "${value}", tls.key: ${base64(keyPem(key))}}`
    const secret = `kind: Secret\nmetadata: {name: s}\ntype: kubernetes.io/tls\n${data}\n`
    expect(only(await problemsOf(named('f', secret)), 'FIELD_MALFORMED')).toMatchObject({
      entry: 'Secret s data[tls.crt]',
      message: `data[tls.crt]: ${reason}, in a Secret of type kubernetes.io/tls`,
      next: expect.stringContaining('kubectl create secret tls'),
    })
    // The value with this name in another kind of Secret is not checked.
    expect(await problemsOf(named('f', secret.replace('kubernetes.io/tls', 'Opaque')))).toEqual([])
  })

  test.each([
    ['not-found', 'check the path'],
    ['permission', 'run kcert with sudo, or as a user who may read it'],
    ['dangling-link', 'remove the link, or restore its target'],
    ['too-large', 'split it, or inspect the part that matters'],
    ['not-a-file', 'inspect a file or a folder'],
    ['io', 'try again, then check the file system'],
  ] as const)('a source that could not be read: %s', async (reason, fix) => {
    expect(only(await problemsOf({ name: 'f', reason, detail: 'why' }), 'SOURCE_UNREADABLE')).toMatchObject({
      severity: 'warning',
      fix,
    })
  })

  test('missing, dangling, regular files of nodes are in kubeadm-node.test.ts', async () => {
    const lost = new Map([...files].filter(([path]) => path !== apiserver))
    only(noted(await inspectNode(now, { files: lost, folders: ['/etc/kubernetes'] })), 'KUBEADM_FILE_MISSING')
    const path = '/var/lib/kubelet/pki/kubelet-server-current.pem'
    const link = { path, linkTarget: '/gone.pem' }
    only(
      await problemsOf({
        name: path,
        reason: 'dangling-link',
        detail: '',
        root: '/var/lib/kubelet',
        file: link,
      }),
      'KUBELET_CURRENT_DANGLES',
    )
    only(
      await problemsOf({
        name: path,
        bytes: Buffer.from(pem()),
        root: '/var/lib/kubelet',
        file: { path, mode: 0o600 },
      }),
      'KUBELET_CURRENT_NOT_A_LINK',
    )
  })

  // The recorded keystores are not part of the project, and no code in it writes an encrypted one.
  test.skipIf(!existsSync(keystore))('a keystore that does not open', async () => {
    const problem = only(await problemsOf(named('f', readFileSync(keystore))), 'KEYSTORE_LOCKED')
    expect(problem.fix).toContain('--password-file')
  })

  test('reports SHA-1, except in a self-signed certificate, whose signature is not verified', async () => {
    const rsa = testKey('rsa', 'RSA')
    const root = testCa('root', rsa, notBefore)
    const old = sha1Signed(signedBy(root, { commonName: 'x', key, notBefore, notAfter }), rsa)
    expect(only(await problemsOf(named('f', certificatePem(old))), 'SIGNATURE_WEAK').message).toBe(
      'signed with sha1WithRSAEncryption, which Kubernetes rejects',
    )
    expect(await problemsOf(named('f', certificatePem(sha1Signed(root.certificate, rsa))))).toEqual([])
  })
})

describe('kubeconfigs', () => {
  test('reports insecure-skip-tls-verify, with or without a CA', async () => {
    const config = (more: string) =>
      `clusters:\n- name: k\n  cluster: {insecure-skip-tls-verify: true${more}}\nusers: []\n`
    expect(only(await problemsOf(named('f', config(''))), 'KUBECONFIG_INSECURE')).toMatchObject({
      severity: 'warning',
      entry: 'cluster k',
    })
    const both = only(
      await problemsOf(
        named('f', config(`, certificate-authority-data: ${base64(certificatePem(ca.certificate))}`)),
      ),
      'KUBECONFIG_INSECURE',
    )
    expect(both.message).toContain('clients reject a context that also has a CA')
  })

  test('reports an APIService that skips the verification', async () => {
    only(
      await problemsOf(
        named('f', '{"kind":"APIService","metadata":{"name":"a"},"spec":{"insecureSkipTLSVerify":true}}'),
      ),
      'APISERVICE_INSECURE',
    )
  })

  test('reports fields that clients reject, and data that is not a certificate', async () => {
    const broken = only(
      await problemsOf(
        named('f', 'users:\n- name: u\n  user: {client-certificate-data: "QQ=*", client-key: x}\n'),
      ),
      'KUBECONFIG_FIELD_MALFORMED',
    )
    expect(broken).toMatchObject({ severity: 'critical', entry: 'users[u].client-certificate-data' })
    expect(broken.message).toContain('character 4')
    const empty = only(
      await problemsOf(
        named(
          'f',
          `clusters:\n- name: k\n  cluster: {server: "https://x", certificate-authority-data: ${base64('CADATA')}}\n`,
        ),
      ),
      'KUBECONFIG_FIELD_MALFORMED',
    )
    expect(empty).toMatchObject({
      entry: 'cluster k: certificate-authority-data',
      message: 'certificate-authority-data contains no certificate in PEM',
    })
    // With a letter missing in a field's name, kubectl connects to localhost:8080.
    const serverless = 'clusters:\n- name: k\n  cluster: {sever: "https://x"}\n'
    expect(only(await problemsOf(named('f', serverless)), 'KUBECONFIG_FIELD_MALFORMED')).toMatchObject({
      severity: 'warning',
      entry: 'clusters[k].server',
      message: expect.stringContaining('localhost:8080'),
    })
  })

  test('reports a file that cannot be read', async () => {
    const problem = only(
      await problemsOf(
        named('/h/config', 'users:\n- name: u\n  user: {client-certificate: u.crt, client-key-data: ""}\n'),
      ),
      'KUBECONFIG_FILE_UNREADABLE',
    )
    expect(problem).toMatchObject({
      severity: 'critical',
      entry: 'user u: client-certificate u.crt',
      message: '/h/u.crt: no such file',
    })
  })

  test('resolves absolute paths inside the copy of a node', async () => {
    const path = '/backup/cp1/etc/kubernetes/kubelet.conf'
    const { bytes } = files.get('/etc/kubernetes/kubelet.conf')!
    const asked: string[] = []
    const reader = readerOf(files, '/backup/cp1')
    await inspect(now, [{ name: path, bytes, file: { path, mode: 0o600 } }], {
      readReferencedFile: (one) => {
        asked.push(one)
        return reader(one)
      },
    })
    expect(asked).toEqual(['/backup/cp1/var/lib/kubelet/pki/kubelet-client-current.pem'])
  })

  test('reports names that are not in the file as information: another file of $KUBECONFIG may contain them', async () => {
    const problems = await problemsOf(
      named('f', 'contexts:\n- name: c\n  context: {cluster: k, user: u}\ncurrent-context: d\n'),
    )
    expect(problems.map(({ code, severity, entry, message }) => [code, severity, entry, message])).toEqual([
      ['KUBECONFIG_NAME_DANGLES', 'info', 'context c', 'cluster k is not in this file'],
      ['KUBECONFIG_NAME_DANGLES', 'info', 'context c', 'user u is not in this file'],
      ['KUBECONFIG_NAME_DANGLES', 'info', 'current-context', 'context d is not in this file'],
    ])
  })

  test('evaluates the files of one $KUBECONFIG as kubectl merges them: the first entry of a name is used', async () => {
    const other = testCa('elsewhere', testKey('stranger'), notBefore)
    const cluster = (signer: TestCa) =>
      `- name: k\n  cluster: {server: "https://x", certificate-authority-data: ${base64(certificatePem(signer.certificate))}}\n`
    const user = `users:\n- name: u\n  user: {client-certificate-data: ${base64(pem())}, client-key-data: ${base64(keyPem(key))}}\n`
    const context = 'contexts:\n- name: c\n  context: {cluster: k, user: u}\ncurrent-context: c\n'
    const merged = async (...texts: string[]) => {
      const sources = texts.map((text, i) => named(`f${i}`, text))
      const { report } = await inspect(now, sources, { mergedKubeconfigs: sources.map(({ name }) => name) })
      return report.problems.map(({ code, source, entry, message }) => [code, source, entry, message])
    }
    expect(await merged(context, `clusters:\n${cluster(ca)}${user}`)).toEqual([])
    expect(await merged(context, `clusters:\n${cluster(other)}${user}`)).toMatchObject([
      ['KUBECONFIG_CA_NOT_OF_CLIENT', 'f1', 'user u: client-certificate-data', expect.anything()],
    ])
    expect(await merged(context, `clusters:\n${cluster(ca)}${user}`, `clusters:\n${cluster(other)}`)).toEqual(
      [],
    )
    expect(await merged(context, user)).toEqual([
      ['KUBECONFIG_NAME_DANGLES', 'f0', 'context c', 'cluster k is in no file of $KUBECONFIG'],
    ])
  })

  test('uses the first current-context of several $KUBECONFIG files, in the first file that has the context', async () => {
    const file = (current: string | undefined, ...contexts: string[]) =>
      `${contexts.map((name) => `- name: ${name}\n  context: {cluster: k, user: u}\n`).join('')}`.replace(
        /^/,
        `${current === undefined ? '' : `current-context: ${current}\n`}apiVersion: v1\nkind: Config\ncontexts:\n`,
      )
    const sources = [file(undefined, 'a'), file('b', 'c'), file('c', 'b', 'c'), file('b', 'b')].map(
      (text, i) => named(`f${i}`, text),
    )
    const current = async (mergedKubeconfigs: readonly string[]) => {
      const { report } = await inspect(now, sources, { mergedKubeconfigs })
      return report.kubeconfigs.flatMap(({ source, contexts }) =>
        contexts.filter(({ isCurrent }) => isCurrent).map(({ name }) => `${source} ${name}`),
      )
    }
    expect(await current(['f0', 'f1', 'f2', 'f3'])).toEqual(['f2 b'])
    expect(await current(['f3', 'f2', 'f1', 'f0'])).toEqual(['f3 b'])
    expect(await current(['f0', 'f2'])).toEqual(['f2 c', 'f3 b'])
    expect(await current([])).toEqual(['f2 c', 'f3 b'])
  })

  test('nothing found', async () => {
    only(await problemsOf(named('f', 'hello')), 'NOTHING_FOUND')
    expect(troubles(await inspect(now, [named('f', 'hello')]))).toEqual(['NOTHING_FOUND f'])
  })
})

describe('PEM that Kubernetes reads', () => {
  const der = Certificate.parse(signedBy(ca, { commonName: 'leaf', key, notBefore, notAfter })).der
  const bom = '\ufeff'
  const encryptedKey = key.export({
    format: 'pem',
    type: 'pkcs8',
    cipher: 'aes-256-cbc',
    passphrase: 'secret',
  }) as string
  const brief = (problems: readonly Problem[]) =>
    problems
      .filter(({ code }) => code === 'NOT_PLAIN_PEM')
      .map(({ severity, message }) => [severity, message])

  test('reports a kubeadm file in DER, or with a byte order mark, as critical: Go finds nothing in it', async () => {
    const at = async (path: string, bytes: Uint8Array | string) => {
      const changed: NodeFiles = new Map([...files, [path, { bytes: Buffer.from(bytes), mode: 0o600 }]])
      return noted(await inspectNode(now, { files: changed, folders: ['/etc/kubernetes'] }))
    }
    const own = Buffer.from(files.get(apiserver)!.bytes).toString()
    const ownDer = Buffer.from(own.replace(/-----[^-]+-----|\n/g, ''), 'base64')
    expect(brief(await at(apiserver, ownDer))).toEqual([
      ['critical', 'is DER: Kubernetes reads only PEM, and finds no certificate'],
    ])
    expect(brief(await at(apiserver, bom + own))).toEqual([
      ['critical', 'begins with a byte order mark: Kubernetes reads only PEM, and finds no certificate'],
    ])
    expect(only(await at(apiserver, bom + own), 'NOT_PLAIN_PEM').next).toBe(
      "sed -i '1s/^\\xef\\xbb\\xbf//' /etc/kubernetes/pki/apiserver.crt",
    )
    expect(brief(await at(apiserver, ''))).toEqual([
      ['critical', 'it contains no certificate that Kubernetes can read'],
    ])
    // After the first block a byte order mark does no harm.
    expect(brief(await at(apiserver, `${bom}${own}${own}`))).toEqual([])
    expect(brief(await at('/etc/kubernetes/pki/front-proxy-client.key', encryptedKey))).toEqual([
      ['critical', 'the private key is encrypted: no Kubernetes component can read it'],
    ])
  })

  test('reports a kubelet’s -current.pem without its key as critical', async () => {
    const path = '/var/lib/kubelet/pki/kubelet-client-current.pem'
    const file = files.get(path)!
    const [certificate = ''] =
      /-----BEGIN CERT[\s\S]*?END CERTIFICATE-----\n/.exec(Buffer.from(file.bytes).toString()) ?? []
    const changed: NodeFiles = new Map([...files, [path, { ...file, bytes: Buffer.from(certificate) }]])
    expect(brief(noted(await inspectNode(now, { files: changed })))).toEqual([
      ['critical', 'it contains no private key that Kubernetes can read'],
    ])
  })

  test('is critical in a kubeconfig', async () => {
    const config = (client: string, clientKey: string) =>
      `users:\n- name: u\n  user: {client-certificate-data: ${base64(client)}, client-key-data: ${base64(clientKey)}}\n`
    const problems = await problemsOf(named('f', config(bom + pem(), encryptedKey)))
    expect(problems.map(({ code, severity, entry }) => [code, severity, entry])).toEqual([
      ['NOT_PLAIN_PEM', 'critical', 'user u: client-certificate-data'],
      ['NOT_PLAIN_PEM', 'critical', 'user u: client-key-data'],
    ])
    expect(await problemsOf(named('f', config(pem(), keyPem(key))))).toEqual([])
  })

  test('is a warning elsewhere, if the text appears to be PEM or a Secret’s value must be PEM', async () => {
    const texts = [
      bom + pem(),
      Buffer.from(`\ufeff${pem()}`, 'utf16le'),
      pem().replaceAll('\n', '\r'),
      base64(der),
    ]
    for (const text of texts)
      expect(await problemsOf(named('f.pem', text))).toMatchObject([
        { code: 'NOT_PLAIN_PEM', severity: 'warning' },
      ])
    const secret = (name: string, value: string | Uint8Array) =>
      named('s', `kind: Secret\nmetadata: {name: a}\ndata: {${name}: ${base64(value)}}\n`)
    for (const source of [secret('tls.crt', der), secret('tls.key', encryptedKey)])
      expect(await problemsOf(source)).toMatchObject([{ code: 'NOT_PLAIN_PEM', severity: 'warning' }])
    expect(await problemsOf(secret('other', der))).toEqual([])
  })

  test('accepts DER and encrypted keys outside Kubernetes files', async () => {
    expect(await problemsOf(named('f.der', der), named('f.key', encryptedKey))).toEqual([])
    // kubectl get secret x -o jsonpath='{.data.tls\.crt}' | kcert inspect -
    expect(await problemsOf({ name: '-', bytes: Buffer.from(base64(der)) })).toEqual([])
  })
})

/** The certificate with its algorithm changed to sha1WithRSAEncryption, and signed so. */
function sha1Signed(certificate: Uint8Array, signer: LeafOptions['key']): Uint8Array {
  const der = Buffer.from(certificate)
  const sha256 = Buffer.from('2a864886f70d01010b', 'hex')
  for (let at = der.indexOf(sha256); at !== -1; at = der.indexOf(sha256, at + 1)) der[at + 8] = 0x05
  const { tbs, signature } = Certificate.parse(der)
  sign('sha1', tbs, signer).copy(der, der.length - signature.length)
  return der
}

// A test cannot cause a defect.
afterAll(() => {
  expect(Object.keys(problemCodes).filter((code) => !seen.has(code))).toEqual(
    existsSync(keystore) ? ['KCERT_DEFECT'] : ['KEYSTORE_LOCKED', 'KCERT_DEFECT'],
  )
})
