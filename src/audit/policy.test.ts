import { describe, expect, test } from 'vitest'
import { checkAuditPolicy, readAuditPolicy, sufficientPolicy } from './policy.ts'

const check = async (rules: string, more = '') =>
  checkAuditPolicy(
    await readAuditPolicy(
      `apiVersion: audit.k8s.io/v1\nkind: Policy\n${more}\nrules:\n${rules}\n`,
      'policy.yaml',
    ),
    'policy.yaml',
  )
const found = async (rules: string, more = '') =>
  (await check(rules, more)).findings.map(({ rule, hides }) => `${rule ?? 'end'} ${hides}`)

test('the policy that kcert prints is sufficient, and hides nothing', async () => {
  const policy = await readAuditPolicy(sufficientPolicy, 'policy.yaml')
  expect(checkAuditPolicy(policy, 'policy.yaml')).toMatchObject({ isSufficient: true, findings: [] })
})

test('each rule of that policy is necessary', async () => {
  const { rules } = await readAuditPolicy(sufficientPolicy, 'policy.yaml')
  expect(rules.map(({ level }) => level)).toEqual(['None', 'Request', 'Metadata'])
  const without = (index: number) =>
    checkAuditPolicy({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: rules.toSpliced(index, 1) }, 'p')
      .findings
  expect(without(1)).toMatchObject([{ hides: 'issued-certificates' }])
  expect(without(2)).toContainEqual(expect.objectContaining({ hides: 'uses' }))
})

describe('uses are hidden by', () => {
  test('a rule of level None', async () => {
    expect(await found('- {level: None, users: [ann]}\n- level: Request')).toEqual(['1 uses'])
    expect(await found('- {level: None, nonResourceURLs: [/healthz*]}\n- level: Request')).toEqual(['1 uses'])
    expect(
      await found(
        '- {level: None, verbs: [watch], resources: [{group: "", resources: [pods]}]}\n- level: Request',
      ),
    ).toEqual(['1 uses'])
  })

  test('requests that no rule matches', async () => {
    expect(await found('- {level: Request, namespaces: [shop]}')).toContain('end uses')
    expect(await found('- {level: Request, verbs: [get]}')).toContain('end uses')
    expect(await found('- {level: Request, userGroups: [system:authenticated]}')).toEqual([])
    expect(await found('- {level: Request, nonResourceURLs: ["*"]}')).toContain('end uses')
  })

  test('omitted stages, of the policy and of the rule together', async () => {
    expect(
      await found('- {level: Request, omitStages: [ResponseComplete]}', 'omitStages: [RequestReceived]'),
    ).toEqual(['1 uses', '1 issued-tokens'])
  })
})

test('which tokens are new is hidden by omitted stages of all groups', async () => {
  expect(
    await found(
      '- {level: Request, omitStages: [ResponseComplete], resources: [{group: "*"}]}\n- level: Request',
    ),
  ).toEqual(['1 issued-tokens'])
})

describe('uses are not hidden by', () => {
  test('a rule behind one that matches the same requests', async () => {
    expect(await found('- level: Request\n- level: None')).toEqual([])
    expect(
      await found(
        '- {level: Request, users: [ann, bob]}\n- {level: None, users: [ann], verbs: [get]}\n- level: Request',
      ),
    ).toEqual([])
    expect(
      await found(
        '- {level: Request, resources: [{group: apps, resources: ["deployments/*"]}]}\n- {level: None, resources: [{group: apps, resources: [deployments, deployments/scale]}]}\n- level: Request',
      ),
    ).toEqual([])
    expect(
      await found(
        '- {level: Request, nonResourceURLs: [/live*]}\n- {level: None, nonResourceURLs: [/livez, /livez/*]}\n- level: Request',
      ),
    ).toEqual([])
  })

  test('level None for requests without a credential', async () => {
    expect(await found('- {level: None, users: [system:anonymous]}\n- level: Request')).toEqual([])
    expect(await found('- {level: None, userGroups: [system:unauthenticated]}\n- level: Request')).toEqual([])
  })
})

test('a rule behind one that matches only some of its requests is reported', async () => {
  expect(
    await found(
      '- {level: Request, users: [ann], verbs: [get]}\n- {level: None, users: [ann]}\n- level: Request',
    ),
  ).toEqual(['2 uses'])
  expect(
    await found(
      '- {level: Request, resources: [{group: "", resources: [pods], resourceNames: [a]}]}\n- {level: None, resources: [{group: "", resources: [pods]}]}\n- level: Request',
    ),
  ).toEqual(['2 uses'])
  expect(
    await found(
      '- {level: Request, resources: [{group: "", resources: ["*/status"]}]}\n- {level: None, resources: [{group: "", resources: [pods]}]}\n- level: Request',
    ),
  ).toEqual(['2 uses'])
  expect(
    await found(
      '- {level: Request, namespaces: [""]}\n- {level: None, namespaces: ["", shop]}\n- level: Request',
    ),
  ).toEqual(['2 uses'])
})

test('level Metadata hides issued certificates, which does not make a policy insufficient', async () => {
  const { isSufficient, findings } = await check('- level: Metadata')
  expect(isSufficient).toBe(true)
  expect(findings).toMatchObject([{ rule: 1, hides: 'issued-certificates' }])
})

test('names the requests of a rule', async () => {
  const { findings } = await check(
    '- {level: None, users: [a, b, c, d, e, f, g], verbs: [watch], resources: [{group: apps, resources: [deployments]}], namespaces: ["", shop]}\n- level: Request',
  )
  expect(findings[0]!.detail).toBe(
    'level None: no event shows the credentials of requests with users a, b, c, d, e and 2 more; verbs watch; resources deployments.apps; namespaces "" (not namespaced), shop',
  )
})

test.each([
  ['kind: Policy', 'apiVersion'],
  ['apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]', 'audit.k8s.io/v1'],
  ['apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []', 'is empty'],
  ['apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]', 'All'],
  [
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, userGroup: [a]}]',
    'unknown field "userGroup"',
  ],
  ['apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [Response]}]', 'Response'],
  [
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [healthz]}]',
    'must begin with "/"',
  ],
  [
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: ["/a"], namespaces: [b]}]',
    'not both',
  ],
  [
    'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{resourceNames: [b]}]}]',
    'requires resources',
  ],
  ['a: [', 'line'],
  ['a: 1\n---\nb: 2', '2 YAML documents'],
  ['', '0 YAML documents'],
])('rejects %s', async (text, why) => {
  const error = await readAuditPolicy(text, 'policy.yaml').then(
    () => undefined,
    (thrown: unknown) => thrown as { code: string; message: string; why: string },
  )
  expect(error?.code).toBe('KCERT_POLICY_INVALID')
  expect(`${error?.message} ${error?.why}`).toContain(why)
})
