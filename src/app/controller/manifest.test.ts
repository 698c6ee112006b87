import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { afterAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { exampleImage, overlayPolicy, overlays } from '../../../scripts/docs/deploy.ts'
import { clientRequest, servingRequest } from '../../../test/csr/made-requests.ts'
import { fakeFacts } from '../../../test/fakes/approval-facts.ts'
import { labHelm } from '../../../test/scripts/lab-helm.ts'
import { labKubectl } from '../../../test/scripts/lab-kubectl.ts'
import type { RbacRule } from '../../cluster/rights.ts'
import { rightText } from '../../cluster/rights.ts'
import { decide } from '../../csr/approval/decide.ts'
import type { Lookup, Policy } from '../../csr/approval/policy.ts'
import { builtinPolicies, readPolicies } from '../../csr/approval/policy-file.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { watchMetricRows } from '../../output/watch-metrics.ts'
import { renderYamlDocuments } from '../../output/yaml.ts'
import { builtinPoliciesOf } from '../csr/policies.ts'
import { watchIntervalMs } from './flags.ts'
import {
  checkImage,
  type ManifestSettings,
  manifestDefaults,
  manifestOf,
  memoryEnvironment,
} from './manifest.ts'
import { signerGrant } from './policy-rights.ts'
import { neededRights } from './rights-table.ts'

const folder = mkdtempSync(join(tmpdir(), 'kcert-manifest-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface KubernetesObject {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules?: readonly RbacRule[]
  readonly roleRef?: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly object[]
}

const policyText = `apiVersion: kcert/v1
kind: ApprovalPolicy
rules:
- builtin: kubelet-serving
  names: node
- {builtin: kubelet-client, newNodesOnly: true}
- {name: a, decision: approve, signerNames: [example.com/serving, "example.com/*", "b.example.com/s*"], usernames: [ann]}
- {name: b, decision: deny, signerNames: ["*/*"], groups: [ci]}
`
const ofFile = {
  name: 'policy.yaml',
  text: policyText,
  policies: await readPolicies(policyText, 'policy.yaml'),
}
const wideText = policyText.replace('b.example.com/s*', '*/serving')
const ofWide = { name: 'wide.yaml', text: wideText, policies: await readPolicies(wideText, 'wide.yaml') }
const ofOverlay = { name: overlayPolicy, policies: builtinPoliciesOf(overlayPolicy)! }
const ofBuiltin = { name: 'builtin', policies: builtinPolicies }

function objectsOf(settings: Partial<ManifestSettings>): KubernetesObject[] {
  return manifestOf({
    ...manifestDefaults,
    ...{ approve: ofOverlay, image: exampleImage, namespace: 'kube-system' },
    ...settings,
  }) as KubernetesObject[]
}

/** Returns what the roles grant to the service account, sorted. A role without a binding grants nothing. */
function granted(objects: readonly KubernetesObject[], namespace: string): string[] {
  const account = { kind: 'ServiceAccount', name: 'kcert-controller', namespace }
  const bound = objects.filter(({ roleRef, kind, metadata }) =>
    objects.some(
      (binding) =>
        roleRef === undefined &&
        binding.kind === `${kind}Binding` &&
        binding.metadata.namespace === metadata.namespace &&
        binding.roleRef?.kind === kind &&
        binding.roleRef.name === metadata.name &&
        JSON.stringify(binding.subjects) === JSON.stringify([account]),
    ),
  )
  return bound
    .flatMap(({ rules = [], metadata }) =>
      rules.flatMap(({ apiGroups: [group], resources: [resource], resourceNames, verbs }) =>
        verbs.map((verb) =>
          rightText({ verb, group, resource, ...given(resourceNames?.[0], metadata.namespace) }),
        ),
      ),
    )
    .sort()
}

function given(name: string | undefined, namespace: string | undefined) {
  return { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) }
}

test('grants what a policy for serving certificates needs, and nothing else', () => {
  expect(granted(objectsOf({}), 'kube-system')).toEqual([
    'approve signers.certificates.k8s.io kubernetes.io/kubelet-serving',
    'create events in namespace default',
    'create leases.coordination.k8s.io in namespace kube-system',
    'get certificatesigningrequests.certificates.k8s.io',
    'get configmaps cluster-info in namespace kube-public',
    'get configmaps kube-root-ca.crt in namespace kube-system',
    'get configmaps kubeadm-config in namespace kube-system',
    'get leases.coordination.k8s.io kcert-controller in namespace kube-system',
    'get nodes',
    'list certificatesigningrequests.certificates.k8s.io',
    'list endpointslices.discovery.k8s.io in namespace default',
    'list nodes',
    'list servicecidrs.networking.k8s.io',
    'update certificatesigningrequests/approval.certificates.k8s.io',
    'update leases.coordination.k8s.io kcert-controller in namespace kube-system',
    'watch certificatesigningrequests.certificates.k8s.io',
  ])
})

test.each([
  ['builtin', ofBuiltin],
  ['a file', ofFile],
  ['no rule', { name: 'p', text: '', policies: [] }],
])('grants exactly the permissions that kcert controller check asks for: %s', (_, approve) => {
  const needed = neededRights({ approve }, 'own').flatMap(({ rights }) => rights)
  expect(granted(objectsOf({ approve, namespace: 'own' }), 'own')).toEqual(needed.map(rightText).sort())
  expect(new Set(needed.map(rightText)).size, 'no permission twice').toBe(needed.length)
})

test.each([false, true])(
  '--watch grants only get and list, and Secrets only with --watch-secrets: %s',
  (readSecrets) => {
    const objects = objectsOf({ approve: undefined, watch: { readSecrets }, namespace: 'own' })
    const rows = neededRights({ watch: { readSecrets } }, 'own')
    const own = granted(objects, 'own')
    expect(own).toEqual(rows.flatMap(({ rights }) => rights.map(rightText)).sort())
    const needed = rows.flatMap(({ part, rights }) => (part === 'watch' ? rights : []))
    expect(new Set(needed.map(rightText)).size, 'no permission twice').toBe(needed.length)
    const others = needed.filter(({ verb }) => verb !== 'get' && verb !== 'list').map(rightText)
    expect(others).toEqual(['create subjectaccessreviews.authorization.k8s.io'])
    expect(own.some((right) => right.includes('secrets'))).toBe(readSecrets)
    expect(own.join()).not.toContain('proxy')
  },
)

test('controllers in two namespaces have no object in common', () => {
  const idsOf = (namespace: string): string[] =>
    objectsOf({ namespace, watch: { readSecrets: true }, serviceMonitor: true, prometheusRule: true }).map(
      ({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`,
    )
  const [first, second] = [idsOf('kube-system'), idsOf('certs')]
  expect(first.filter((id) => second.includes(id))).toEqual([])
  expect(new Set(first).size).toBe(first.length)
})

test('--watch runs with its flags', () => {
  const objects = objectsOf({ watch: { readSecrets: true }, watchInterval: '10m', prometheusRule: true })
  expect(JSON.stringify(objects.find(({ kind }) => kind === 'Deployment'))).toContain(
    '"kcert","controller","--approve","kubelet-serving","--watch","--watch-interval","10m","--watch-secrets","--namespace"',
  )
  expect(objects.map(({ kind }) => kind)).toContain('PrometheusRule')
  expect(JSON.stringify(objects)).toContain('"limits":{"memory":"128Mi"}')
})

test('rules of a file: each signer by name, nothing for a denial, no served certificates with names: node', () => {
  const own = granted(objectsOf({ approve: ofFile }), 'kube-system')
  expect(own.filter((right) => right.startsWith('approve'))).toEqual([
    'approve signers.certificates.k8s.io b.example.com/*',
    'approve signers.certificates.k8s.io example.com/*',
    'approve signers.certificates.k8s.io example.com/serving',
    'approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client-kubelet',
    'approve signers.certificates.k8s.io kubernetes.io/kubelet-serving',
  ])
  expect(own).toContain('create subjectaccessreviews.authorization.k8s.io')
  expect(own.join()).not.toContain('kube-root-ca.crt')
})

test.each([
  ['example.com/serving', 'example.com/serving'],
  ['example.com/*', 'example.com/*'],
  ['example.com/s*', 'example.com/*'],
  ['*/*', '*'],
  ['*.example.com/serving', '*'],
  ['serving*', undefined],
  ['{namespace}.example.com/serving', undefined],
])('a pattern of signers needs the narrowest grant that covers it: %s', (pattern, grant) => {
  expect(signerGrant(pattern)).toBe(grant)
})

test('a policy makes only the lookups that it declares', async () => {
  const lookupOf: Readonly<Record<string, Lookup>> = {
    isAllowed: 'access',
    findNode: 'nodes',
    findNodesAt: 'nodes',
    readClusterAddresses: 'cluster-addresses',
    readServedCertificate: 'served-certificates',
  }
  // Without addresses, so that the names are also compared with the served certificate.
  const node = { name: 'node-1', addresses: [], isControlPlane: false }
  const lookedUp = async (policy: Policy): Promise<string[]> => {
    const made = new Set<string>()
    const bootstrap = { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] }
    for (const request of [clientRequest(), clientRequest(bootstrap), servingRequest()]) {
      const facts = fakeFacts({ nodes: [node], allowed: [], addresses: { apiServers: [], serviceCidrs: [] } })
      await decide(request, [policy], facts)
      for (const lookup of facts.lookups) made.add(lookupOf[lookup]!)
    }
    return [...made].sort()
  }
  for (const policy of [...builtinPolicies, ...ofFile.policies])
    expect([policy.name, await lookedUp(policy)]).toEqual([policy.name, [...policy.lookups].sort()])
})

test('pods meet the Pod Security Standard "restricted", and each replica has its own node', () => {
  const { spec } = objectsOf({ approve: ofFile }).find(({ kind }) => kind === 'Deployment') as unknown as {
    spec: { replicas: number; template: { spec: Record<string, unknown> & { containers: object[] } } }
  }
  const pod = spec.template.spec
  expect(pod.securityContext).toMatchObject({
    runAsNonRoot: true,
    runAsUser: 65_532,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(pod.containers).toHaveLength(1)
  expect(pod.containers[0]).toMatchObject({
    command: [
      ...['kcert', 'controller', '--approve', '/etc/kcert/policy.yaml', '--namespace', 'kube-system'],
      ...['--listen', '0.0.0.0:9465', '--log-format', 'json'],
    ],
    livenessProbe: { httpGet: { path: '/healthz' } },
    readinessProbe: { httpGet: { path: '/readyz' } },
    resources: { limits: { memory: '128Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  })
  expect(Object.keys(pod)).not.toEqual(expect.arrayContaining(['hostNetwork', 'hostPID', 'hostIPC']))
  expect(spec.replicas).toBe(2)
  expect(JSON.stringify(pod.tolerations)).toContain('node-role.kubernetes.io/control-plane')
  expect(JSON.stringify(pod.affinity)).toContain('requiredDuringScheduling')
})

test('a pod that is not ready blocks no drain', () => {
  const budget = objectsOf({}).find(({ kind }) => kind === 'PodDisruptionBudget')
  expect(budget).toMatchObject({ spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' } })
})

test('Prometheus keeps the namespace of a Secret, and does not replace it with that of the controller', () => {
  expect(watchMetricRows.some(([, { labels }]) => labels.includes('namespace'))).toBe(true)
  const monitor = objectsOf({ serviceMonitor: true }).find(({ kind }) => kind === 'ServiceMonitor')
  expect(monitor).toMatchObject({ spec: { endpoints: [{ honorLabels: true }] } })
})

test('has the environment and the limit that were measured, also with --watch', () => {
  const decision = readFileSync('docs/decisions/0017-controller.md', 'utf8')
  const [, limit] = /^The limit of the pods is (\d+) MiB, with and without `--watch`/m.exec(decision) ?? []
  for (const settings of [{}, { watch: { readSecrets: true } }]) {
    const { spec } = objectsOf(settings).find(({ kind }) => kind === 'Deployment') as unknown as {
      spec: { template: { spec: { containers: [{ env: object[]; resources: { limits: object } }] } } }
    }
    const [{ env, resources }] = spec.template.spec.containers
    expect(env).toEqual(Object.entries(memoryEnvironment).map(([name, value]) => ({ name, value })))
    expect(resources.limits).toEqual({ memory: `${limit}Mi` })
  }
  for (const [name, value] of Object.entries(memoryEnvironment))
    expect(decision).toContain(name === 'NODE_OPTIONS' ? `${name}='${value}'` : `${name}=${value}`)
})

interface NetworkPolicy {
  readonly spec: Readonly<Record<'ingress' | 'egress', readonly { readonly [field: string]: unknown[] }[]>>
}

const networkPolicyOf = (settings: Partial<ManifestSettings>): NetworkPolicy['spec'] =>
  (objectsOf(settings).find(({ kind }) => kind === 'NetworkPolicy') as unknown as NetworkPolicy).spec

test.each<Partial<ManifestSettings>>([{}, { approve: undefined, watch: { readSecrets: true } }])(
  'admits only the pods of Prometheus to the metrics',
  (parts) => {
    const prometheus = { prometheusNamespace: 'observability', prometheusPods: 'app=prom,tier=a' }
    expect(networkPolicyOf({ ...parts, ...prometheus }).ingress).toEqual([
      {
        from: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'observability' } },
            podSelector: { matchLabels: { app: 'prom', tier: 'a' } },
          },
        ],
        ports: [{ protocol: 'TCP', port: 'http' }],
      },
    ])
  },
)

test('--watch may connect to named ports only: API servers, kubelets, webhooks and DNS', () => {
  const { egress } = networkPolicyOf({ watch: { readSecrets: false }, webhookPorts: [15017] })
  const ports = egress.map(({ ports: some = [] }) => some.map((one) => (one as { port: number }).port))
  expect(ports).toEqual([[443, 6443], [10250], [15017], [53, 53]])
  expect(JSON.stringify(networkPolicyOf({}))).not.toContain('53')
})

test('egress reaches kubelets only if a rule reads the certificates that they serve', () => {
  const ports = (settings: Partial<ManifestSettings>): string =>
    JSON.stringify(objectsOf(settings).find(({ kind }) => kind === 'NetworkPolicy'))
  expect(ports({})).toContain('10250')
  expect(ports({ approve: ofFile, apiServerPorts: [16443] })).not.toContain('10250')
  expect(ports({ approve: ofFile, apiServerPorts: [16443] })).toContain('16443')
})

/** Objects in an order that does not depend on the program that printed them. */
function sorted(objects: readonly object[]): object[] {
  const keyOf = ({ kind, metadata }: KubernetesObject): string =>
    [kind, metadata.namespace, metadata.name].join('\0')
  return [...(objects as KubernetesObject[])].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

function documentsIn(text: string): object[] {
  return sorted(parseAllDocuments(text).flatMap((document) => (document.toJS() as object | null) ?? []))
}

test('the YAML is the data', () => {
  const objects = objectsOf({ approve: ofFile, serviceMonitor: true })
  expect(documentsIn(renderYamlDocuments(objects))).toEqual(sorted(objects))
})

const withKubectl = labKubectl === undefined ? 'skipped: the lab built no kubectl' : 'kubectl'
describe(`deploy/kustomize (${withKubectl})`, () => {
  test.skipIf(labKubectl === undefined).each(Object.entries(overlays))(
    'the overlay %s is the manifest of its parts',
    (name, enabled) => {
      const built = execFileSync(labKubectl!, ['kustomize', `deploy/kustomize/overlays/${name}`], {
        encoding: 'utf8',
      })
      expect(documentsIn(built)).toEqual(sorted(objectsOf({ approve: undefined, ...enabled })))
    },
  )

  test.skipIf(labKubectl === undefined)('the component adds the objects of the Prometheus operator', () => {
    const own = join(folder, 'own')
    mkdirSync(own)
    cpSync('deploy/kustomize', join(own, 'kustomize'), { recursive: true })
    const kustomization = {
      resources: ['kustomize/overlays/both'],
      components: ['kustomize/components/prometheus-operator'],
    }
    writeFileSync(join(own, 'kustomization.yaml'), JSON.stringify(kustomization))
    const built = execFileSync(labKubectl!, ['kustomize', own], { encoding: 'utf8' })
    const settings = { ...overlays.both, serviceMonitor: true, prometheusRule: true }
    expect(documentsIn(built)).toEqual(sorted(objectsOf(settings)))
  })
})

const isValid = new Ajv().compile(JSON.parse(readFileSync('deploy/helm/values.schema.json', 'utf8')))
const defaultValues = parse(readFileSync('deploy/helm/values.yaml', 'utf8')) as object
const validateValues = (values: object): boolean =>
  isValid({ ...defaultValues, image: exampleImage, ...values })
interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: { readonly affinity: object; readonly containers: readonly [object] }
    }
  }
}

const withHelm = labHelm === undefined ? 'skipped: the lab built no helm' : 'helm'
const withoutApproval = { approve: undefined, watch: { readSecrets: false } }
describe(`deploy/helm (${withHelm})`, () => {
  const helm = (...args: readonly string[]): string =>
    execFileSync(labHelm!, [...args, '--set', `image=${exampleImage}`], { encoding: 'utf8', stdio: 'pipe' })

  test.skipIf(labHelm === undefined).each<[string, Partial<ManifestSettings>, string[]]>([
    ['defaults', {}, []],
    ['builtin', { approve: ofBuiltin }, ['--set', 'approve=builtin']],
    [
      'a policy file',
      { approve: ofFile, namespace: 'default', replicas: 3, apiServerPorts: [16443], serviceMonitor: true },
      [
        ...['--set-file', `policy=${join(folder, 'policy.yaml')}`, '--namespace', 'default'],
        ...['--set', 'replicas=3,apiServerPorts={16443},serviceMonitor=true'],
      ],
    ],
    ['a policy for every signer', { approve: ofWide }, ['--set-file', `policy=${join(folder, 'wide.yaml')}`]],
    ['watch-only', withoutApproval, ['--set', 'approve=,watch=true']],
    ['both', { watch: { readSecrets: false } }, ['--set', 'watch=true']],
    [
      'every value of watch',
      {
        ...{ approve: ofFile, watch: { readSecrets: true }, watchInterval: '10m', namespace: 'own' },
        ...{ webhookPorts: [8443, 15017], prometheusNamespace: 'observability' },
        imagePullSecrets: ['registry', 'other.example'],
        ...{ prometheusPods: 'app=prom,example.com/tier=1', serviceMonitor: true, prometheusRule: true },
      },
      [
        ...['--set-file', `policy=${join(folder, 'policy.yaml')}`, '--namespace', 'own'],
        ...['--set', 'watch=true,watchSecrets=true,watchInterval=10m,webhookPorts={8443,15017}'],
        ...['--set', 'prometheusNamespace=observability,serviceMonitor=true,prometheusRule=true'],
        ...['--set', 'prometheusPods=app=prom\\,example.com/tier=1'],
        ...['--set', 'imagePullSecrets={registry,other.example}'],
      ],
    ],
  ])('renders the manifest: %s', (_, settings, flags) => {
    writeFileSync(join(folder, 'policy.yaml'), policyText)
    writeFileSync(join(folder, 'wide.yaml'), wideText)
    const namespace = settings.namespace ?? 'kube-system'
    const rendered = helm('template', 'kcert', 'deploy/helm', '-n', namespace, ...flags)
    expect(documentsIn(rendered)).toEqual(sorted(objectsOf(settings)))
  })

  test.skipIf(labHelm === undefined)('values replace the resources and the placement of the pods', () => {
    const placement = {
      resources: { requests: { cpu: '20m', memory: '100Mi' }, limits: { memory: '256Mi', cpu: 1 } },
      nodeSelector: { 'example.com/pool': 'system' },
      tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'system', effect: 'NoExecute' }],
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
      },
    }
    writeFileSync(join(folder, 'placement.json'), JSON.stringify(placement))
    const render = (...flags: readonly string[]): Deployment =>
      documentsIn(helm('template', 'kcert', 'deploy/helm', '-n', 'kube-system', ...flags)).find(
        (object) => (object as { kind?: string }).kind === 'Deployment',
      ) as Deployment
    const { resources, ...ofPod } = placement
    const { spec } = render('-f', join(folder, 'placement.json')).spec.template
    expect(spec).toMatchObject(ofPod)
    expect(Object.keys(spec.affinity)).toEqual(['nodeAffinity'])
    expect(spec.containers).toMatchObject([{ resources }])
    const bare = render('--set', 'tolerations=null,resources=null').spec.template.spec
    expect([bare, bare.containers[0]].filter((one) => 'tolerations' in one || 'resources' in one)).toEqual([])
  })

  test.skipIf(labHelm === undefined)('has no finding of helm lint, with all parts', () => {
    const parts = ['--set', 'watch=true,watchSecrets=true,serviceMonitor=true,prometheusRule=true']
    expect(helm('lint', '--strict', 'deploy/helm', ...parts)).toContain('0 chart(s) failed')
  })

  test.skipIf(labHelm === undefined)('helm refuses values that the schema rejects', () => {
    for (const wrong of ['watchSecret=true', 'watch=yes', 'approve='])
      expect(() => helm('template', 'kcert', 'deploy/helm', '--set', wrong)).toThrow(/don't meet the specif/)
  })

  test
    .skipIf(labHelm === undefined)
    .each(['policy.yaml', ' ', 'rules: []', 'kind: ApprovalPolicy\nrules: {a: b}', 'kind: ['])(
    'helm refuses a policy that is not the text of a file: %j',
    (policy) => {
      writeFileSync(join(folder, 'wrong.yaml'), policy)
      const flags = ['--set-file', `policy=${join(folder, 'wrong.yaml')}`]
      expect(() => helm('template', 'kcert', 'deploy/helm', ...flags)).toThrow(
        /use --set-file policy=policy.yaml/,
      )
    },
  )

  const digest = `sha256:${'0a'.repeat(32)}`
  test.each([
    ...[exampleImage, 'kcert:lab', 'localhost:5000/team/kcert', `r.example.com/kcert@${digest}`],
    ...[`r.example.com/kcert:0.1.0@${digest}`, 'r/k@sha256:abc', 'r/Kcert:1', 'r/k:1:2', 'r//k', 'r/k:', ''],
    ...['r/k:1\n', '-k'],
  ])('the schema accepts an image as kcert does: %j', (image) => {
    const isAccepted = ['kcert:lab', 'localhost', 'r.example.com', 'registry'].some((one) =>
      image.startsWith(one),
    )
    expect(validateValues({ image })).toBe(isAccepted)
    if (isAccepted) expect(() => checkImage(image)).not.toThrow()
    else expect(() => checkImage(image)).toThrow(/invalid --image/)
  })

  test('the schema accepts the default values with an image, and rejects unknown and malformed ones', () => {
    expect(validateValues({})).toBe(true)
    for (const wrong of [
      { image: '' },
      { image: 'a b' },
      { imagePullSecrets: 'registry' },
      { imagePullSecrets: ['a\nb: c'] },
      { image: exampleImage, approve: 'everything' },
      { image: exampleImage, replicas: 0 },
      { image: exampleImage, apiServerPorts: [0] },
      { image: exampleImage, replica: 2 },
      { image: exampleImage, approve: '' },
      { image: exampleImage, watch: 'true' },
      { image: exampleImage, watchSecrets: true },
      { image: exampleImage, watch: true, webhookPorts: [] },
      { image: exampleImage, watch: true, webhookPorts: ['443'] },
      { image: exampleImage, prometheusNamespace: 'a\n  b: c' },
      { image: exampleImage, prometheusNamespace: '' },
      { image: exampleImage, prometheusPods: '' },
      { image: exampleImage, prometheusPods: 'app=a\nb: c' },
      { image: exampleImage, prometheusPods: { app: 'a' } },
      { resources: { limits: { memory: '128 Mi' } } },
      { resources: { limit: { memory: '128Mi' } } },
      { resources: { limits: { nvidia: 1 } } },
      { nodeSelector: { pool: 1 } },
      { tolerations: [{ key: 'a', effect: 'NoRun' }] },
      { affinity: { podAntiafinity: {} } },
    ])
      expect([wrong, validateValues(wrong)]).toEqual([wrong, false])
    for (const right of [
      { watch: true, approve: '' },
      { resources: {}, nodeSelector: { pool: 'a' }, tolerations: [{ operator: 'Exists' }] },
      { affinity: { nodeAffinity: {} } },
      { watch: true, watchSecrets: true, prometheusRule: true },
    ])
      expect([right, validateValues(right)]).toEqual([right, true])
  })

  test.each(['9s', '10s', '59s', '1799s', '1800s', '1801s', '0m', '1m', '30m', '31m', '1h', '5'])(
    'the schema accepts a watchInterval as kcert does: %j',
    (watchInterval) => {
      const isAccepted = ['10s', '59s', '1799s', '1800s', '1m', '30m'].includes(watchInterval)
      expect(validateValues({ watchInterval })).toBe(isAccepted)
      if (isAccepted) expect(watchIntervalMs(watchInterval)).toBeGreaterThan(0)
      else expect(() => watchIntervalMs(watchInterval)).toThrow(KcertError)
    },
  )

  test.each(['a', '=b', 'a=b=c', 'a=b,', 'a b=c', 'a=b\n', '__proto__=a', '/a=b', 'a=-b', 'a-=b'])(
    'rejects labels of pods that Kubernetes would: %j',
    (prometheusPods) => {
      expect(validateValues({ prometheusPods })).toBe(false)
      expect(() => objectsOf({ prometheusPods })).toThrow(/invalid --prometheus-pods/)
    },
  )

  test('rejects a label of pods that is there twice', () => {
    expect(() => objectsOf({ prometheusPods: 'a=b,a=c' })).toThrow(/invalid --prometheus-pods/)
  })

  test('has the default values of kcert controller manifest', () => {
    const values = parse(readFileSync('deploy/helm/values.yaml', 'utf8')) as object
    expect(values).toMatchObject(manifestDefaults)
  })
})
