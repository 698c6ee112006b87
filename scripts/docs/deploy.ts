import { readFileSync } from 'node:fs'
import type { ApprovedBy, Enabled } from '../../src/app/controller/approved-by.ts'
import {
  type ManifestSettings,
  manifestDefaults,
  manifestOf,
  networkPolicy,
  partRoles,
  sharedObjects,
} from '../../src/app/controller/manifest.ts'
import { alertGroups, prometheusRuleOf } from '../../src/app/controller/prometheus-rule.ts'
import { byNamespace } from '../../src/app/controller/rbac.ts'
import { rightsTable, type Switch } from '../../src/app/controller/rights-table.ts'
import { builtinPoliciesOf } from '../../src/app/csr/policies.ts'
import { rulesOf } from '../../src/cluster/rights.ts'
import { builtinPolicies } from '../../src/csr/approval/policy-file.ts'
import { controllerName } from '../../src/csr/controller-events.ts'
import { watchMetricRows } from '../../src/output/watch-metrics.ts'
import { renderYaml, renderYamlDocuments } from '../../src/output/yaml.ts'

// deploy/kustomize and the generated files of deploy/helm, from the objects of `kcert controller manifest`.

const { version, description } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly version: string
  readonly description: string
}
const note = '# Written by `npm run docs` from src/app/controller/manifest.ts.\n'
const metricsNote = '# Written by `npm run docs` from src/output/watch-metrics.ts.\n'

/** Returns the generated files of deploy/. */
export function deployFiles(): [path: string, text: string][] {
  const withNote = ([path, text]: [string, string]): [string, string] => [`deploy/${path}`, `${note}${text}`]
  return [
    ...[...kustomizeFiles(), ...helmFiles()].map(withNote),
    ...prometheusFiles().map(([path, text]): [string, string] => [`deploy/${path}`, `${metricsNote}${text}`]),
    // JSON has no comments.
    ['deploy/grafana/dashboard.json', `${JSON.stringify(dashboard(), null, 2)}\n`],
  ]
}

/** What the overlay approve-only approves. */
export const overlayPolicy = 'kubelet-serving'
/** Replace it with `images` of a kustomization. */
export const exampleImage = `registry.example.com/kcert:${version}`
const namespace = 'kube-system'
const approving = { approve: { name: overlayPolicy, policies: builtinPoliciesOf(overlayPolicy) ?? [] } }

/** The overlays of deploy/kustomize, and what each enables. */
export const overlays: Readonly<Record<string, Enabled>> = {
  'approve-only': approving,
  'watch-only': { watch: { readSecrets: false } },
  both: { ...approving, watch: { readSecrets: false } },
}

function kustomizeFiles(): [path: string, text: string][] {
  const base: ManifestSettings = { ...manifestDefaults, image: exampleImage, namespace }
  const kustomization = (fields: object): string =>
    renderYaml({ apiVersion: 'kustomize.config.k8s.io/v1beta1', kind: 'Kustomization', ...fields })
  return [
    ['kustomize/base/kustomization.yaml', kustomization({ resources: ['objects.yaml'] })],
    ['kustomize/base/objects.yaml', renderYamlDocuments(sharedObjects(base, []))],
    [
      'kustomize/components/prometheus-operator/kustomization.yaml',
      kustomization({
        apiVersion: 'kustomize.config.k8s.io/v1alpha1',
        kind: 'Component',
        resources: ['objects.yaml'],
      }),
    ],
    [
      'kustomize/components/prometheus-operator/objects.yaml',
      renderYamlDocuments(
        manifestOf({ ...base, serviceMonitor: true, prometheusRule: true }).slice(manifestOf(base).length),
      ),
    ],
    ...Object.entries(overlays).flatMap(([name, enabled]): [string, string][] => {
      const folder = `kustomize/overlays/${name}`
      const overlay = { ...base, ...enabled }
      return [
        [
          `${folder}/kustomization.yaml`,
          kustomization({
            resources: ['../../base', 'rbac.yaml'],
            patches: [{ path: 'deployment.yaml' }, { path: 'network-policy.yaml' }],
          }),
        ],
        [`${folder}/rbac.yaml`, renderYamlDocuments(partRoles(enabled, namespace))],
        [`${folder}/deployment.yaml`, renderYaml(commandPatch(manifestOf(overlay)))],
        [`${folder}/network-policy.yaml`, renderYaml(networkPolicy(overlay))],
      ]
    }),
  ]
}

