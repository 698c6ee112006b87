import { controllerName } from '../../csr/controller-events.ts'
import { metadataFaults } from '../../csr/object-metadata.ts'
import { argumentVector, commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { isSubdomain } from '../../x509/plain-names.ts'
import type { Enabled } from './approved-by.ts'
import { lookupsOf } from './policy-rights.ts'
import { prometheusRuleOf } from './prometheus-rule.ts'
import { rolesOf } from './rbac.ts'
import { neededRights } from './rights-table.ts'

// The objects that run the controller in a cluster, as data. `kcert controller manifest`, deploy/kustomize and deploy/helm have
// the same ones: scripts/docs/deploy.ts writes those from here.

export interface ManifestSettings extends Enabled {
  readonly image: string
  /** Names of Secrets with the credentials of a private registry. */
  readonly imagePullSecrets: readonly string[]
  /** Of the controller and of its Lease. */
  readonly namespace: string
  readonly replicas: number
  /** The ports on which API servers listen, for the NetworkPolicy. */
  readonly apiServerPorts: readonly number[]
  /** The ports on which webhooks and aggregated APIs listen, for --watch. */
  readonly webhookPorts: readonly number[]
  /** As for --watch-interval of `kcert controller`. */
  readonly watchInterval: string
  /** The pods that may read the metrics: their namespace, and labels as KEY=VALUE,KEY=VALUE. */
  readonly prometheusNamespace: string
  readonly prometheusPods: string
  /** Adds a ServiceMonitor of the Prometheus operator, and its Service. */
  readonly serviceMonitor: boolean
  /** Adds a PrometheusRule of the Prometheus operator, with the alerts. */
  readonly prometheusRule: boolean
}

/** 443 is the port of many URLs, and 9443 the default of controller-runtime. Kubelets and many webhooks listen on 10250. */
export const manifestDefaults = {
  imagePullSecrets: [],
  replicas: 2,
  apiServerPorts: [443, 6443],
  webhookPorts: [443, 8443, 9443],
  watchInterval: '5m',
  // The Prometheus operator, and the Helm charts of Prometheus, set this label.
  prometheusNamespace: 'monitoring',
  prometheusPods: 'app.kubernetes.io/name=prometheus',
  serviceMonitor: false,
  prometheusRule: false,
} as const satisfies Partial<ManifestSettings>

const policyFolder = '/etc/kcert'

const policyFile = 'policy.yaml'
const policyMap = `${controllerName}-policy`
const httpPort = 9465
const kubeletPort = 10_250
/** Measured with test/bench/controller-memory.ts (docs/decisions/0017-controller.md). */
export const memoryLimit = '128Mi'
export const memoryEnvironment: Readonly<Record<string, string>> = {
  // Without these, V8 lets the heap grow beyond the limit before it collects garbage.
  NODE_OPTIONS: '--max-old-space-size=64 --max-semi-space-size=1',
  // With its defaults, glibc keeps the memory of freed buffers.
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
}
const labels = { 'app.kubernetes.io/name': controllerName }
const selector = { matchLabels: labels }

/** HOST:PORT/NAME:TAG@DIGEST, as in https://github.com/distribution/reference. The kubelet rejects others only in the pod. */
const imageForm =
  /^[a-z0-9][a-z0-9._-]*(?::\d{1,5})?(?:\/[a-z0-9][a-z0-9._-]*)*(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/

/** Throws KCERT_USAGE for a value that no registry could serve. */
export function checkImage(image: string): void {
  if (imageForm.test(image)) return
  throw new KcertError('KCERT_USAGE', `invalid --image ${JSON.stringify(image)}`, {
    why: 'the form is REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST, with lowercase names and a digest of 64 hexadecimal digits',
    next: '--image registry.example.com/kcert:0.1.0',
  })
}

/** Returns the ports that a flag names. Throws KCERT_USAGE. */
export function portsOf(flag: string, texts: readonly string[]): readonly number[] {
  return texts.map((text) => {
    const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
    if (port >= 1 && port <= 65_535) return port
    throw new KcertError('KCERT_USAGE', `invalid ${flag} ${JSON.stringify(text)}`, {
      why: 'a port is a number from 1 to 65535',
      next: commandLine`${argumentVector([flag, '6443'])}`,
    })
  })
}

/** Throws KCERT_USAGE for a value that is not the name of a Secret. */
export function checkSecretName(name: string): void {
  if (isSubdomain(name)) return
  throw new KcertError('KCERT_USAGE', `invalid --image-pull-secret ${JSON.stringify(name)}`, {
    why: 'the name of a Secret has lowercase letters, digits, hyphens and dots',
    next: '--image-pull-secret registry',
  })
}

/** Returns the labels in KEY=VALUE,KEY=VALUE. Throws KCERT_USAGE. */
function labelsOf(text: string): Readonly<Record<string, string>> {
  const pairs = text.split(',').map((label) => label.split('='))
  const labels: Record<string, string> = Object.fromEntries(pairs)
  const faults = metadataFaults({ metadata: { labels } })
  const isEachOnce = Object.keys(labels).length === pairs.length
  if (faults.length === 0 && isEachOnce && pairs.every(({ length }) => length === 2)) return labels
  throw new KcertError('KCERT_USAGE', `invalid --prometheus-pods ${JSON.stringify(text)}`, {
    why: faults[0] ?? 'the form is KEY=VALUE or KEY=VALUE,KEY=VALUE, with each key once',
    next: '--prometheus-pods app.kubernetes.io/name=prometheus',
  })
}

/** Returns every object, in the order in which they are applied. */
export function manifestOf(settings: ManifestSettings): readonly object[] {
  const { approve, namespace, serviceMonitor, prometheusRule } = settings
  return [
    ...sharedObjects(settings, argumentsOf(settings)),
    ...partRoles(settings, namespace),
    ...(approve?.text === undefined
      ? []
      : [
          {
            apiVersion: 'v1',
            kind: 'ConfigMap',
            metadata: metadataOf(namespace, policyMap),
            data: { [policyFile]: approve.text },
          },
        ]),
    ...(serviceMonitor ? monitoring(namespace) : []),
    ...(prometheusRule ? [prometheusRuleOf(metadataOf(namespace))] : []),
  ]
}

function argumentsOf({ approve, watch, watchInterval }: ManifestSettings): readonly string[] {
  const policy = approve && (approve.text === undefined ? approve.name : `${policyFolder}/${policyFile}`)
  return [
    ...(policy === undefined ? [] : ['--approve', policy]),
    ...(watch === undefined ? [] : ['--watch', '--watch-interval', watchInterval]),
    ...(watch?.readSecrets ? ['--watch-secrets'] : []),
  ]
}

/** Returns the objects of every controller. `enabled` are the flags that enable its parts. */
export function sharedObjects(settings: ManifestSettings, enabled: readonly string[]): readonly object[] {
  const { namespace } = settings
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: metadataOf(namespace),
      automountServiceAccountToken: false,
    },
    ...rolesOf('election', neededRights(settings, namespace), namespace),
    deployment(settings, enabled),
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: metadataOf(namespace),
      // A pod that is not ready, because of a malformed policy for example, must not block the drain of its node.
      spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector },
    },
    networkPolicy(settings),
  ]
}

