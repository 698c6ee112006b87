import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { requestPem, servingDescription, servingRequest, submitted } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import type { KcertError } from '../../errors/kcert-error.ts'
import type { RequestDescription } from '../../x509/issuing.ts'
import { generatePrivateKey, writePrivateKey } from '../../x509/new-key.ts'
import type { SigningRequest } from '../signing-request.ts'
import { decide, type Verdict } from './decide.ts'
import { readPolicies } from './policy-file.ts'
import { approveSchema, denySchema, kubeletClientSchema, kubeletServingSchema } from './policy-schema.ts'

const head = 'apiVersion: kcert/v1\nkind: ApprovalPolicy\n'

/** Returns a request of the service account web in the namespace shop, for a signer outside Kubernetes. */
function shopRequest(description: RequestDescription, fields: Partial<SigningRequest> = {}): SigningRequest {
  return submitted(description, {
    signerName: 'example.com/serving',
    usages: ['digital signature', 'server auth'],
    username: 'system:serviceaccount:shop:web',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:shop'],
    ...fields,
  })
}

async function verdictOf(policy: string, object: SigningRequest): Promise<Verdict> {
  return decide(object, await readPolicies(head + policy, 'policy.yaml'), fakeFacts({}))
}

const shopRule = `rules:
- name: shop
  decision: approve
  signerNames: [example.com/serving]
  usernames: ["system:serviceaccount:shop:*"]
  dnsNames: ["*.{namespace}.svc.cluster.local"]
  ipAddresses: [10.0.0.0/8]
  usages: [digital signature, server auth]
  maxExpirationSeconds: 86400
`
const shopNames = (names: RequestDescription['subjectAltNames']): RequestDescription => ({
  subject: {},
  ...(names && { subjectAltNames: names }),
})
const day = { expirationSeconds: 86_400 }

describe('an approving rule', () => {
  test('approves a request within its lists, and reports both duties', async () => {
    const object = shopRequest(shopNames({ dns: ['web.shop.svc.cluster.local'], ip: ['10.3.4.5'] }), day)
    expect(await verdictOf(shopRule, object)).toMatchObject({
      decision: 'approve',
      policy: 'shop',
      duties: { identity: 'met', entitlement: 'met' },
    })
  })

  test.each<[string, RequestDescription, Partial<SigningRequest>]>([
    ["a name of another's namespace", shopNames({ dns: ['web.bank.svc.cluster.local'] }), day],
    ['a wildcard where the pattern means one label', shopNames({ dns: ['*.shop.svc.cluster.local'] }), day],
    ['an address outside', shopNames({ ip: ['192.0.2.1'] }), day],
    ['an email address, which the rule does not list', shopNames({ email: ['web@shop.example'] }), day],
    ['a URI, which the rule does not list', shopNames({ uri: ['spiffe://shop/web'] }), day],
    ['a common name, which the rule does not list', { subject: { commonName: 'web' } }, day],
    ['a group, which the rule does not list', { subject: { organization: ['dev'] } }, day],
    [
      'an extra usage',
      shopNames({}),
      { ...day, usages: ['digital signature', 'server auth', 'client auth'] },
    ],
    ['no lifetime, where the rule has a limit', shopNames({}), {}],
    ['a longer lifetime', shopNames({}), { expirationSeconds: 86_401 }],
    ['another signer', shopNames({}), { ...day, signerName: 'example.com/other' }],
    ['another requester', shopNames({}), { ...day, username: 'system:serviceaccount:bank:web' }],
    ['a requester without name', shopNames({}), { ...day, username: '' }],
  ])('skips %s', async (_name, description, fields) => {
    expect((await verdictOf(shopRule, shopRequest(description, fields))).decision).toBe('ignore')
  })

  test('never matches system: names with a star, and never system:masters', async () => {
    const rule = (organization: string) => `rules:
- {name: users, decision: approve, signerNames: [kubernetes.io/kube-apiserver-client], groups: [people], commonNames: ["*"], organizations: ["${organization}"]}
`
    const asking = (organization: string, commonName = 'ann') =>
      submitted(
        { subject: { commonName, organization: [organization] } },
        {
          signerName: 'kubernetes.io/kube-apiserver-client',
          usages: ['client auth'],
          username: 'ann',
          groups: ['people'],
        },
      )
    expect((await verdictOf(rule('*'), asking('dev'))).decision).toBe('approve')
    expect((await verdictOf(rule('*'), asking('system:nodes'))).decision).toBe('ignore')
    expect((await verdictOf(rule('*'), asking('dev', 'system:kube-scheduler'))).decision).toBe('ignore')
    expect((await verdictOf(rule('system:masters'), asking('system:masters'))).decision).toBe('ignore')
    expect((await verdictOf(rule('system:auditors'), asking('system:auditors'))).decision).toBe('approve')
  })

  test('allows a wildcard name where the rule says so', async () => {
    const object = shopRequest(shopNames({ dns: ['*.shop.svc.cluster.local'] }), day)
    expect((await verdictOf(`${shopRule}  wildcards: true\n`, object)).decision).toBe('approve')
  })
})