/** The alerts of --watch as a file of rules and for the Prometheus operator, and a dashboard for Grafana. */
function prometheusFiles(): [path: string, text: string][] {
  const metadata = { name: controllerName, namespace }
  return [
    ['prometheus/rules.yaml', renderYaml({ groups: alertGroups() })],
    ['prometheus/prometheus-rule.yaml', renderYaml(prometheusRuleOf(metadata))],
  ]
}

const [panelWidth, panelHeight] = [12, 8]

function dashboard(): object {
  const shown = watchMetricRows.flatMap(([, { panel }]) => panel ?? [])
  return {
    title: 'kcert',
    uid: 'kcert-controller',
    schemaVersion: 39,
    tags: ['kubernetes', 'certificates'],
    refresh: '5m',
    time: { from: 'now-7d', to: 'now' },
    templating: {
      list: [{ name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' }],
    },
    panels: shown.map(({ title, expr, unit }, index) => ({
      id: index + 1,
      type: 'timeseries',
      title,
      gridPos: {
        ...{ w: panelWidth, h: panelHeight },
        x: (index % 2) * panelWidth,
        y: Math.floor(index / 2) * panelHeight,
      },
      datasource: { type: 'prometheus', uid: '$datasource' },
      fieldConfig: { defaults: { unit }, overrides: [] },
      targets: [{ refId: 'A', expr }],
    })),
  }
}

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

interface Deployment extends KubernetesObject {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Readonly<Record<'name' | 'command', unknown>>[]
      }
    }
  }
}

/** Returns the strategic merge patch that sets the command of the container. */
function commandPatch(objects: readonly object[]): object {
  const { apiVersion, kind, metadata, spec } = objects.find(
    (object) => (object as KubernetesObject).kind === 'Deployment',
  ) as Deployment
  const containers = spec.template.spec.containers.map(({ name, command }) => ({ name, command }))
  return {
    ...{ apiVersion, kind, metadata: { name: metadata.name, namespace: metadata.namespace } },
    spec: { template: { spec: { containers } } },
  }
}

// Values of the objects that Helm replaces.
const tokens = {
  image: '{{ .Values.image | quote }}',
  pullSecret: '{{ . | quote }}',
  namespace: '{{ .Release.Namespace | quote }}',
  replicas: '{{ .Values.replicas }}',
  port: '{{ . }}',
  webhookPort: '{{ int . }}',
  policy: '{{ .Values.policy | toJson }}',
  watchInterval: '{{ .Values.watchInterval | quote }}',
  prometheusNamespace: '{{ .Values.prometheusNamespace | quote }}',
}
const token = (name: keyof typeof tokens): string => `@${name}@`
/** Texts of the objects that depend on values. */
const choices: readonly (readonly [text: string, action: string])[] = [
  [
    '- /etc/kcert/policy.yaml\n',
    '- {{ if .Values.policy }}/etc/kcert/policy.yaml{{ else }}{{ .Values.approve | quote }}{{ end }}\n',
  ],
  [
    'prometheus-pods: token\n',
    `{{- range splitList "," .Values.prometheusPods }}
                    {{ splitList "=" . | first | quote }}: {{ splitList "=" . | last | quote }}
{{- end }}
`,
  ],
]

/** Blocks of the pod template that values replace: the first line, the lines below it, and what replaces them. */
const podBlocks: readonly (readonly [block: RegExp, template: (lines: string) => string])[] = [
  [
    /^ {6}tolerations:\n(?: {8}.*\n)+/m,
    () => `${fromValues(6, 'nodeSelector')}${fromValues(6, 'tolerations')}`,
  ],
  [
    /^ {6}affinity:\n(?: {8}.*\n)+/m,
    (lines) =>
      `${fromValues(6, 'affinity').replace(/\{\{- end \}\}\n$/, '')}{{- else }}\n${lines}{{- end }}\n`,
  ],
  [/^ {10}resources:\n(?: {12}.*\n)+/m, () => fromValues(10, 'resources')],
]

/** Returns a field of an object with the YAML of a value, if the value is not empty. */
function fromValues(spaces: number, name: string): string {
  return [
    `{{- with .Values.${name} }}\n`,
    `${' '.repeat(spaces)}${name}:\n{{ toYaml . | indent ${spaces + 2} }}\n`,
    '{{- end }}\n',
  ].join('')
}

