import { expect, test } from 'vitest'
import { client, createCa, type Issued, issued, sessionTime } from '../../test/scripts/small-pki.ts'
import { Certificate } from '../x509/certificate.ts'
import { evaluate, probeReport } from './evaluation.ts'
import type { Anchor, Observed, Target } from './target.ts'

const now = new Date(sessionTime)
const ca = createCa()
const otherCa = createCa('another')
const serving = (asked: Parameters<typeof issued>[0] = { subject: { commonName: 'w1' } }, by = ca) =>
  issued(
    { extendedKeyUsage: ['serverAuth'], subjectAltNames: { dns: ['w1'], ip: ['192.0.2.7'] }, ...asked },
    by,
  )
const leaf = serving()

function anchor(by: string, ...of: Issued[]): Anchor {
  const certificates = of.map(({ der }, index) => ({
    source: by,
    entry: `certificate ${index + 1}`,
    certificate: Certificate.parse(der),
  }))
  return { by, source: `${by}.crt`, roots: { certificates, unreadable: [], isKubeconfig: false } }
}

const kubelet: Target = {
  name: 'kubelet w1',
  kind: 'kubelet',
  host: '192.0.2.7',
  port: 10250,
  expectedNames: ['192.0.2.7'],
  anchors: [anchor('cluster CA', ca)],
  isVerified: true,
  notes: [],
}

const handshake: Observed = {
  chain: [leaf.der],
  clientAuthorities: undefined,
  version: 'TLSv1.3',
  cipher: 'TLS_AES_128_GCM_SHA256',
  connectMs: 0.44,
  handshakeMs: 2.06,
  answer: undefined,
  fault: undefined,
}

const evaluated = (target: Partial<Target> = {}, observed: Partial<Observed> = {}) =>
  evaluate({ ...kubelet, ...target }, { ...handshake, ...observed }, now)
const codesOf = (report: ReturnType<typeof evaluated>) => report.problems.map(({ code }) => code)

const shown = { client: { source: 'admin.conf', subject: 'CN=admin' } }
const cas = [Certificate.parse(client('x', ca).der).issuer.der]
const refusal = (code: string) => Object.assign(new Error('refused'), { code })

test('finds no problem in a chain of the cluster CA that is valid for the name', () => {
  expect(evaluated()).toMatchObject({
    status: 'ok',
    version: 'TLSv1.3',
    connectMs: 0.4,
    handshakeMs: 2.1,
    names: [{ name: '192.0.2.7', matches: true }],
    verdicts: [{ by: 'cluster CA', trusted: true }],
    client: { verdict: 'not-requested' },
    problems: [],
  })
})

test('evaluates each of two anchors, and reports one that fails', () => {
  const report = evaluated({
    anchors: [...kubelet.anchors, anchor('--kubelet-certificate-authority', otherCa)],
  })
  expect(report.verdicts.map(({ trusted }) => trusted)).toEqual([true, false])
  expect([report.status, codesOf(report)]).toEqual(['failed', ['NOT_TRUSTED']])
  expect(report.verdicts[1]!.goError).toMatch(/certificate signed by unknown authority/)
})

test('lists the results for CAs and names without problems if no client verifies the server', () => {
  const selfSigned = issued({ subject: { commonName: 'w1@1' }, subjectAltNames: { dns: ['w1'] } })
  const report = evaluated({ isVerified: false }, { chain: [selfSigned.der] })
  expect(report.verdicts).toMatchObject([{ trusted: false, code: 'LEAF_SELF_SIGNED' }])
  expect(report.names).toEqual([{ name: '192.0.2.7', matches: false }])
  expect([report.status, report.problems]).toEqual(['ok', []])
})

const cnNote = 'an API server with --enable-kubelet-cert-cn-validation will refuse it'

