import { expect, test } from 'vitest'
import {
  type ControllerManagerFacts,
  forecastOf,
  type KubeletFacts,
  type SeenCertificate,
} from './forecast.ts'

const day = 86_400_000
const now = new Date('2026-11-21T22:00:00Z')
const year: ControllerManagerFacts = { node: 'cp1', location: 'pod/kcm', clusterSigningDurationMs: 365 * day }

function seen(over: Partial<SeenCertificate> = {}): SeenCertificate {
  const begin = now.getTime() - 10 * day
  return {
    usage: 'client',
    source: 'file',
    notBeforeMs: begin,
    notAfterMs: begin + 100 * day,
    isSelfSigned: false,
    ...over,
  }
}

function kubelet(certificates: readonly SeenCertificate[], over: Partial<KubeletFacts> = {}): KubeletFacts {
  const configuration = { rotateCertificates: true, serverTlsBootstrap: true }
  return { name: 'w1', configuration, certificates, pending: [], unread: [], ...over }
}

const certificateOf = (facts: KubeletFacts, managers = [year]) =>
  forecastOf([facts], managers, now).nodes[0]!.certificates[0]!
const findingsOf = (facts: KubeletFacts, managers = [year]) =>
  forecastOf([facts], managers, now).findings.map(({ id, isProblem }) => (isProblem ? `${id}!` : id))

const agedBy = (days: number) => {
  const notBeforeMs = now.getTime() - days * day
  return seen({ notBeforeMs, notAfterMs: notBeforeMs + 100 * day })
}
const serving = seen({ usage: 'serving' })

test.each([
  [10, 'not-due', []],
  [69.9, 'not-due', []],
  [70, 'due', []],
  [90, 'due', []],
  [90.1, 'overdue', ['overdue!']],
  [100.1, 'expired', ['expired!']],
])('after %d of 100 days a client certificate is %s', (days, state, findings) => {
  const facts = kubelet([agedBy(days), serving])
  expect(certificateOf(facts).state).toBe(state)
  expect(findingsOf(facts)).toEqual(findings)
})

test('renews between 70 and 90 % of the lifetime', () => {
  expect(certificateOf(kubelet([agedBy(10)])).renewal).toEqual({
    earliest: '2027-01-20T22:00:00Z',
    latest: '2027-02-09T22:00:00Z',
    isEstimate: false,
  })
})

test.each([
  [365 * day, 365 * day],
  // kube-controller-manager starts short ones five minutes early.
  [3_600_000, 3_900_000],
])('calculates the issue time from expiry and signing duration: %d ms', (signingMs, lifeMs) => {
  const notAfterMs = now.getTime() + 0.5 * lifeMs
  const certificate = seen({ source: 'metric', notBeforeMs: undefined, notAfterMs })
  const managers = [{ ...year, clusterSigningDurationMs: signingMs }]
  const { renewal } = certificateOf(kubelet([certificate]), managers)
  expect(renewal).toMatchObject({ isEstimate: true })
  expect(Math.abs(Date.parse(renewal!.earliest) - (now.getTime() + 0.2 * lifeMs))).toBeLessThan(1000)
})

test('reports a client certificate without rotateCertificates as a problem, because it is never renewed', () => {
  const facts = kubelet([seen(), serving], {
    configuration: { rotateCertificates: false, serverTlsBootstrap: true },
  })
  expect(certificateOf(facts)).toMatchObject({ state: 'not-renewed' })
  expect(certificateOf(facts).renewal).toBeUndefined()
  expect(findingsOf(facts)).toEqual(['rotation-off!'])
})

test.each([
  ['self-signed', { isSelfSigned: true }, {}, ['serving-self-signed']],
  ['of its own file', {}, { tlsCertFile: '/etc/tls.crt' }, []],
  ['of a cluster that does not bootstrap it', {}, { serverTlsBootstrap: false }, []],
])('a serving certificate that is %s is never renewed', (_, over, configuration, findings) => {
  const facts = kubelet([seen({ usage: 'serving', ...over })], {
    configuration: { rotateCertificates: true, serverTlsBootstrap: true, ...configuration },
  })
  expect(certificateOf(facts).state).toBe('not-renewed')
  expect(findingsOf(facts)).toEqual(findings)
})