/** Parts of the objects that only some values need: a block of lines, and the action that opens it. */
const conditions: readonly (readonly [lines: RegExp, action: string])[] = [
  [/^ +- protocol: TCP\n +port: \{\{ \. \}\}\n/m, 'range .Values.apiServerPorts'],
  [/^ +- protocol: TCP\n +port: \{\{ int \. \}\}\n/m, 'range .Values.webhookPorts'],
  [
    /^ +- ports:\n +- protocol: TCP\n +port: 10250\n/m,
    'if or .Values.watch (has "served-certificates" (include "kcert.policy" . | fromJson).lookups)',
  ],
  [/^ +- name: \{\{ \. \| quote \}\}\n/m, 'range .Values.imagePullSecrets'],
  [/^ +imagePullSecrets:\n.*\n.*\n\{\{- end \}\}\n/m, 'if .Values.imagePullSecrets'],
  [
    /^ +- ports:\n\{\{- range .Values.webhookPorts \}\}\n(?:.*\n)*?(?: +port: 53\n(?:.*\n)*?){2}/m,
    'if .Values.watch',
  ],
  [/^ +- "--approve"\n.*\n/m, 'if or .Values.policy .Values.approve'],
  [/^ +- "--watch"\n.*\n.*\n/m, 'if .Values.watch'],
  [/^ +- "--watch-secrets"\n/m, 'if .Values.watchSecrets'],
  [/^ +volumeMounts:\n +- name: .*\n(?: +(?:mountPath|readOnly): .*\n)+/m, 'if .Values.policy'],
  [/^ +volumes:\n +- name: .*\n +configMap:\n +name: .*\n/m, 'if .Values.policy'],
  [/^---\n(?:(?!---\n).*\n)*kind: ConfigMap\n(?:(?!---\n).*\n)*/m, 'if .Values.policy'],
  [/^---\n.*\nkind: Service\n(?:.*\n)*/m, 'if .Values.serviceMonitor'],
]

function helmFiles(): [path: string, text: string][] {
  const chart = {
    ...{ apiVersion: 'v2', name: 'kcert', description, type: 'application', version, appVersion: version },
  }
  return [
    ['helm/Chart.yaml', renderYaml(chart)],
    ['helm/files/rights.yaml', renderYaml(rightsForHelm())],
    ['helm/files/alerts.yaml', renderYaml({ groups: alertGroups() })],
    ['helm/templates/objects.yaml', objectsTemplate()],
  ]
}

function rightsForHelm(): object {
  const table = rightsTable('', [])
  const part = (one: Switch) => {
    const rights = table.flatMap(({ when, rights: some }) => (when === one ? some : []))
    const rules = byNamespace(rights).map(([where, some]) => [where, rulesOf(some)] as const)
    return {
      cluster: rules.find(([where]) => where === undefined)?.[1] ?? [],
      namespaces: Object.fromEntries(rules.flatMap(([where, some]) => (where ? [[where, some]] : []))),
    }
  }
  const lookups = table.flatMap(({ when, part: of }) => (of === 'approve' && when !== of ? [when] : []))
  return {
    ...Object.fromEntries((['approve', 'watch', 'watchSecrets'] as const).map((one) => [one, part(one)])),
    lookups: lookups.map((name) => ({ name, ...part(name) })),
  }
}

function objectsTemplate(): string {
  const approve: ApprovedBy = { name: '', text: token('policy'), policies: builtinPolicies }
  const watch = { readSecrets: true }
  const roles = partRoles({ approve, watch }, token('namespace')).map((object) => JSON.stringify(object))
  const objects = manifestOf({
    ...{ approve, watch, image: token('image'), imagePullSecrets: [token('pullSecret')] },
    namespace: token('namespace'),
    // Their places in the text are found by these strings.
    replicas: token('replicas') as unknown as number,
    apiServerPorts: [token('port') as unknown as number],
    webhookPorts: [token('webhookPort') as unknown as number],
    watchInterval: token('watchInterval'),
    ...{ prometheusNamespace: token('prometheusNamespace'), prometheusPods: 'prometheus-pods=token' },
    ...{ serviceMonitor: true, prometheusRule: false },
  }).filter((object) => !roles.includes(JSON.stringify(object)))
  let text = `---\n${renderYamlDocuments(objects)}`
  for (const [name, action] of Object.entries(tokens)) text = replaced(text, `"@${name}@"`, action)
  for (const [from, action] of choices) text = replaced(text, from, action)
  for (const [block, template] of podBlocks) {
    if (!block.test(text)) throw new Error(`no object has ${block}`)
    text = text.replace(block, template)
  }
  for (const [lines, action] of conditions) {
    const [block] = lines.exec(text) ?? []
    if (block === undefined) throw new Error(`no object has ${lines}`)
    text = text.replace(lines, () => `{{- ${action} }}\n${block}{{- end }}\n`)
  }
  return text
}

function replaced(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`no object has ${from}`)
  return text.replaceAll(from, () => to)
}
