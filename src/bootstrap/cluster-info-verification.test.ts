import { beforeAll, expect, test } from 'vitest'
import { someCa } from '../../test/bootstrap/some-ca.ts'
import { readClusterInfo } from './cluster-info.ts'
import { type VerificationFacts, verifyClusterInfo } from './cluster-info-verification.ts'
import { signKubeconfig } from './signature.ts'

const now = new Date('2026-11-21T12:00:00Z')
const token = { id: 'abcdef', secret: '0123456789abcdef' }
const [oldCa, newCa] = [someCa('kubernetes', now), someCa('kubernetes', now)]
const leaf = oldCa.issueServing(['192.0.2.1'])

const text = (pem: string): string => `apiVersion: v1
kind: Config
clusters:
- {name: "", cluster: {server: "https://192.0.2.1:6443", certificate-authority-data: "${Buffer.from(pem).toString('base64')}"}}
`

let right: VerificationFacts

beforeAll(async () => {
  const kubeconfig = text(oldCa.pem + newCa.pem)
  right = {
    info: await readClusterInfo({ kubeconfig, 'jws-kubeconfig-abcdef': signKubeconfig(kubeconfig, token) }),
    tokens: [token],
    served: [{ place: '192.0.2.1:6443', host: '192.0.2.1', chain: [leaf] }],
    published: [{ place: 'ca.crt', certificates: [oldCa.certificate, newCa.certificate] }],
    isPublic: true,
    now,
  }
})

function evaluated(changes: Partial<VerificationFacts>) {
  const { verdict, checks } = verifyClusterInfo({ ...right, ...changes })
  return { verdict, not: checks.filter(({ outcome }) => outcome !== 'ok') }
}

test('accepts a bundle of both CAs that is signed, served and published', () => {
  expect(evaluated({})).toEqual({ verdict: 'ok', not: [] })
})

test('fails for a bundle without the CA of a served certificate', async () => {
  const info = await readClusterInfo({ kubeconfig: text(newCa.pem) })
  const { verdict, not } = evaluated({ info, tokens: [], published: [] })
  expect(verdict).toBe('failed')
  expect(not.map(({ id }) => id)).toEqual(['served'])
  expect(not[0]!.detail).toContain('certificate signed by unknown authority')
})

test('fails for a server that its certificate does not name', () => {
  const served = [{ place: 'api:6443', host: 'api', chain: [leaf] }]
  expect(evaluated({ served }).not.map(({ id, outcome }) => [id, outcome])).toEqual([['served', 'failed']])
})

test('reports unavailable facts as unknown, not as failed', () => {
  const served = [{ place: '192.0.2.1:6443', host: '192.0.2.1', fault: 'no route to host' }]
  const { verdict, not } = evaluated({ served, tokens: undefined, isPublic: undefined })
  expect(verdict).toBe('unknown')
  expect(not.map(({ id, outcome }) => [id, outcome])).toEqual([
    ['signature', 'unknown'],
    ['served', 'unknown'],
    ['public', 'unknown'],
  ])
})

test('names the token of a missing, stale or orphaned signature', () => {
  const other = { id: 'ghijkl', secret: 'fedcba9876543210' }
  expect(evaluated({ tokens: [token, other] }).not.map(({ detail }) => detail)).toEqual([
    'there is no signature with token ghijkl',
  ])
  expect(evaluated({ tokens: [{ ...token, secret: other.secret }] }).not[0]!.detail).toContain(
    'older cluster-info',
  )
  expect(evaluated({ tokens: [] }).not[0]!.detail).toContain('not a signing token')
})

test('names a missing or extra CA, compared with those that the cluster publishes', () => {
  const published = [{ place: 'ca.crt', certificates: [oldCa.certificate] }]
  expect(evaluated({ published }).not[0]!.detail).toBe(
    'the CAs differ from ca.crt (expected only during a CA rotation): only cluster-info has CN=kubernetes',
  )
})

test('names an expired CA and its expiry', () => {
  const later = new Date('2040-01-01T00:00:00Z')
  const { verdict, not } = evaluated({ now: later, served: [] })
  expect(verdict).toBe('failed')
  expect(not[0]!.detail).toMatch(/^CN=kubernetes expired at 20/)
})

test('fails when joining nodes may not read it', () => {
  expect(evaluated({ isPublic: false }).not[0]!.next).toBe(
    'kcert bootstrap rbac -o yaml | kubectl apply -f -',
  )
})