test('reports a kubelet without its requested serving certificate as a problem, with its request', () => {
  const pending = [
    { name: 'csr-x', usage: 'serving', state: 'pending', creationTimestamp: '2026-11-21T21:40:00Z' } as const,
  ]
  const facts = kubelet([seen()], { pending })
  expect(findingsOf(facts)).toEqual(['no-serving-certificate!', 'request-waits!'])
  const young = [{ ...pending[0]!, creationTimestamp: '2026-11-21T21:59:00Z' }]
  expect(findingsOf(kubelet([seen(), serving], { pending: young }))).toEqual(['request-waits'])
})

test.each([
  ['150s', 150_000, ['signing-duration-short!']],
  ['10m', 600_000, ['signing-duration-short!']],
  ['1h', 3_600_000, []],
])('a signing duration of %s', (_, clusterSigningDurationMs, findings) => {
  expect(findingsOf(kubelet([seen(), serving]), [{ ...year, clusterSigningDurationMs }])).toEqual(findings)
})

test('adds a note when control planes sign for different lifetimes, or none is visible', () => {
  const facts = kubelet([seen(), serving])
  expect(findingsOf(facts, [year, { ...year, clusterSigningDurationMs: 30 * day }])).toEqual([
    'signing-durations-differ',
  ])
  expect(findingsOf(facts, [])).toEqual(['controller-manager-not-seen'])
})

test('reports unreadable facts, and treats unknown settings as enabled', () => {
  const facts = kubelet([seen()], {
    configuration: undefined,
    unread: ['its configuration could not be read: 403'],
  })
  expect(certificateOf(facts).state).toBe('not-due')
  expect(findingsOf(facts)).toEqual(['not-read'])
})

const stranger = (state: Partial<SeenCertificate> = {}) =>
  seen({
    usage: 'serving',
    source: 'handshake',
    location: '192.0.2.7:10250',
    stranger: { shown: 'CN=printer', isOfAnotherNode: false },
    ...state,
  })
const known = { rotateCertificates: true, serverTlsBootstrap: true }
const metric = seen({
  usage: 'serving',
  source: 'metric',
  notBeforeMs: undefined,
  notAfterMs: now.getTime() + 300 * day,
})

test.each([
  ['its configuration is unknown', undefined, [stranger()], ['not-renewed'], ['not-the-kubelet']],
  [
    'its configuration is unknown and it expired',
    undefined,
    [stranger({ notAfterMs: 1 })],
    ['expired'],
    ['expired!', 'not-the-kubelet'],
  ],
  [
    'a file is configured',
    { ...known, tlsCertFile: '/etc/tls.crt' },
    [stranger(), metric],
    ['not-renewed'],
    [],
  ],
  ['no file is configured', known, [stranger({ notAfterMs: 1 })], [], ['not-the-kubelet']],
  ['no file, but the metric is known', known, [stranger(), metric], ['not-due'], ['not-the-kubelet']],
  [
    'it is of another node',
    undefined,
    [stranger({ stranger: { shown: 'CN=system:node:w2', isOfAnotherNode: true } })],
    [],
    ['not-the-kubelet'],
  ],
])(
  'reports a server without the name of the kubelet: %s',
  (_, configuration, certificates, states, findings) => {
    const facts = kubelet(certificates, { configuration })
    const { nodes } = forecastOf([facts], [year], now)
    expect(nodes[0]!.certificates.map(({ state }) => state)).toEqual(states)
    expect(findingsOf(facts)).toEqual(findings)
  },
)

test.each([
  ['of its node', 'system:node:w1', []],
  ['of another node', 'system:node:w2', ['serving-common-name']],
  ['that it signed itself', 'w1@1795298400', ['serving-common-name']],
  ['without a common name', '', ['serving-common-name']],
])('a serving certificate %s', (_, commonName, findings) => {
  expect(findingsOf(kubelet([seen(), { ...serving, commonName }]))).toEqual(findings)
  expect(findingsOf(kubelet([seen({ commonName }), serving]))).toEqual([])
})

test('names the address, the name and the next command when another server answers', () => {
  const findings = (configuration: KubeletFacts['configuration']) =>
    forecastOf([kubelet([stranger()], { configuration })], [year], now).findings
  expect(findings(undefined)).toEqual([
    {
      id: 'not-the-kubelet',
      node: 'w1',
      isProblem: false,
      detail:
        'the server at 192.0.2.7:10250 serves a certificate for CN=printer, which is not one that a kubelet creates or requests: if --tls-cert-file is not set there, another server responds',
      next: 'kcert inspect 192.0.2.7:10250',
    },
  ])
  expect(findings(known)[0]!.detail).toMatch(
    /: --tls-cert-file is not set there, so another server responds$/,
  )
})