describe('a denying rule', () => {
  const noWildcards = `- {name: no-wildcards, decision: deny, signerNames: ["example.com/*"], dnsNames: ["*.*", "*.*.*.*.*"]}\n`

  test('overrides an approval, wherever it is in the file', async () => {
    const object = shopRequest(shopNames({ dns: ['web.shop.svc.cluster.local'] }), day)
    const denying = `- {name: none-for-web, decision: deny, signerNames: ["example.com/*"], usernames: ["system:serviceaccount:shop:web"]}\n`
    const behind = await verdictOf(shopRule + denying, object)
    const before = await verdictOf(shopRule.replace('rules:\n', `rules:\n${denying}`), object)
    expect([behind.decision, before.decision]).toEqual(['deny', 'deny'])
    expect(behind.policy).toBe('none-for-web')
  })

  test('skips a request without a value of each of its lists', async () => {
    const object = shopRequest(shopNames({ ip: ['10.0.0.1'] }), day)
    expect((await verdictOf(shopRule + noWildcards, object)).decision).toBe('approve')
  })
})

test('matches any character with a star, and fills placeholders from the requester', async () => {
  const object = shopRequest(shopNames({ dns: ['web.shop.svc.cluster.local'] }), day)
  const denying = (fields: string) => `- {name: denied, decision: deny, signerNames: ["*"], ${fields}}\n`
  const decisions = async (...fields: string[]) =>
    Promise.all(fields.map(async (one) => (await verdictOf(shopRule + denying(one), object)).decision))
  expect(
    await decisions('usernames: ["system:*"]', 'dnsNames: ["WEB.*"]', 'dnsNames: ["*.{namespace}.*"]'),
  ).toEqual(['deny', 'deny', 'deny'])
  expect(await decisions('dnsNames: ["*.{node}.*"]', 'groups: [ci]')).toEqual(['approve', 'approve'])
})

test('the example in the documentation is a valid policy with every field', async () => {
  const page = readFileSync('docs/policy.md', 'utf8')
  const example = /```yaml\n([^`]+)```/.exec(page)![1]!
  expect((await readPolicies(example, 'docs/policy.md')).map(({ name }) => name)).toEqual([
    'kubelet-client',
    'kubelet-serving',
    'services',
    'nothing-for-ci',
  ])
  const cloud = [...page.matchAll(/```yaml\n([^`]+)```/g)][1]![1]!
  expect((await readPolicies(cloud, 'docs/policy.md')).map(({ name }) => name)).toEqual(['kubelet-serving'])
  const schemas = [kubeletClientSchema, kubeletServingSchema, approveSchema.pipe[0], denySchema.pipe[0]]
  for (const { entries } of schemas)
    for (const field of Object.keys(entries)) expect(page).toMatch(new RegExp(`\\b${field}\\b`))
})