test.each([
  ['requested from the cluster', { commonName: 'system:node:w1', organization: ['system:nodes'] }, []],
  ['self-signed', { commonName: 'w1@1795298400' }, [cnNote]],
  ['from a file or another program', { commonName: 'printer' }, ['which is not one that a kubelet', cnNote]],
  ['of another node', { commonName: 'system:node:w2' }, ["which belongs to another node's kubelet"]],
  ['without a common name', { organization: ['Example'] }, ['certificate for O=Example, which', cnNote]],
])('identifies the owner of a kubelet’s served certificate: %s', (_, subject, expected) => {
  const of = serving({ subject })
  const report = evaluated({ node: 'w1' }, { chain: [of.der] })
  expect(report.status).toBe('ok')
  expect(report.notes).toEqual(expected.map((words) => expect.stringContaining(words)))
  const given = { source: 'w1:/etc/tls.crt', certificate: Certificate.parse(of.der) }
  const ofGiven = evaluated({ node: 'w1', given }, { chain: [of.der] }).notes
  expect(ofGiven).toEqual(expected.length === 0 ? [] : [expect.stringContaining(cnNote)])
  expect(evaluated({ kind: 'server' }, { chain: [of.der] }).notes).toEqual([])
})

test('reports no old kubelet certificate for another server', () => {
  const renewed = serving({ subject: { commonName: 'system:node:w1' }, notBefore: new Date('2026-06-01Z') })
  const given = { source: 'csr/new', certificate: Certificate.parse(renewed.der) }
  const stranger = serving({ subject: { commonName: 'printer' } })
  const report = evaluated({ node: 'w1', given }, { chain: [stranger.der] })
  expect([report.issued?.state, codesOf(report)]).toEqual(['other', ['OTHER_CERTIFICATE_SERVED']])
  expect(report.notes).toEqual([
    'the server at 192.0.2.7:10250 serves a certificate for CN=printer, which is not one that a kubelet creates or requests: if --tls-cert-file is not set there, another server responds, not the kubelet of w1; on that node, run kcert kubelet doctor',
    expect.stringContaining(cnNote),
  ])
})

test('reports a name that clients use and the leaf lacks', () => {
  const report = evaluated({ expectedNames: ['w1', 'w1.example.com'] })
  expect(report.problems).toMatchObject([
    { code: 'NAME_NOT_COVERED', message: 'it is not valid for w1.example.com; reissue it with this name' },
  ])
})

test("reports the leaf's expiry once, and the expiry of a CA above it as an invalid chain", () => {
  const ended = serving({ subject: { commonName: 'w1' }, notAfter: new Date('2026-11-01T00:00:00Z') })
  expect(codesOf(evaluated({}, { chain: [ended.der] }))).toEqual(['CERT_EXPIRED'])
  const endedCa = issued({
    subject: { commonName: 'ended' },
    notAfter: new Date('2026-11-01T00:00:00Z'),
    basicConstraints: { ca: true },
    keyUsage: ['keyCertSign'],
  })
  const below = serving({ subject: { commonName: 'w1' } }, endedCa)
  expect(codesOf(evaluated({ anchors: [anchor('cluster CA', endedCa)] }, { chain: [below.der] }))).toEqual([
    'NOT_TRUSTED',
  ])
})

test('reports no result and no problem for CAs that could not be read', () => {
  const report = evaluated({ anchors: [{ by: 'etcd CA', source: '--etcd-cafile', fault: 'on the node' }] })
  expect(report.verdicts).toEqual([{ by: 'etcd CA', source: '--etcd-cafile', reason: 'on the node' }])
  expect(report.status).toBe('ok')
})

test.each([
  ['--ca', './my ca.crt', "kcert inspect './my ca.crt'"],
  ['etcd CA', 'cp1:/pki/etcd/ca.crt', 'kcert inspect /pki/etcd/ca.crt'],
  ['etcd CA', 'cp1:/pki/ca.crt, as in configmap default/kube-root-ca.crt', 'kcert inspect /pki/ca.crt'],
  ['cluster CA', 'configmap default/kube-root-ca.crt', 'kcert inspect --cluster'],
  ['cluster CA', 'kubeconfig cluster c; touch x', 'kcert inspect --cluster'],
  ['caBundle', 'validatingwebhookconfiguration/a', 'kcert inspect --cluster'],
])('advises the command that shows these CAs: %s %s', (by, source, command) => {
  const report = evaluated({ anchors: [{ ...anchor(by, otherCa), source }] })
  expect(report.problems.map(({ next }) => next)).toEqual([command])
})

