import { type Fitted, fitted, metadataFields, pairs, type Shape, texts } from '../csr/json-shape.ts'
import type { ApiObject } from './malformed.ts'
import type { Resource } from './resource.ts'

// The kinds of objects that kcert reads: their API paths, and the fields that kcert reads with types. Fields are checked once,
// when a response arrives. All other code relies on their types. A field that a server omits is absent, which is not an error.

type Fields = Readonly<Record<string, Shape>>

/** Fields, with the names of the required ones. The names are not inferred from the expected result type. */
const fieldsOf = <const Own extends Fields, Needed extends keyof Own & string = never>(
  fields: Own,
  ...needs: readonly Needed[]
): { readonly fields: Own; readonly needs: readonly NoInfer<Needed>[] } => ({ fields, needs })
const each = <const Own extends Fields, Needed extends keyof Own & string = never>(
  fields: Own,
  ...needs: readonly Needed[]
): { readonly each: { readonly fields: Own; readonly needs: readonly NoInfer<Needed>[] } } => ({
  each: { fields, needs },
})
const nothing: readonly never[] = []
const spec = <const Own extends Fields>(fields: Own) => fieldsOf({ spec: { fields, needs: nothing } })

const metadata = fieldsOf(
  {
    ...metadataFields,
    namespace: 'text',
    finalizers: texts,
    ownerReferences: each({ kind: 'text', name: 'text', controller: 'boolean' }, 'kind', 'name'),
    managedFields: each({ manager: 'text', time: 'text', subresource: 'text', fieldsV1: fieldsOf({}) }),
  },
  'name',
)
const conditions = each(
  { type: 'text', status: 'text', reason: 'text', message: 'text', lastTransitionTime: 'text' },
  'type',
  'status',
)
const containers = each(
  { name: 'text', image: 'text', command: texts, args: texts, volumeMounts: each({ name: 'text' }, 'name') },
  'name',
)
const startedAt = fieldsOf({ startedAt: 'text' })
const waiting = fieldsOf({ reason: 'text', message: 'text' })
const terminated = fieldsOf({ startedAt: 'text', message: 'text' })
const state = fieldsOf({ running: startedAt, terminated, waiting })
/** A containerID is "containerd://0123…". */
const containerStatuses = each({ name: 'text', containerID: 'text', state, lastState: state }, 'name')
const ports = each({ name: 'text', port: 'number' })
/** caBundle, and the server that it verifies. */
const clientConfig = fieldsOf({
  caBundle: 'text',
  url: 'text',
  service: fieldsOf({ namespace: 'text', name: 'text', port: 'number' }),
})
const webhooks = fieldsOf({ webhooks: each({ name: 'text', clientConfig }, 'name') })
const strategy = fieldsOf({ type: 'text' })
const workload = spec({
  paused: 'boolean',
  strategy,
  updateStrategy: strategy,
  selector: fieldsOf({ matchLabels: pairs }),
  template: fieldsOf({
    metadata: fieldsOf({ labels: pairs, annotations: pairs }),
    spec: fieldsOf({ containers }),
  }),
})
const podVolumes = each(
  {
    name: 'text',
    secret: fieldsOf({ secretName: 'text' }),
    projected: fieldsOf({
      sources: each({
        configMap: fieldsOf({ name: 'text', items: each({ key: 'text', path: 'text' }, 'key', 'path') }),
        clusterTrustBundle: fieldsOf(
          { name: 'text', signerName: 'text', labelSelector: fieldsOf({}), path: 'text' },
          'path',
        ),
      }),
    }),
  },
  'name',
)

const shapes = {
  apiservices: fieldsOf({ spec: clientConfig, status: fieldsOf({ conditions }) }),
  clusterrolebindings: fieldsOf({
    roleRef: fieldsOf({ name: 'text' }),
    subjects: each({ kind: 'text', name: 'text', namespace: 'text' }),
  }),
  clusterroles: fieldsOf({
    rules: each({ apiGroups: texts, resources: texts, resourceNames: texts, verbs: texts }),
  }),
  clustertrustbundles: spec({ signerName: 'text', trustBundle: 'text' }),
  configmaps: fieldsOf({ data: pairs, binaryData: pairs }),
  csidrivers: spec({ tokenRequests: each({ audience: 'text', expirationSeconds: 'number' }) }),
  customresourcedefinitions: spec({ conversion: fieldsOf({ webhook: fieldsOf({ clientConfig }) }) }),
  daemonsets: workload,
  deployments: workload,
  endpoints: fieldsOf({ subsets: each({ addresses: each({ ip: 'text' }) }) }),
  endpointslices: fieldsOf({
    addressType: 'text',
    endpoints: each({
      addresses: texts,
      conditions: fieldsOf({ ready: 'boolean' }),
      targetRef: fieldsOf({ kind: 'text', namespace: 'text', name: 'text' }),
    }),
    ports,
  }),
  jobs: fieldsOf({ status: fieldsOf({ conditions }) }),
  leases: spec({
    holderIdentity: 'text',
    leaseDurationSeconds: 'number',
    acquireTime: 'text',
    renewTime: 'text',
    leaseTransitions: 'number',
  }),
  mutatingwebhookconfigurations: webhooks,
  namespaces: fieldsOf({ status: fieldsOf({ phase: 'text' }) }),
  nodes: fieldsOf({
    spec: fieldsOf({ providerID: 'text' }),
    status: fieldsOf({
      addresses: each({ type: 'text', address: 'text' }, 'type', 'address'),
      conditions,
      nodeInfo: fieldsOf({ kubeletVersion: 'text', machineID: 'text' }),
      daemonEndpoints: fieldsOf({ kubeletEndpoint: fieldsOf({ Port: 'number' }) }),
    }),
  }),
  podcertificaterequests: fieldsOf(
    {
      spec: fieldsOf(
        {
          signerName: 'text',
          podName: 'text',
          serviceAccountName: 'text',
          nodeName: 'text',
          maxExpirationSeconds: 'number',
        },
        ...(['signerName', 'podName', 'serviceAccountName', 'nodeName'] as const),
      ),
      status: fieldsOf({ conditions, certificateChain: 'text', beginRefreshAt: 'text' }),
    },
    'spec',
  ),
  pods: fieldsOf({
    spec: fieldsOf({
      nodeName: 'text',
      hostNetwork: 'boolean',
      containers,
      initContainers: containers,
      volumes: podVolumes,
    }),
    status: fieldsOf({
      phase: 'text',
      reason: 'text',
      message: 'text',
      podIP: 'text',
      conditions,
      containerStatuses,
      initContainerStatuses: containerStatuses,
    }),
  }),
  secrets: fieldsOf({ type: 'text', data: pairs }),
  servicecidrs: spec({ cidrs: texts }),
  services: spec({ clusterIP: 'text', selector: pairs, ports }),
  statefulsets: workload,
  validatingwebhookconfigurations: webhooks,
}