describe('built-in policies in a file', () => {
  const node = {
    name: 'node-1',
    addresses: ['node-1', 'node-1.nodes.example.com', '10.1.0.7', '2001:db8::7'].map((address, index) => ({
      type: index < 2 ? 'InternalDNS' : 'InternalIP',
      address,
    })),
    isControlPlane: false,
  }
  const facts = () =>
    fakeFacts({ nodes: [node], served: {}, addresses: { apiServers: [], serviceCidrs: [] } })
  const decisionBy = async (settings: string, cluster = '') =>
    (
      await decide(
        servingRequest(),
        await readPolicies(`${head}${cluster}rules:\n- {builtin: kubelet-serving${settings}}\n`, 'p'),
        facts(),
      )
    ).decision

  test.each([
    ['', '', 'approve'],
    [', dnsSuffixes: [.nodes.example.com]', '', 'approve'],
    [', dnsSuffixes: [example.org]', '', 'ignore'],
    [', dnsSuffixes: [example.org], onViolation: ignore', '', 'ignore'],
    [', dnsSuffixes: [example.org], onViolation: deny', '', 'deny'],
    [', cidrs: [10.1.0.0/16]', '', 'ignore'],
    [', cidrs: [10.1.0.0/16, "2001:db8::/32"]', '', 'approve'],
    [', names: node', '', 'approve'],
    [', names: served', '', 'ignore'],
    [', names: node-or-served', '', 'approve'],
    ['', 'cluster: {serviceCidrs: [10.1.0.0/16]}\n', 'ignore'],
    ['', 'cluster: {apiServers: [10.1.0.7]}\n', 'ignore'],
    ['', 'cluster: {domain: nodes.example.com}\n', 'ignore'],
    ['', 'cluster: {domain: .nodes.example.com}\n', 'ignore'],
  ])('kubelet-serving%s with %j: %s', async (settings, cluster, expected) => {
    expect(await decisionBy(settings, cluster)).toBe(expected)
  })

  test.each([
    ['', 'ignore'],
    ['cluster: {serviceCidrs: [10.96.0.0/12]}\n', 'ignore'],
    ['cluster: {apiServers: [192.0.2.10]}\n', 'ignore'],
    ['cluster: {serviceCidrs: [10.96.0.0/12], apiServers: [192.0.2.10]}\n', 'approve'],
  ])('without the addresses of the cluster, %j: %s', async (cluster, expected) => {
    const policies = await readPolicies(`${head}${cluster}rules:\n- builtin: kubelet-serving\n`, 'p')
    expect((await decide(servingRequest(), policies, fakeFacts({ nodes: [node] }))).decision).toBe(expected)
  })

  test('treat names under cluster.local as cluster names where the policy names no domain', async () => {
    const names = { dns: ['node-1.cluster.local'] }
    const request = Buffer.from(requestPem({ ...servingDescription(), subjectAltNames: names }))
    const policies = await readPolicies(
      `${head}rules:\n- {builtin: kubelet-serving, dnsSuffixes: [cluster.local]}\n`,
      'p',
    )
    const { reason } = await decide(servingRequest({ request }), policies, facts())
    expect(reason).toBe('no-cluster-name: "node-1.cluster.local" is a cluster-internal name')
  })
})

