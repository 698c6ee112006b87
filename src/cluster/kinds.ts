import type { ApiObject } from '../cluster/malformed.ts'
import type { ObjectsApi, Selection } from '../cluster/objects.ts'
import { listReadable } from '../cluster/readable.ts'
import type { Resource } from '../cluster/resource.ts'

// The kinds that an observer reads, and what it reads of them. What a server leaves out is absent, not an error.

export interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly {
    readonly kind: string
    readonly name: string
    readonly controller?: boolean
  }[]
  readonly managedFields?: readonly {
    readonly manager?: string
    readonly time?: string
    readonly subresource?: string
    readonly fieldsV1?: Readonly<Record<string, unknown>>
  }[]
}

export interface Named {
  readonly metadata: Metadata
}

export interface ConfigMap extends Named {
  readonly data?: Readonly<Record<string, string>>
}

export interface Secret extends Named {
  readonly type?: string
  readonly data?: Readonly<Record<string, string>>
}

interface Condition {
  readonly type: string
  readonly status: string
}

export interface NodeObject extends Named {
  readonly spec?: { readonly providerID?: string }
  readonly status?: {
    readonly addresses?: readonly { readonly type: string; readonly address: string }[]
    readonly conditions?: readonly Condition[]
    readonly nodeInfo?: { readonly kubeletVersion?: string; readonly machineID?: string }
  }
}

export interface LeaseObject extends Named {
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly renewTime?: string
  }
}

interface Container {
  readonly name: string
  readonly image?: string
  readonly restartPolicy?: string
  readonly volumeMounts?: readonly { readonly name: string }[]
}

interface ContainerState {
  readonly running?: { readonly startedAt?: string }
  readonly terminated?: { readonly startedAt?: string }
}

interface ContainerStatus {
  readonly name: string
  /** "containerd://0123…" */
  readonly containerID?: string
  readonly state?: ContainerState
  readonly lastState?: ContainerState
}

export interface PodObject extends Named {
  readonly spec?: {
    readonly nodeName?: string
    readonly hostNetwork?: boolean
    readonly containers?: readonly Container[]
    readonly initContainers?: readonly Container[]
    readonly volumes?: readonly {
      readonly name: string
      readonly secret?: { readonly secretName?: string }
      readonly projected?: {
        readonly sources?: readonly {
          readonly configMap?: {
            readonly name?: string
            readonly items?: readonly { readonly key: string; readonly path: string }[]
          }
          readonly clusterTrustBundle?: {
            readonly name?: string
            readonly signerName?: string
            readonly labelSelector?: object
            readonly path: string
          }
        }[]
      }
    }[]
  }
  readonly status?: {
    readonly phase?: string
    readonly podIP?: string
    readonly conditions?: readonly (Condition & { readonly lastTransitionTime?: string })[]
    readonly containerStatuses?: readonly ContainerStatus[]
    readonly initContainerStatuses?: readonly ContainerStatus[]
  }
}

export interface WorkloadObject extends Named {
  readonly spec?: {
    readonly updateStrategy?: { readonly type?: string }
    readonly template?: { readonly metadata?: Partial<Metadata> }
  }
}

export interface ServiceObject extends Named {
  readonly spec?: {
    readonly clusterIP?: string
    readonly selector?: Readonly<Record<string, string>>
    readonly ports?: readonly { readonly name?: string; readonly port: number }[]
  }
}

export interface EndpointSlice extends Named {
  readonly endpoints?: readonly {
    readonly addresses?: readonly string[]
    readonly conditions?: { readonly ready?: boolean }
    readonly targetRef?: { readonly kind?: string; readonly namespace?: string; readonly name?: string }
  }[]
  readonly ports?: readonly { readonly name?: string; readonly port?: number }[]
}

/** caBundle, and who is verified by it. */
export interface ClientConfig {
  readonly caBundle?: string
  readonly url?: string
  readonly service?: { readonly namespace: string; readonly name: string; readonly port?: number }
}

