import { describe, expect, test } from 'vitest'
import { submitted } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import type { AltNamesDescription, RequestDescription } from '../../x509/issuing.ts'
import type { Finding } from '../rule.ts'
import { readRequestContent, type SigningRequest } from '../signing-request.ts'
import { parseCidr } from './addresses.ts'
import type { Candidate } from './candidate.ts'
import type { Policy } from './policy.ts'
import { placeholdersFor, userRulePolicy } from './user-rule.ts'

// The findings of a rule in a policy file for each of its lists, with their texts.

const candidateOf = (object: SigningRequest): Candidate => ({
  object,
  request: readRequestContent(object.request).request!,
})
const line = ({ id, duty, outcome, detail }: Finding): string => `${id} ${duty} ${outcome}: ${detail}`
const unmetOf = (findings: readonly Finding[]): Finding[] =>
  findings.filter(({ outcome }) => outcome !== 'met')

async function findingsOf(policy: Policy, object: SigningRequest): Promise<readonly Finding[]> {
  return (await policy.evaluate(candidateOf(object), fakeFacts({}))).findings
}

describe("a user's rule", () => {
  const rule = {
    name: 'web',
    decision: 'approve',
    signerNames: ['example.com/*'],
    usernames: ['ann', 'x:*'],
    groups: ['devs', 'ops'],
    commonNames: ['*.apps', 'user:*', 'system:kube-scheduler'],
    organizations: ['team:*', 'team'],
    dnsNames: ['*.Example.com'],
    ipAddresses: [parseCidr('10.0.0.0/8')!],
    emails: ['*@example.com'],
    uris: ['spiffe://example.com/*', 'https://example.com/q?a=1'],
    usages: ['client auth', 'server auth'],
    maxNames: 5,
    maxExpirationSeconds: 3600,
  } as const
  const asking = (description: RequestDescription, fields: Partial<SigningRequest> = {}): SigningRequest =>
    submitted(description, {
      signerName: 'example.com/web',
      usages: ['client auth'],
      username: 'ann',
      groups: ['system:authenticated', 'ops'],
      expirationSeconds: 3600,
      ...fields,
    })
  const within: RequestDescription = {
    subject: { commonName: 'web.apps', organization: ['team:a', 'team'] },
    subjectAltNames: {
      dns: ['WEB.example.com'],
      ip: ['10.1.2.3'],
      email: ['ann@example.com'],
      uri: ['spiffe://example.com/web', 'https://example.com/q?a=1'],
    },
  }

  test('reports for each of its lists what it allows', async () => {
    expect((await findingsOf(userRulePolicy(rule), asking(within))).slice(9).map(line)).toEqual([
      'requester identity met: "ann" is a user of the rule',
      'common-name entitlement met: the rule allows "web.apps"',
      'organization entitlement met: the rule allows "team", "team:a"',
      'dns-names entitlement met: the rule allows "WEB.example.com"',
      'ip-addresses entitlement met: the rule allows "10.1.2.3"',
      'emails entitlement met: the rule allows "ann@example.com"',
      'uris entitlement met: the rule allows "spiffe://example.com/web", "https://example.com/q?a=1"',
      'usages entitlement met: the rule allows "client auth"',
      'name-count entitlement met: 5 names',
      'lifetime entitlement met: 3600 s',
    ])
  })

  test('without lists allows no names, sets no limit, and takes the usages of the signer', async () => {
    const bare = { name: 'web', decision: 'approve', signerNames: ['*/*'], groups: ['ops'] } as const
    expect((await findingsOf(userRulePolicy(bare), asking({ subject: {} }))).slice(9).map(line)).toEqual([
      'requester identity met: "ann" is in group "ops"',
      'common-name entitlement met: none requested',
      'organization entitlement met: none requested',
      'dns-names entitlement met: none requested',
      'ip-addresses entitlement met: none requested',
      'emails entitlement met: none requested',
      'uris entitlement met: none requested',
      'usages entitlement unmet: the rule does not allow "client auth"',
      'lifetime entitlement met: the rule sets no limit',
    ])
    const known = { signerName: 'kubernetes.io/kube-apiserver-client' }
    const found = await findingsOf(userRulePolicy(bare), asking({ subject: {} }, known))
    expect(found.find(({ id }) => id === 'usages')!.outcome).toBe('met')
    // The policy does not read the key: an RSA key may have this usage.
    const rsa = asking({ subject: {} }, { ...known, usages: ['client auth', 'key encipherment'] })
    expect(unmetOf(await findingsOf(userRulePolicy(bare), rsa))).toEqual([])
    const all = unmetOf(await findingsOf(userRulePolicy(bare), asking(within, known)))
    expect(all.map(({ id }) => id)).toEqual([
      'common-name',
      'organization',
      'dns-names',
      'ip-addresses',
      'emails',
      'uris',
    ])
  })

  const subject = (commonName: string, ...organization: string[]) => ({
    subject: { commonName, organization },
  })
  const alternative = (subjectAltNames: AltNamesDescription) => ({ subject: {}, subjectAltNames })
  test.each<[RequestDescription, Partial<SigningRequest>, string, string]>([
    [subject('x.y.apps'), {}, 'common-name', 'commonNames'],
    [subject('user:a:b'), {}, 'common-name', 'commonNames'],
    [subject('*.apps'), {}, 'common-name', 'commonNames'],
    [subject('system:kube-proxy'), {}, 'common-name', 'commonNames'],
    [subject('a.apps', 'team:a:b'), {}, 'organization', 'organizations'],
    [subject('a.apps', 'team:*'), {}, 'organization', 'organizations'],
    [alternative({ dns: ['a.b.example.com'] }), {}, 'dns-names', 'dnsNames'],
    [alternative({ dns: ['*.example.com'] }), {}, 'dns-names', 'dnsNames'],
    [alternative({ ip: ['192.0.2.1'] }), {}, 'ip-addresses', 'ipAddresses'],
    [alternative({ email: ['a.b@example.com'] }), {}, 'emails', 'emails'],
    [alternative({ email: ['*@example.com'] }), {}, 'emails', 'emails'],
    [alternative({ uri: ['spiffe://example.com/a/b'] }), {}, 'uris', 'uris'],
    [alternative({ uri: ['spiffe://example.com/*'] }), {}, 'uris', 'uris'],
    [alternative({ uri: ['spiffe://example.com/a?b'] }), {}, 'uris', 'uris'],
    [alternative({ uri: ['spiffe://example.com/a#b'] }), {}, 'uris', 'uris'],
    [{ subject: {} }, { usages: ['any'] }, 'usages', 'usages'],
  ])('%j %j is outside of %s', async (description, fields, id, field) => {
    const found = unmetOf(await findingsOf(userRulePolicy(rule), asking(description, fields)))
    expect(found.map((one) => one.id)).toEqual([id])
    expect(found[0]!.fix).toBe(
      `add allowed values to ${field} of the rule, or create a new request without them`,
    )
  })

  test.each<[RequestDescription, Partial<SigningRequest>, string, Finding['outcome']]>([
    [subject('system:kube-proxy'), {}, 'common-name', 'unmet'],
    [subject('user:a'), {}, 'common-name', 'met'],
    [subject('a', 'system:nodes'), {}, 'organization', 'unmet'],
    [subject('a', 'team:a'), {}, 'organization', 'met'],
    // A value that the API server has authenticated is not a star.
    [subject('system:node:a'), { username: 'system:node:a' }, 'common-name', 'met'],
    [subject('system:node:b'), { username: 'system:node:a' }, 'common-name', 'unmet'],
  ])('with the widest patterns, %j %j: %s is %s', async (description, fields, id, outcome) => {
    const wide = {
      commonNames: ['*:*', '{username}'],
      organizations: ['*:*'],
      usernames: ['ann', 'system:node:*'],
    }
    const found = await findingsOf(userRulePolicy({ ...rule, ...wide }), asking(description, fields))
    expect(found.find((one) => one.id === id)!.outcome).toBe(outcome)
  })

  test.each([
    ['user:a', 'met'],
    ['a.apps', 'met'],
    ['system:kube-scheduler', 'met'],
  ])('common name %s: %s', async (commonName, outcome) => {
    const found = await findingsOf(userRulePolicy(rule), asking(subject(commonName)))
    expect(found.find(({ id }) => id === 'common-name')!.outcome).toBe(outcome)
  })

  test.each([
    ['*.example.com', 'met'],
    ['*.*.example.com', 'unmet'],
    ['a*.example.com', 'unmet'],
    ['*.a*.example.com', 'unmet'],
  ])('with wildcards, %s: %s', async (dns, outcome) => {
    const found = await findingsOf(
      userRulePolicy({ ...rule, wildcards: true, dnsNames: ['*.example.com', '*.*.example.com'] }),
      asking(alternative({ dns: [dns] })),
    )
    expect(found.find(({ id }) => id === 'dns-names')!.outcome).toBe(outcome)
  })

  test.each([
    [undefined, 'unmet', 'expirationSeconds is not set, and the rule allows 3600 s'],
    [3601, 'unmet', '3601 s is more than 3600 s'],
    [3599, 'met', '3599 s'],
  ])('a lifetime of %s: %s', async (expirationSeconds, outcome, detail) => {
    const object = { ...asking({ subject: {} }), expirationSeconds: expirationSeconds as number }
    const found = (await findingsOf(userRulePolicy(rule), object)).find(({ id }) => id === 'lifetime')!
    expect(found).toMatchObject({ duty: 'entitlement', outcome, detail })
    if (outcome === 'unmet') expect(found.fix).toContain('--expiration-seconds 3600')
  })

  test.each<[Partial<SigningRequest>, string]>([
    [{ signerName: 'example.org/web' }, 'it is for another signer'],
    [{ signerName: 'example.com/a/b' }, 'it is for another signer'],
    [{ username: undefined as never }, 'the requester is unknown'],
    [{ username: 'bob', groups: ['x'] }, '"bob" is not a user of the rule'],
    [{ username: '', groups: [] }, '"" is not a user of the rule'],
    [{ username: 'x:ann:b', groups: [] }, '"x:ann:b" is not a user of the rule'],
  ])('does not apply to %j', async (fields, reason) => {
    const object = { ...asking({ subject: {} }), ...fields }
    expect(await userRulePolicy(rule).evaluate(candidateOf(object), fakeFacts({}))).toEqual({
      policy: 'web',
      applies: false,
      decision: 'ignore',
      reason,
      findings: [],
    })
  })

  test('with usernames and no groups does not apply to other users', async () => {
    const users = { name: 'web', decision: 'approve', signerNames: ['*/*'], usernames: ['ann'] } as const
    const object = asking({ subject: {} }, { username: 'bob' })
    expect(await userRulePolicy(users).evaluate(candidateOf(object), fakeFacts({}))).toMatchObject({
      applies: false,
      reason: '"bob" is not a user of the rule',
    })
  })

  describe('that denies', () => {
    const all = asking(within, { expirationSeconds: 7200, username: 'system:serviceaccount:shop:web' })
    const evaluate = async (fields: object, object = all) =>
      userRulePolicy({ name: 'no', decision: 'deny', signerNames: ['*'], ...fields }).evaluate(
        candidateOf(object),
        fakeFacts({}),
      )

    test.each<[object, boolean]>([
      [{}, true],
      [{ signerNames: ['example.org/*'] }, false],
      [{ usernames: ['*:{serviceaccount}'] }, true],
      [{ usernames: ['bob'] }, false],
      [{ groups: ['o*'] }, true],
      [{ groups: ['x'] }, false],
      [{ commonNames: ['web*'] }, true],
      [{ commonNames: ['x', 'web*'] }, true],
      [{ commonNames: ['x'] }, false],
      [{ organizations: ['team'] }, true],
      [{ organizations: ['x'] }, false],
      [{ dnsNames: ['web.EXAMPLE.*'] }, true],
      [{ dnsNames: ['x'] }, false],
      [{ ipAddresses: [parseCidr('192.0.2.0/24')!, parseCidr('10.1.0.0/16')!] }, true],
      [{ ipAddresses: [parseCidr('192.0.2.0/24')!] }, false],
      [{ emails: ['ann@*'] }, true],
      [{ emails: ['*@EXAMPLE.*'] }, true],
      [{ emails: ['x'] }, false],
      [{ uris: ['spiffe:*'] }, true],
      [{ uris: ['x'] }, false],
      [{ usages: ['any', 'client auth'] }, true],
      [{ usages: ['any'] }, false],
      [{ maxExpirationSeconds: 7199 }, true],
      [{ maxExpirationSeconds: 7200 }, false],
      [{ groups: ['ops'], usages: ['any'] }, false],
    ])('%j: %s', async (fields, isDenied) => {
      const { policy, applies, decision, reason, findings } = await evaluate(fields)
      expect([policy, applies, decision]).toEqual(['no', isDenied, isDenied ? 'deny' : 'ignore'])
      expect(reason).toBe(isDenied ? 'not-no: the rule "no" denies it' : 'the rule does not match it')
      expect(findings.map((one) => [line(one), one.fix])).toEqual(
        isDenied
          ? [['not-no entitlement unmet: the rule "no" denies it', 'change the request, or the rule "no"']]
          : [],
      )
    })

    test('denies a request with one of its addresses in the ranges', async () => {
      const object = asking({ subject: {}, subjectAltNames: { ip: ['192.0.2.9', '10.1.2.3'] } })
      expect((await evaluate({ ipAddresses: [parseCidr('10.0.0.0/8')!] }, object)).decision).toBe('deny')
    })

    test('does not deny a request without the listed values', async () => {
      const empty = {
        ...asking({ subject: {} }, { groups: [], usages: [] }),
        username: undefined as never,
        expirationSeconds: undefined as never,
      }
      for (const field of [
        'usernames',
        'groups',
        'commonNames',
        'organizations',
        'dnsNames',
        'emails',
        'uris',
      ])
        expect((await evaluate({ [field]: ['*'] }, empty)).decision).toBe('ignore')
      expect((await evaluate({ maxExpirationSeconds: 600 }, empty)).decision).toBe('ignore')
    })
  })
})

test.each([
  ['system:serviceaccount:shop:web', 'shop', 'web', ''],
  ['system:node:a', '', '', 'a'],
  ['ann', '', '', ''],
  ['x:system:serviceaccount:shop:web', '', '', ''],
  ['system:serviceaccount:shop:web:x', '', '', ''],
  ['system:serviceaccount::web', '', '', ''],
  [undefined, '', '', ''],
])(
  'the placeholders of %s: namespace %j, service account %j, node %j',
  (username, namespace, serviceaccount, node) => {
    expect(placeholdersFor(username === undefined ? {} : { username })).toEqual({
      username: username ?? '',
      namespace,
      serviceaccount,
      node,
    })
  },
)