describe('an invalid policy file', () => {
  test.each<[string, string, string, RegExp]>([
    [
      'a field misspelled',
      'rules:\n- builtin: kubelet-serving\n  dnsSufixes: [a.b]\n',
      'policy.yaml line 5: rules[0].dnsSufixes',
      /unknown field "dnsSufixes"; did you mean "dnsSuffixes"/,
    ],
    [
      'an unknown built-in',
      'rules:\n- builtin: kubelet\n',
      'policy.yaml line 4: rules[0]',
      /unknown built-in policy "kubelet"/,
    ],
    ...['approve', 'deny'].map((decision): [string, string, string, RegExp] => [
      `an unknown built-in that decides to ${decision}`,
      `rules:\n- {builtin: kubelet, decision: ${decision}}\n`,
      'policy.yaml line 4: rules[0]',
      /unknown built-in policy "kubelet"/,
    ]),
    ...['null', 'kubelet-client', '7', '[kubelet-client]'].map((rule): [string, string, string, RegExp] => [
      `${rule} as a rule`,
      `rules:\n- ${rule}\n`,
      'policy.yaml line 4: rules[0]',
      /needs "builtin"/,
    ]),
    [
      'a field of the cluster misspelled',
      'cluster: {domains: example.com}\nrules: []\n',
      'policy.yaml line 3: cluster.domains',
      /unknown field "domains"; did you mean "domain"/,
    ],
    ['a rule that decides nothing', 'rules:\n- name: x\n', 'policy.yaml line 4: rules[0]', /needs "builtin"/],
    [
      'no signer',
      'rules:\n- {name: x, decision: approve}\n',
      'policy.yaml line 4: rules[0].signerNames',
      /"signerNames" is missing/,
    ],
    [
      'a range that is none',
      'rules:\n- builtin: kubelet-serving\n  cidrs:\n  - 10.0.0.0/40\n',
      'policy.yaml line 6: rules[0].cidrs[0]',
      /"10\.0\.0\.0\/40" is not a range/,
    ],
    [
      'a usage that is none',
      'rules:\n- {name: x, decision: approve, signerNames: [a.b/c], usages: [fly]}\n',
      'policy.yaml line 4: rules[0].usages[0]',
      /"fly" is invalid: expected/,
    ],
    [
      'an unknown placeholder',
      'rules:\n- {name: x, decision: approve, signerNames: [a.b/c], dnsNames: ["{pod}.x"]}\n',
      'policy.yaml line 4: rules[0].dnsNames[0]',
      /"\{pod\}\.x" has an unknown placeholder; known are \{username\}, \{namespace\}, \{serviceaccount\}, \{node\}$/,
    ],
    ...['"*.example.com"', 'a b.example.com', 'example.com.', 'example..com'].map(
      (suffix): [string, string, string, RegExp] => [
        `the end of a DNS name that is none, ${suffix},`,
        `rules:\n- builtin: kubelet-serving\n  dnsSuffixes: [${suffix}]\n`,
        'policy.yaml line 5: rules[0].dnsSuffixes[0]',
        /is not a DNS suffix such as/,
      ],
    ),
    [
      'a lifetime below ten minutes',
      'rules:\n- {builtin: kubelet-serving, maxExpirationSeconds: 60}\n',
      'policy.yaml line 4: rules[0].maxExpirationSeconds',
      /below 600/,
    ],
    [
      'a word where a list belongs',
      'rules: none\n',
      'policy.yaml line 3: rules',
      /is invalid: expected Array/,
    ],
    ['no rules', '', 'policy.yaml line 1: rules', /"rules" is missing/],
    [
      'an unknown field at the top',
      'rules: []\nrule: []\n',
      'policy.yaml line 4: rule',
      /unknown field "rule"; did you mean "rules"/,
    ],
    [
      'two rules of one name',
      'rules:\n- builtin: kubelet-client\n- builtin: kubelet-client\n',
      'policy.yaml',
      /two rules have the name "kubelet-client"/,
    ],
    ['two documents', 'rules: []\n---\na: b\n', 'policy.yaml', /2 documents/],
    ['broken YAML', 'rules: [\n', 'policy.yaml line', /./],
  ])('is refused with location, reason and advice: %s', async (_name, policy, what, why) => {
    await expect(readPolicies(head + policy, 'policy.yaml')).rejects.toMatchObject({
      code: 'KCERT_POLICY_INVALID',
      message: expect.stringContaining(what),
      why: expect.stringMatching(why),
      fix: expect.stringContaining('docs/policy.md'),
    })
  })

  test.each([
    ['', 'policy.yaml', 'it has 0 documents, and a policy file has one'],
    ['null\n', 'policy.yaml', 'it has 0 documents, and a policy file has one'],
    ['kubelet-client\n', 'policy.yaml line 1', 'expected fields such as apiVersion and kind'],
  ])('refuses the file %j', async (text, message, why) => {
    await expect(readPolicies(text, 'policy.yaml')).rejects.toMatchObject({
      code: 'KCERT_POLICY_INVALID',
      message,
      why,
    })
  })

  test('refuses a file of another kind', async () => {
    await expect(readPolicies('apiVersion: v1\nkind: Secret\nrules: []\n', 'p')).rejects.toMatchObject({
      message: 'p line 1: apiVersion',
    })
  })
})

test('evaluates the request itself, not its file name or labels', async () => {
  const object = shopRequest(shopNames({ dns: ['web.shop.svc.cluster.local'] }), day)
  const swapped = { ...object, request: Buffer.from(requestPem(shopNames({ dns: ['api.bank.example'] }))) }
  expect((await verdictOf(shopRule, swapped)).decision).toBe('ignore')
})

test('does not print a private key that was passed as a policy, whole or in a field', async () => {
  const key = generatePrivateKey({ algorithm: 'ECDSA', curve: 'P-256' })
  const pem = writePrivateKey(key, 'pkcs8')
  const [, secret = ''] = pem.split('\n')
  const inField = `${head}rules: ${JSON.stringify(pem)}\n`
  for (const text of [pem, inField, secret]) {
    const error = (await readPolicies(text, 'key.pem').catch((thrown: unknown) => thrown)) as KcertError
    expect(error.code).toBe('KCERT_POLICY_INVALID')
    expect(`${error.message} ${error.why} ${error.fix}`).not.toContain(secret.slice(0, 12))
  }
})