test('advises a command without a file for a rejected client certificate of a kubeconfig', () => {
  const client = { source: 'kubeconfig user admin', subject: 'CN=admin' }
  const report = evaluated(
    { client },
    { clientAuthorities: cas, fault: refusal('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA') },
  )
  expect(report.problems[0]!.next).toBe('kcert inspect --cluster')
})

test('reports an issued newer certificate that is not served as old, and an older one as different', () => {
  const at = (notBefore: string) => {
    const { der } = serving({ subject: { commonName: 'w1' }, notBefore: new Date(notBefore) })
    return { source: 'w1:/pki/kubelet.crt', certificate: Certificate.parse(der) }
  }
  const states = [at('2026-06-01T00:00:00Z'), at('2025-06-01T00:00:00Z')].map((given) => evaluated({ given }))
  expect(states.map((report) => [report.issued?.state, codesOf(report)])).toEqual([
    ['renewed-not-served', ['OLD_CERTIFICATE_SERVED']],
    ['other', ['OTHER_CERTIFICATE_SERVED']],
  ])
  expect(states[0]!.problems[0]!.message).toEqual(
    expect.stringMatching(
      /^renewed, but still serving the old certificate: w1:\/pki\/kubelet.crt is valid from 2026-06-01T00:00:00Z; /,
    ),
  )
  const same = evaluated({ given: { source: 'x', certificate: Certificate.parse(leaf.der) } })
  expect([same.issued?.state, same.status]).toEqual(['served', 'ok'])
  const twin = { ...at('2026-06-01T00:00:00Z'), besides: [Certificate.parse(leaf.der)] }
  expect(evaluated({ given: twin }).issued?.state).toBe('served')
  const csr = evaluated({ given: { ...at('2025-06-01T00:00:00Z'), source: 'csr/csr-a' } })
  expect([csr.issued, csr.problems]).toEqual([
    { source: 'csr/csr-a', state: 'unknown', fault: 'older than the served certificate' },
    [],
  ])
  const { der } = serving({ subject: { commonName: 'w2' }, notBefore: new Date('2025-06-01T00:00:00Z') })
  const foreign = evaluated({ given: { source: 'csr/csr-a', certificate: Certificate.parse(der) } })
  expect([foreign.issued?.state, codesOf(foreign)]).toEqual(['other', ['OTHER_CERTIFICATE_SERVED']])
  const unknown = evaluated({ given: { source: 'x', fault: 'the file cannot be read' } })
  expect([unknown.issued?.state, unknown.status]).toEqual(['unknown', 'ok'])
})