const shapeOf: Readonly<Record<string, Shape | undefined>> = shapes

/** Returns the object with the fields that kcert reads, without nulls; or the first field of a wrong type. */
export function shaped(
  value: ApiObject,
  resource: string,
): { readonly object: ApiObject } | { readonly fault: string } {
  const faults: string[] = []
  const own = shapeOf[resource]
  const whole = own === undefined ? value : (fitted(value, own, '', faults) as ApiObject)
  const object = { ...whole, metadata: fitted(value.metadata, metadata, 'metadata', faults) }
  return faults[0] === undefined ? { object } : { fault: faults[0] }
}

export type Metadata = Fitted<typeof metadata>

export interface Named {
  readonly metadata: Metadata
}

/** An object from an API server, of the kind with this plural name. */
export type ObjectOf<Plural extends string> = ApiObject &
  Named &
  (Plural extends keyof typeof shapes ? Fitted<(typeof shapes)[Plural]> : unknown)

export type ClientConfig = Fitted<typeof clientConfig>
export type NodeObject = ObjectOf<'nodes'>
export type PodObject = ObjectOf<'pods'>

const core = { group: '', version: 'v1' } as const
const apps = { group: 'apps', version: 'v1' } as const
const admission = { group: 'admissionregistration.k8s.io', version: 'v1' } as const
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const
const certificates = { group: 'certificates.k8s.io', version: 'v1' } as const

export const resources = {
  nodes: { ...core, resource: 'nodes' },
  namespaces: { ...core, resource: 'namespaces' },
  configMaps: { ...core, resource: 'configmaps' },
  secrets: { ...core, resource: 'secrets' },
  serviceAccounts: { ...core, resource: 'serviceaccounts' },
  pods: { ...core, resource: 'pods' },
  services: { ...core, resource: 'services' },
  endpoints: { ...core, resource: 'endpoints' },
  leases: { group: 'coordination.k8s.io', version: 'v1', resource: 'leases', namespace: 'kube-system' },
  deployments: { ...apps, resource: 'deployments' },
  daemonSets: { ...apps, resource: 'daemonsets' },
  statefulSets: { ...apps, resource: 'statefulsets' },
  jobs: { group: 'batch', version: 'v1', resource: 'jobs' },
  endpointSlices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
  serviceCidrs: { group: 'networking.k8s.io', version: 'v1', resource: 'servicecidrs' },
  apiServices: { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' },
  validating: { ...admission, resource: 'validatingwebhookconfigurations' },
  mutating: { ...admission, resource: 'mutatingwebhookconfigurations' },
  admissionPolicies: { ...admission, resource: 'validatingadmissionpolicies' },
  admissionPolicyBindings: { ...admission, resource: 'validatingadmissionpolicybindings' },
  definitions: { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' },
  clusterRoles: { ...rbac, resource: 'clusterroles' },
  clusterRoleBindings: { ...rbac, resource: 'clusterrolebindings' },
  csiDrivers: { group: 'storage.k8s.io', version: 'v1', resource: 'csidrivers' },
  requests: { ...certificates, resource: 'certificatesigningrequests' },
  /** v1 since 1.37. Before, only where an administrator enabled v1beta1 (1.33) or v1alpha1 (1.32). */
  clusterTrustBundles: {
    ...certificates,
    olderVersions: ['v1beta1', 'v1alpha1'],
    resource: 'clustertrustbundles',
  },
  /** v1 since 1.37. v1beta1 where an administrator enabled it in 1.35 and 1.36. */
  podCertificateRequests: { ...certificates, olderVersions: ['v1beta1'], resource: 'podcertificaterequests' },
} as const satisfies Record<string, Resource>
