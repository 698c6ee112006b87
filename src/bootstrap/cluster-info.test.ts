import { execFileSync } from 'node:child_process'
import { beforeAll, expect, test } from 'vitest'
import { Certificate } from '../x509/certificate.ts'
import { readPem } from '../x509/pem.ts'
import { readClusterInfo, signatureState } from './cluster-info.ts'
import { parsePin, pinOf } from './pin.ts'
import { signKubeconfig } from './signature.ts'

const token = { id: 'abcdef', secret: '0123456789abcdef' }
const other = { id: 'ghijkl', secret: '0123456789abcdef' }

let ca: string

beforeAll(() => {
  ca = execFileSync(
    'openssl',
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=kubernetes'.split(
      ' ',
    ),
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
})

function kubeconfig(signingCa = `certificate-authority-data: ${Buffer.from(ca).toString('base64')}`): string {
  return `apiVersion: v1
clusters:
- cluster:
    ${signingCa}
    server: https://192.0.2.1:6443
  name: ""
contexts: null
current-context: ""
kind: Config
users: null
`
}

test("reads the server and its CA from kubeadm's ConfigMap without faults", async () => {
  const text = kubeconfig()
  const info = await readClusterInfo({
    kubeconfig: text,
    'jws-kubeconfig-abcdef': signKubeconfig(text, token),
  })
  expect(info.faults).toEqual([])
  expect(info.server).toBe('https://192.0.2.1:6443')
  expect(info.cas.map(({ subject }) => subject.commonName)).toEqual(['kubernetes'])
  expect(signatureState(info, token)).toBe('valid')
  expect(signatureState(info, other)).toBe('missing')
})

test('reports a signature as stale after an extra byte in the kubeconfig, or with another token secret', async () => {
  const text = kubeconfig()
  const data = { 'jws-kubeconfig-abcdef': signKubeconfig(text, token) }
  expect(signatureState(await readClusterInfo({ ...data, kubeconfig: `${text}\n` }), token)).toBe('stale')
  const forged = { id: token.id, secret: 'fedcba9876543210' }
  expect(signatureState(await readClusterInfo({ ...data, kubeconfig: text }), forged)).toBe('stale')
})

test('the signature is the HMAC that OpenSSL computes over header and payload', () => {
  const text = kubeconfig()
  const [header = '', payload, signature] = signKubeconfig(text, token).split('.')
  expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: 'HS256', kid: 'abcdef' })
  expect(payload).toBe('')
  const mac = execFileSync('openssl', ['dgst', '-sha256', '-hmac', token.secret, '-binary'], {
    input: `${header}.${Buffer.from(text).toString('base64url')}`,
  })
  expect(signature).toBe(mac.toString('base64url'))
})

test.each<[string, () => Record<string, string>, string]>([
  ['without a kubeconfig', () => ({}), 'no-kubeconfig'],
  ['with text that is not a kubeconfig', () => ({ kubeconfig: '- a' }), 'kubeconfig-malformed'],
  [
    'with a CA by path',
    () => ({ kubeconfig: kubeconfig('certificate-authority: /pki/ca.crt') }),
    'ca-by-path',
  ],
  ['without a CA', () => ({ kubeconfig: kubeconfig('insecure-skip-tls-verify: true') }), 'no-ca'],
  [
    'with a CA that is none',
    () => ({ kubeconfig: kubeconfig('certificate-authority-data: aGVsbG8=') }),
    'ca-malformed',
  ],
  [
    'with a credential',
    () => ({ kubeconfig: kubeconfig().replace('users: null', 'users:\n- name: a\n  user: {token: t}') }),
    'secret-inside',
  ],
  [
    'with two clusters',
    () => ({
      kubeconfig: kubeconfig().replace(
        'contexts: null',
        '- cluster: {server: "https://b"}\n  name: b\ncontexts: null',
      ),
    }),
    'cluster-count',
  ],
])('reports cluster-info %s', async (_, data, id) => {
  const { faults } = await readClusterInfo(data())
  expect(faults.map((fault) => fault.id)).toContain(id)
})

test('computes the same public key pin as openssl, and accepts upper case', () => {
  const [block] = readPem(ca).blocks
  const certificate = Certificate.parse(block!.der)
  const spki = execFileSync('openssl', ['x509', '-pubkey', '-noout'], { input: ca, encoding: 'utf8' })
  const digest = execFileSync('openssl', ['dgst', '-sha256', '-r'], { input: readPem(spki).blocks[0]!.der })
  expect(pinOf(certificate)).toBe(`sha256:${digest.toString().slice(0, 64)}`)
  expect(parsePin(pinOf(certificate).toUpperCase().replace('SHA256', 'sha256'))).toBe(pinOf(certificate))
  expect(() => parsePin('sha512:00')).toThrow('invalid public key pin')
})