test.each([
  [
    'an alert after the handshake',
    { fault: refusal('ERR_SSL_TLSV1_ALERT_UNKNOWN_CA') },
    'refused',
    'TLS alert: unknown ca',
  ],
  [
    'a connection that is closed without an alert',
    { fault: refusal('ECONNRESET') },
    'unknown',
    'it closed the connection without a TLS alert or an HTTP status',
  ],
  [
    'a request that is written to a closed connection',
    { fault: refusal('EPIPE') },
    'unknown',
    'it closed the connection without a TLS alert or an HTTP status',
  ],
  ['HTTP 401', { answer: { status: 401, body: 'Unauthorized' } }, 'refused', 'HTTP 401'],
  [
    'HTTP 400 of nginx: The SSL certificate error',
    { answer: { status: 400, body: '<html><head><title>400 The SSL certificate error</title></head>' } },
    'refused',
    'HTTP 400',
  ],
  [
    'HTTP 400 of nginx: No required SSL certificate was sent',
    {
      answer: {
        status: 400,
        body: '<html><head><title>400 No required SSL certificate was sent</title></head>',
      },
    },
    'refused',
    'HTTP 400',
  ],
  [
    'another HTTP 400',
    { answer: { status: 400, body: '<title>400 Bad Request</title>' } },
    'connected',
    'HTTP 400',
  ],
  ['no answer', { fault: refusal('ETIMEDOUT') }, 'unknown', 'no response in time'],
  ['200 of a kubelet', { answer: { status: 200, body: 'ok' } }, 'accepted', 'HTTP 200'],
  [
    'a denied permission in its name',
    {
      answer: {
        status: 403,
        body: 'Forbidden (user=admin, verb=get, resource=nodes, subresource=[healthz])',
      },
    },
    'accepted',
    'as admin',
  ],
  [
    'a denied permission without a user',
    { answer: { status: 403, body: 'Forbidden (user=system:anonymous, verb=get)' } },
    'ignored',
    'it treats the client as system:anonymous',
  ],
])('a client certificate: %s', (_, observed, verdict, detail) => {
  const report = evaluated(shown, { clientAuthorities: cas, ...observed })
  expect(report.client).toEqual({
    ...shown.client,
    verdict,
    detail,
    ...(detail === 'as admin' && { user: 'admin' }),
  })
  const codes: Readonly<Record<string, string[]>> = {
    refused: ['CLIENT_REFUSED'],
    unknown: ['CLIENT_UNKNOWN'],
  }
  expect(codesOf(report)).toEqual(codes[verdict] ?? [])
  expect(report.status).toBe(verdict in codes ? 'failed' : 'ok')
  expect(report.clientCas).toEqual(['CN=kubernetes'])
})

test('reports a client certificate as unknown, and fails, if the handshake messages could not be read', () => {
  const unread = evaluated(shown, { clientAuthorities: undefined, version: undefined })
  expect([unread.client?.verdict, codesOf(unread), unread.status]).toEqual([
    'unknown',
    ['CLIENT_UNKNOWN'],
    'failed',
  ])
  const read = evaluated(shown, { clientAuthorities: undefined, version: 'TLSv1.3' })
  expect([read.client, read.status]).toEqual([{ verdict: 'not-requested' }, 'ok'])
})

test("shows the user that the API server's answer contains", () => {
  const body = JSON.stringify({ status: { userInfo: { username: 'kubernetes-admin' } } })
  const report = evaluated(
    { ...shown, kind: 'api-server' },
    { clientAuthorities: [], answer: { status: 201, body } },
  )
  expect(report.client).toMatchObject({
    verdict: 'accepted',
    detail: 'as kubernetes-admin',
    user: 'kubernetes-admin',
  })
})

test('reports no problem for a server that requires a client certificate when none is available', () => {
  const report = evaluated(
    {},
    { clientAuthorities: cas, fault: refusal('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED') },
  )
  expect([report.client, report.status]).toEqual([{ verdict: 'not-tested', detail: 'it requires one' }, 'ok'])
})

test('reports certificates that cannot be read', () => {
  expect(evaluated({}, { chain: [Buffer.from('3000', 'hex')] })).toMatchObject({
    status: 'failed',
    chain: [],
    problems: [{ code: 'CERT_UNREADABLE' }],
  })
  // A name that a server invented is shown unchanged.
  expect(evaluated({}, { clientAuthorities: [Buffer.from('05')] }).clientCas).toEqual(['(unreadable name)'])
})

test('treats a server that answers without a certificate as reached, and one that does not answer as unreachable', () => {
  const unseen = { reason: 'the connection was refused', next: 'nc -vz 192.0.2.7 10250' }
  const reports = [true, false].map((isReached) => evaluate(kubelet, { ...unseen, isReached }, now))
  expect(reports.map((report) => [report.status, codesOf(report)])).toEqual([
    ['failed', ['NO_CERTIFICATE']],
    ['unreachable', ['UNREACHABLE']],
  ])
  expect(probeReport([...reports, evaluated()], [], now).summary).toEqual({
    endpoints: 3,
    ok: 1,
    failed: 1,
    unreachable: 1,
    nextExpiry: '2027-12-31T00:00:00Z',
  })
})