export interface ApiServiceObject extends Named {
  readonly spec?: ClientConfig
  readonly status?: { readonly conditions?: readonly Condition[] }
}

export interface WebhookConfiguration extends Named {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig?: ClientConfig }[]
}

export interface CustomResourceDefinition extends Named {
  readonly spec?: { readonly conversion?: { readonly webhook?: { readonly clientConfig?: ClientConfig } } }
}

export interface ClusterTrustBundle extends Named {
  readonly spec?: { readonly signerName?: string; readonly trustBundle?: string }
}

/** Signs what API servers serve. kube-controller-manager publishes its CAs, and deletes every other bundle of this signer. */
export const apiServerSigner = 'kubernetes.io/kube-apiserver-serving'

const core = { group: '', version: 'v1' } as const
const apps = { group: 'apps', version: 'v1' } as const
const admission = { group: 'admissionregistration.k8s.io', version: 'v1' } as const

export const resources = {
  nodes: { ...core, resource: 'nodes' },
  namespaces: { ...core, resource: 'namespaces' },
  configMaps: { ...core, resource: 'configmaps' },
  secrets: { ...core, resource: 'secrets' },
  pods: { ...core, resource: 'pods' },
  services: { ...core, resource: 'services' },
  leases: { group: 'coordination.k8s.io', version: 'v1', resource: 'leases', namespace: 'kube-system' },
  deployments: { ...apps, resource: 'deployments' },
  daemonSets: { ...apps, resource: 'daemonsets' },
  statefulSets: { ...apps, resource: 'statefulsets' },
  endpointSlices: { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
  apiServices: { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' },
  validating: { ...admission, resource: 'validatingwebhookconfigurations' },
  mutating: { ...admission, resource: 'mutatingwebhookconfigurations' },
  definitions: { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' },
  /** v1 since 1.37; before, only where an administrator turned v1beta1 (1.33) or v1alpha1 (1.32) on. */
  clusterTrustBundles: {
    group: 'certificates.k8s.io',
    version: 'v1',
    olderVersions: ['v1beta1', 'v1alpha1'],
    resource: 'clustertrustbundles',
  },
  /** v1 since 1.37; v1beta1 where an administrator turned it on in 1.35 and 1.36. */
  podCertificateRequests: {
    group: 'certificates.k8s.io',
    version: 'v1',
    olderVersions: ['v1beta1'],
    resource: 'podcertificaterequests',
  },
} as const satisfies Record<string, Resource>

/** Returns all objects of a kind; none where the cluster has no such kind. Throws KCERT_API_FORBIDDEN and KCERT_UNREACHABLE. */
export async function listAll<Kind extends Named>(
  objects: ObjectsApi,
  resource: Resource,
  selection: Selection = {},
): Promise<Kind[]> {
  const readable = await listReadable(objects, resource, selection)
  // Asked once more, the refusal comes in the adapter's own words.
  const found: readonly ApiObject[] = readable ?? (await Array.fromAsync(objects.list(resource, selection)))
  return found as unknown as Kind[]
}

/** Returns one object; undefined when there is none. */
export async function getOne<Kind extends Named>(
  objects: ObjectsApi,
  resource: Resource & { readonly name: string },
): Promise<Kind | undefined> {
  return (await objects.get(resource)) as unknown as Kind | undefined
}

/** Returns when the content of an object was written last, in milliseconds: by its managed fields, else its creation. */
export function contentChangedAtMs({ metadata }: Named, field: 'data' | 'spec'): number {
  const times = (metadata.managedFields ?? []).flatMap(({ time, subresource, fieldsV1 }) =>
    time !== undefined && subresource === undefined && (fieldsV1 === undefined || `f:${field}` in fieldsV1)
      ? [Date.parse(time)]
      : [],
  )
  const created = Date.parse(metadata.creationTimestamp ?? '')
  return Math.max(...times, Number.isNaN(created) ? 0 : created)
}
