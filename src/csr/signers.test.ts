import { describe, expect, test } from 'vitest'
import { grantedSeconds, signerAnswer } from '../../test/fakes/kubernetes-signer.ts'
import type { CertificateRequest } from '../x509/request.ts'
import { adviceOf, defaultSigningDuration, findSigner, nodeNameOf, usagesForSigner } from './signers.ts'

// The first rule that a request breaks for each signer of kube-controller-manager, and its text.

const client = 'kubernetes.io/kube-apiserver-client'
const kubeletClient = 'kubernetes.io/kube-apiserver-client-kubelet'
const kubeletServing = 'kubernetes.io/kubelet-serving'

interface Asked {
  readonly commonName?: string
  readonly organization?: readonly string[]
  readonly names?: Partial<Record<'dns' | 'ip' | 'email' | 'uri', readonly string[]>>
  readonly usages?: readonly string[]
}

function inputOf(asked: Asked) {
  const { commonName = 'system:node:a', organization = ['system:nodes'], names = {}, usages = [] } = asked
  const subjectAltNames = { dns: [], ip: [], email: [], uri: [], ...names }
  const request = { subject: { commonName, organization }, subjectAltNames } as unknown as CertificateRequest
  return { request, usages }
}

function faults(signer: string, asked: Asked): string[] {
  return findSigner(signer)!.rules.flatMap(({ id, fault }) => {
    const found = fault(inputOf(asked))
    return found === undefined ? [] : [`${id}: ${found}`]
  })
}

const clientUsages = ['digital signature', 'client auth']
const servingUsages = ['digital signature', 'server auth']

describe('kube-apiserver-client-kubelet', () => {
  test.each<[string, Asked, string[]]>([
    ['a node', {}, []],
    ['an RSA key', { usages: [...clientUsages, 'key encipherment'] }, []],
    ['no organization', { organization: [] }, ['signer-organization: the subject has none']],
    ['another organization', { organization: ['x'] }, ['signer-organization: the subject has "x"']],
    [
      'a second organization',
      { organization: ['system:nodes', 'x'] },
      ['signer-organization: the subject has "system:nodes", "x"'],
    ],
    ['another common name', { commonName: 'x' }, ['signer-common-name: it is "x"']],
    ['DNS names', { names: { dns: ['a'] } }, ['signer-dns-names: it has "a"']],
    ['IP addresses', { names: { ip: ['::1'] } }, ['signer-ip-names: it has "::1"']],
    ['email addresses', { names: { email: ['a@b'] } }, ['signer-email-names: it has "a@b"']],
    ['URIs', { names: { uri: ['x:y'] } }, ['signer-uri-names: it has "x:y"']],
    [
      'the usages of a server',
      { usages: servingUsages },
      ['signer-usages: "client auth" is missing, "server auth" is not allowed'],
    ],
    ['a missing usage', { usages: ['client auth'] }, ['signer-usages: "digital signature" is missing']],
    ['an extra usage', { usages: [...clientUsages, 'any'] }, ['signer-usages: "any" is not allowed']],
  ])('%s', (_, asked, expected) => {
    expect(faults(kubeletClient, { usages: clientUsages, ...asked })).toEqual(expected)
  })
})

test.each<[string, Asked, string[]]>([
  ['a DNS name', { names: { dns: ['a'] } }, []],
  ['an IP address', { names: { ip: ['::1'] } }, []],
  ['neither', {}, ['signer-address: it has neither']],
  ['an email address', { names: { dns: ['a'], email: ['a@b'] } }, ['signer-email-names: it has "a@b"']],
  ['a URI', { names: { dns: ['a'], uri: ['x:y'] } }, ['signer-uri-names: it has "x:y"']],
])('kubelet-serving: %s', (_, asked, expected) => {
  expect(faults(kubeletServing, { usages: servingUsages, ...asked })).toEqual(expected)
})

test.each<[string[], string[]]>([
  [['client auth'], []],
  [['client auth', 'digital signature', 'key encipherment'], []],
  [['digital signature'], ['signer-usages: "client auth" is missing']],
  [['client auth', 'server auth'], ['signer-usages: "server auth" is not allowed']],
])('kube-apiserver-client with usages %j', (usages, expected) => {
  expect(faults(client, { usages })).toEqual(expected)
})