/** Returns the roles of the enabled parts. */
export function partRoles(enabled: Enabled, namespace: string): readonly object[] {
  const needed = neededRights(enabled, namespace)
  return [...rolesOf('approve', needed, namespace), ...rolesOf('watch', needed, namespace)]
}

function metadataOf(namespace: string, name: string = controllerName) {
  return { name, namespace, labels }
}

function deployment(settings: ManifestSettings, enabled: readonly string[]): object {
  const { approve, image, imagePullSecrets, namespace, replicas } = settings
  const probe = (path: string, more: object) => ({ httpGet: { path, port: 'http' }, ...more })
  const hasPolicy = approve?.text !== undefined
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataOf(namespace),
    spec: {
      replicas,
      // A new pod needs the node of an old one.
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      selector,
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: controllerName,
          automountServiceAccountToken: true,
          ...(imagePullSecrets.length > 0 && {
            imagePullSecrets: imagePullSecrets.map((name) => ({ name })),
          }),
          // A cluster of kubeadm may have no other node for a replica.
          tolerations: [
            { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
          ],
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: 'kubernetes.io/hostname', labelSelector: selector },
              ],
            },
          },
          // The Pod Security Standard "restricted".
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 65_532,
            runAsGroup: 65_532,
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [
            {
              name: 'kcert',
              image,
              command: [
                ...['kcert', 'controller', ...enabled, '--namespace', namespace],
                ...['--listen', `0.0.0.0:${httpPort}`, '--log-format', 'json'],
              ],
              env: Object.entries(memoryEnvironment).map(([name, value]) => ({ name, value })),
              ports: [{ name: 'http', containerPort: httpPort, protocol: 'TCP' }],
              livenessProbe: probe('/healthz', { periodSeconds: 20, failureThreshold: 3 }),
              readinessProbe: probe('/readyz', { periodSeconds: 10 }),
              resources: { requests: { cpu: '10m', memory: '80Mi' }, limits: { memory: memoryLimit } },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
              ...(hasPolicy && {
                volumeMounts: [{ name: 'policy', mountPath: policyFolder, readOnly: true }],
              }),
            },
          ],
          ...(hasPolicy && { volumes: [{ name: 'policy', configMap: { name: policyMap } }] }),
        },
      },
    },
  }
}

/**
 * Lets Prometheus reach the metrics, and the controller reach API servers, kubelets, webhooks and, for their URLs, DNS. The node of a pod
 * reaches its probes in any case. The addresses of nodes and URLs are not known here, so only ports limit these connections.
 */
export function networkPolicy(settings: ManifestSettings): object {
  const { approve, watch, apiServerPorts, webhookPorts, namespace } = settings
  const { prometheusNamespace, prometheusPods } = settings
  const tcp = (port: number | string) => ({ protocol: 'TCP', port })
  const podsIn = (name: string, matchLabels: object) => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
    podSelector: { matchLabels },
  })
  const comparesNames = lookupsOf(approve?.policies ?? []).includes('served-certificates')
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(namespace),
    spec: {
      podSelector: selector,
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [podsIn(prometheusNamespace, labelsOf(prometheusPods))], ports: [tcp('http')] }],
      egress: [
        { ports: apiServerPorts.map(tcp) },
        ...(comparesNames || watch !== undefined ? [{ ports: [tcp(kubeletPort)] }] : []),
        ...(watch === undefined
          ? []
          : [
              { ports: webhookPorts.map(tcp) },
              // Not only to pods of CoreDNS: NodeLocal DNSCache runs in the network of its node.
              { ports: [{ protocol: 'UDP', port: 53 }, tcp(53)] },
            ]),
      ],
    },
  }
}

/** Returns the objects by which the Prometheus operator finds the metrics. */
function monitoring(namespace: string): readonly object[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: metadataOf(namespace),
      spec: {
        clusterIP: 'None',
        selector: labels,
        ports: [{ name: 'http', port: httpPort, targetPort: 'http', protocol: 'TCP' }],
      },
    },
    {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'ServiceMonitor',
      metadata: metadataOf(namespace),
      // Without honorLabels, the label namespace of an alert is that of the controller, not of the Secret.
      spec: { selector, endpoints: [{ port: 'http', path: '/metrics', honorLabels: true }] },
    },
  ]
}
