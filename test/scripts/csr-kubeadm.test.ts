import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { readPrivateKeyFile } from '../../src/x509/keys.ts'
import { readPem } from '../../src/x509/pem.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

const folder = temporaryFolder('csr-kubeadm')
const kubeadm = '.bench/bin/kubeadm'

/** kubeadm's configuration, with all fields that affect certificates. */
function configuration(clusterFields: string): string {
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {name: cp1, criSocket: "unix:///run/containerd/containerd.sock"}
localAPIEndpoint: {advertiseAddress: 10.0.0.11, bindPort: 7443}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.3
${clusterFields}`
}

const configurations: Record<string, string> = {
  plain: configuration(''),
  full: configuration(`clusterName: prod
controlPlaneEndpoint: lb.example.com:443
networking: {serviceSubnet: "10.100.0.0/16,fd00:100::/108", dnsDomain: k8s.example}
encryptionAlgorithm: ECDSA-P384
apiServer: {certSANs: [api.example.com, 192.0.2.1, "*.api.example.com", cp1, "2001:DB8::0:1"]}
etcd: {local: {serverCertSANs: [etcd.example.com, 192.0.2.7], peerCertSANs: [peer.example.com]}}
`),
  'an IPv6 endpoint': configuration(`controlPlaneEndpoint: "[fd00::10]:8443"
networking: {serviceSubnet: "fd00:100::/108"}
encryptionAlgorithm: ECDSA-P256
`),
  'etcd elsewhere':
    configuration(`etcd: {external: {endpoints: ["https://10.0.0.9:2379"], caFile: /a, certFile: /b, keyFile: /c}}
controlPlaneEndpoint: 10.0.0.100
`),
}

function files(at: string): string[] {
  return globSync('**/*', { cwd: at })
    .filter((path) => statSync(join(at, path)).isFile())
    .sort()
}

/** Returns the common content of two requests for the same subject. */
function requestFacts(path: string): object {
  const request = CertificateRequest.parse(readPem(readFileSync(path)).blocks[0]!.der)
  return {
    subject: Buffer.from(request.subject.der).toString('hex'),
    extensions: request.extensions.map(({ oid, critical, value }) => [
      oid,
      critical,
      Buffer.from(value).toString('hex'),
    ]),
    signature: request.signatureAlgorithm,
    valid: request.verifySignature('possession').ok,
  }
}

function keySha256(bytes: Uint8Array): string {
  return readPrivateKeyFile(bytes).publicKey!.sha256
}

function keyInKubeconfig(path: string): Buffer {
  const { users } = parse(readFileSync(path, 'utf8')) as { users: { user: { 'client-key-data': string } }[] }
  return Buffer.from(users[0]!.user['client-key-data'], 'base64')
}

function withoutKey(path: string): unknown {
  return JSON.parse(
    JSON.stringify(parse(readFileSync(path, 'utf8'))).replace(
      /"client-key-data":"[^"]+"/,
      '"client-key-data":"KEY"',
    ),
  )
}

describe.skipIf(!existsSync(kubeadm))(
  `as ${kubeadm} certs generate-csr does (skipped where it is not built)`,
  () => {
    test.each(Object.entries(configurations))('with a configuration: %s', (name, text) => {
      const at = join(folder, name)
      mkdirSync(at)
      writeFileSync(join(at, 'kubeadm.yaml'), text)
      const [theirs, ours] = [join(at, 'theirs'), join(at, 'ours')]
      execFileSync(
        kubeadm,
        [
          'certs',
          'generate-csr',
          '--config',
          join(at, 'kubeadm.yaml'),
          '--kubeconfig-dir',
          theirs,
          ...kubeadmDir(at),
        ],
        { stdio: 'pipe' },
      )
      const args = [
        '--kubeadm',
        'all',
        '--kubeadm-config',
        join(at, 'kubeadm.yaml'),
        '--cert-dir',
        join(ours, 'pki'),
        '--kubeconfig-dir',
        ours,
      ]
      expect(kcert(['csr', 'create', ...args])).toMatchObject({ exit: 0 })

      expect(files(ours)).toEqual(files(theirs))
      for (const path of files(ours)) {
        const [mine, their] = [join(ours, path), join(theirs, path)]
        expect({ path, mode: statSync(mine).mode }).toEqual({ path, mode: statSync(their).mode })
        if (path.endsWith('.csr'))
          expect({ path, ...requestFacts(mine) }).toEqual({ path, ...requestFacts(their) })
        if (path.endsWith('.conf')) expect(withoutKey(mine)).toEqual(withoutKey(their))
        if (path.endsWith('.key')) expect(firstLine(mine)).toBe(firstLine(their))
      }
    })
  },
)

// kubeadm uses the certificate folder in its configuration, if it is set.
function kubeadmDir(at: string): string[] {
  const path = join(at, 'kubeadm.yaml')
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(
      'kubernetesVersion:',
      `certificatesDir: ${join(at, 'theirs', 'pki')}\nkubernetesVersion:`,
    ),
  )
  return []
}

function firstLine(path: string): string {
  return readFileSync(path, 'utf8').split('\n')[0]!
}

describe('kcert csr create --kubeadm', () => {
  const plain = ['--node-name', 'cp1', '--advertise-address', '10.0.0.11']

  test('creates all requests, each with its key next to it or in its kubeconfig', () => {
    const at = join(folder, 'all')
    mkdirSync(at)
    const run = kcert(
      ['csr', 'create', '--kubeadm', 'all', ...plain, '--cert-dir', 'pki', '--kubeconfig-dir', '.'],
      { cwd: at },
    )
    expect(run).toMatchObject({ exit: 0 })
    expect(run.stderr).toMatch(
      /^note: apiserver-kubelet-client: the Kubernetes version is unknown.*\nnote: apiserver-kubelet-client: without O, .*\n$/,
    )
    expect(run.stdout).not.toContain('-----')
    const requests = files(at).filter((path) => path.endsWith('.csr'))
    expect(requests).toHaveLength(12)
    for (const path of requests) {
      const base = join(at, path.replace(/\.csr$/, ''))
      const { publicKey } = CertificateRequest.parse(readPem(readFileSync(join(at, path))).blocks[0]!.der)
      const key = base.endsWith('.conf') ? keyInKubeconfig(base) : readFileSync(`${base}.key`)
      expect(keySha256(key)).toBe(publicKey.sha256)
    }
  })

  test('adds a named CA to the kubeconfigs', () => {
    const at = join(folder, 'ca')
    mkdirSync(at)
    expect(
      kcert(['ca', 'init', '--cn', 'kubernetes', '--out', 'ca.crt', '--key-out', 'ca.key'], { cwd: at }).exit,
    ).toBe(0)
    const args = ['--kubeadm', 'admin.conf', ...plain, '--kubeconfig-dir', '.', '--ca-cert', 'ca.crt']
    expect(kcert(['csr', 'create', ...args], { cwd: at }).exit).toBe(0)
    const { clusters } = parse(readFileSync(join(at, 'admin.conf'), 'utf8')) as {
      clusters: { cluster: Record<string, string> }[]
    }
    expect(Buffer.from(clusters[0]!.cluster['certificate-authority-data']!, 'base64').toString()).toBe(
      readFileSync(join(at, 'ca.crt'), 'utf8'),
    )
  })

  test('writes nothing when one of the files exists', () => {
    const at = join(folder, 'there')
    mkdirSync(join(at, 'pki/etcd'), { recursive: true })
    writeFileSync(join(at, 'pki/etcd/peer.key'), 'precious')
    const args = ['csr', 'create', '--kubeadm', 'all', ...plain, '--cert-dir', 'pki', '--kubeconfig-dir', '.']
    expect(kcert(args, { cwd: at })).toMatchObject({
      stdout: '',
      exit: 5,
      stderr: expect.stringMatching(/^KCERT_FILE_EXISTS: pki\/etcd\/peer\.key/),
    })
    expect(files(at)).toEqual(['pki/etcd/peer.key'])
    expect(readFileSync(join(at, 'pki/etcd/peer.key'), 'utf8')).toBe('precious')
  })

  test('writes one certificate to two files like any other', () => {
    const at = join(folder, 'one')
    mkdirSync(at)
    const args = [
      '--kubeadm',
      'apiserver',
      ...plain,
      '--dns',
      'api.example.com',
      '--key-out',
      'a.key',
      '--out',
      'a.csr',
    ]
    expect(kcert(['csr', 'create', ...args], { cwd: at })).toMatchObject({ stderr: '', exit: 0 })
    const { subjectAltNames } = CertificateRequest.parse(
      readPem(readFileSync(join(at, 'a.csr'))).blocks[0]!.der,
    )
    expect(subjectAltNames.dns).toContain('api.example.com')
    expect(subjectAltNames.ip).toEqual(['10.96.0.1', '10.0.0.11'])
  })

  test.each<[string[], string]>([
    [['all', '--cert-dir', 'p'], 'apiserver needs the name of the node'],
    [['all', ...plain, '--cert-dir', 'p'], '--kubeconfig-dir is required for admin.conf'],
    [['admin.conf', ...plain, '--key-out', 'k'], '--kubeadm admin.conf writes several files'],
    [['etcd-peer', ...plain, '--dns', 'x', '--cert-dir', 'p'], '--dns and --kubeadm are mutually exclusive'],
    [
      ['all', ...plain, '--service-subnet', '10.0.0.1/99', '--cert-dir', 'p', '--kubeconfig-dir', '.'],
      'is not a range of addresses',
    ],
    [
      ['all', ...plain, '--control-plane-endpoint', 'https://lb', '--cert-dir', 'p', '--kubeconfig-dir', '.'],
      'is not HOST or HOST:PORT',
    ],
    [
      ['all', ...plain, '-o', 'manifest', '--cert-dir', 'p', '--kubeconfig-dir', '.'],
      '-o manifest cannot be used with',
    ],
  ])('%j: is wrong usage, and writes nothing', (args, words) => {
    const at = join(folder, 'wrong')
    mkdirSync(at, { recursive: true })
    const run = kcert(['csr', 'create', '--kubeadm', ...args], { cwd: at })
    expect(run).toMatchObject({ stdout: '', exit: 2 })
    expect(run.stderr).toContain(words)
    expect(files(at)).toEqual([])
  })

  test('refuses a file that is not a kubeadm configuration', () => {
    const run = kcert(['csr', 'create', '--kubeadm', 'all', '--kubeadm-config', '-'], {
      stdin: 'kind: Secret\n',
    })
    expect(run).toMatchObject({
      stdout: '',
      exit: 2,
      stderr: expect.stringMatching(/^KCERT_MANIFEST_MALFORMED: - contains no kubeadm configuration/),
    })
  })
})