test('every rule has its requirement and its advice', () => {
  for (const name of [client, kubeletClient, kubeletServing])
    for (const { wants, fix, nextFor } of findSigner(name)!.rules) {
      const advice =
        fix ?? nextFor?.('node-1', { dns: [], ip: [], email: [], uri: [], other: [], ipBytes: [] })
      expect([wants, advice]).toEqual([expect.stringMatching(/.{15}/), expect.stringMatching(/.{20}/)])
    }
  expect(
    findSigner(kubeletClient)!
      .rules.map(({ wants }) => wants)
      .slice(1, 5),
  ).toEqual([
    'no DNS names in the SANs',
    'no email addresses in the SANs',
    'no IP addresses in the SANs',
    'no URIs in the SANs',
  ])
})

test.each<[string, Asked, string | undefined]>([
  [kubeletClient, { organization: ['x'] }, '--kubelet-client a --key-out a.key'],
  [kubeletClient, { commonName: 'node-7' }, '--kubelet-client node-7 --key-out node-7.key'],
  [kubeletServing, { commonName: 'node-7' }, '--kubelet-serving node-7 --dns node-7 --key-out node-7.key'],
  [kubeletServing, {}, '--kubelet-serving a --dns a --key-out a.key'],
  [
    kubeletServing,
    { organization: [], names: { dns: ['a.example.com', 'b'], ip: ['10.1.0.7', '::1'] } },
    '--kubelet-serving a --dns a.example.com --dns b --ip 10.1.0.7 --ip ::1 --key-out a.key',
  ],
  // The node name is unknown.
  [kubeletClient, { commonName: 'jane', organization: ['x'] }, undefined],
  [kubeletServing, { commonName: 'Node 7; reboot' }, undefined],
])('%s: the advice for %j names the node: %s', (name, asked, expected) => {
  const input = inputOf({ usages: clientUsages, ...asked })
  const broken = findSigner(name)!.rules.find(({ fault }) => fault(input) !== undefined)!
  expect(adviceOf(broken, input.request)).toEqual(
    expected === undefined ? {} : { next: `kcert csr create ${expected}` },
  )
})

test.each([
  [client, true, false, 'signed'],
  [client, false, false, 'waits'],
  [client, true, true, 'waits'],
  ['kubernetes.io/legacy-unknown', true, false, 'signed'],
  ['kubernetes.io/other', true, false, 'no-signer'],
  ['example.com/ca', true, false, 'other-signer'],
])('%s, approved %s, failed %s: %s', (name, approved, failed, expected) => {
  expect(signerAnswer(name, inputOf({ usages: clientUsages }), { approved, failed })).toBe(expected)
})

test('one broken rule is enough to fail', () => {
  const input = inputOf({ usages: clientUsages, organization: [] })
  expect(signerAnswer(kubeletClient, input, { approved: true, failed: false })).toBe('failed')
})

test.each([
  [client, ['digital signature', 'client auth']],
  [kubeletServing, ['digital signature', 'server auth']],
  ['kubernetes.io/legacy-unknown', undefined],
  ['example.com/ca', undefined],
])('usages for %s', (name, expected) => {
  expect(usagesForSigner(name, 'ECDSA-P256')).toEqual(expected)
})

test.each([
  ['system:node:a', 'a'],
  ['system:node:', ''],
  ['a', undefined],
  [undefined, undefined],
])('the node of the common name %s', (commonName, expected) => {
  expect(nodeNameOf(commonName)).toBe(expected)
})

test.each([
  [undefined, 31_536_000],
  [31_536_001, 31_536_000],
  [31_535_999, 31_535_999],
  [600, 600],
  [599, 600],
])('a request for %s seconds gets %i', (asked, expected) => {
  expect(grantedSeconds(asked, defaultSigningDuration)).toBe(expected)
})

test('the advice for usages can be pasted', () => {
  const [rule] = findSigner(kubeletServing)!.rules.filter(({ id }) => id === 'signer-usages')
  expect(rule).toMatchObject({
    fix: 'use --usage "digital signature" --usage "server auth", and --usage "key encipherment" for an RSA key',
  })
})
