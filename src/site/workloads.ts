import { type ClientConfig, type Metadata, type Named, resources } from '../cluster/kinds.ts'
import { getOne, listAll } from '../cluster/readable.ts'
import { isSelected } from '../rotation/inventory.ts'
import { rotationAnnotation } from '../rotation/restart.ts'
import type { CaBundleSnapshot, Sections, WorkloadSnapshot } from '../rotation/snapshot.ts'
import { contentVersion } from './object-content.ts'
import type { Site } from './site.ts'

/**
 * Returns the fields with the CAs by which API servers verify the servers that they call. Objects without such a field are
 * omitted.
 */
export async function caBundles({
  objects,
  reading,
}: Pick<Site, 'objects' | 'reading'>): Promise<Sections['caBundles']> {
  const [apiServices, validating, mutating, definitions] = await Promise.all([
    listAll(objects, resources.apiServices),
    listAll(objects, resources.validating),
    listAll(objects, resources.mutating),
    listAll(objects, resources.definitions),
  ])
  const bundle = (
    kind: string,
    object: Named,
    field: string,
    config: ClientConfig | undefined,
    { place = '', isAvailable = true } = {},
  ): CaBundleSnapshot[] => {
    const server = serverOf(config)
    if (server === undefined) return []
    const { metadata } = object
    const { name } = metadata
    const pem = config?.caBundle === undefined ? undefined : Buffer.from(config.caBundle, 'base64')
    const id = `${kind} ${name}${place === '' ? '' : ` ${place}`}`
    const trust = reading.trustOf(pem)
    const applied = appliedBundles(metadata).flatMap((one) => reading.trustOf(Buffer.from(one, 'base64')))
    return [
      {
        id,
        object: { kind, name },
        field,
        version: contentVersion(object),
        trust,
        ...(applied.length === 0 ? {} : { applied: [...new Set(applied)] }),
        server,
        isAvailable,
      },
    ]
  }
  const webhooks = (kind: string, found: readonly (typeof validating | typeof mutating)[number][]) =>
    found.flatMap((object) =>
      (object.webhooks ?? []).flatMap(({ clientConfig }, index) => {
        const place = `webhooks[${index}]`
        return bundle(kind, object, `${place}.clientConfig.caBundle`, clientConfig, { place })
      }),
    )
  return [
    ...apiServices.flatMap((object) => {
      const isAvailable =
        object.status?.conditions?.find(({ type }) => type === 'Available')?.status !== 'False'
      return bundle('APIService', object, 'spec.caBundle', object.spec, { isAvailable })
    }),
    ...webhooks('ValidatingWebhookConfiguration', validating),
    ...webhooks('MutatingWebhookConfiguration', mutating),
    ...definitions.flatMap((object) => {
      const config = object.spec?.conversion?.webhook?.clientConfig
      return bundle(
        'CustomResourceDefinition',
        object,
        'spec.conversion.webhook.clientConfig.caBundle',
        config,
      )
    }),
  ]
}

/**
 * Returns each caBundle in the last-applied annotation of `kubectl apply`, at any depth; webhooks may be in another order there.
 */
export function appliedBundles({ annotations }: Metadata): readonly string[] {
  const found: string[] = []
  try {
    JSON.parse(
      annotations?.['kubectl.kubernetes.io/last-applied-configuration'] ?? '{}',
      (key, value: unknown) => {
        if (key === 'caBundle' && typeof value === 'string') found.push(value)
        return value
      },
    )
  } catch {
    // The annotation contains other text, so nothing is known.
  }
  return found
}

/** Returns "service/kube-system/metrics-server", with its port unless it is 443; or the URL. */
function serverOf(config: ClientConfig | undefined): string | undefined {
  const { service, url } = config ?? {}
  if (service === undefined) return url
  const port = service.port === undefined || service.port === 443 ? '' : `:${service.port}`
  return `service/${service.namespace}/${service.name}${port}`
}

/** A server behind a caBundle, as `serverOf` names it. */
export interface ServiceName {
  readonly namespace: string
  readonly name: string
  readonly port: number
}

/** Returns the service in a server's name; undefined for a URL. */
export function serviceNamed(server: string): ServiceName | undefined {
  const [, namespace, name, port = '443'] = /^service\/([^/]+)\/([^/:]+)(?::(\d+))?$/.exec(server) ?? []
  return namespace === undefined || name === undefined ? undefined : { namespace, name, port: Number(port) }
}

/** Workloads that replace their own pods. */
export const rollingKinds = [
  ['Deployment', resources.deployments],
  ['DaemonSet', resources.daemonSets],
  ['StatefulSet', resources.statefulSets],
] as const

/** Returns the workloads that roll their own pods, with the aggregated APIs and webhooks that they serve. */
export async function workloads(
  { objects, inventory }: Site,
  bundles: readonly CaBundleSnapshot[],
): Promise<Sections['workloads']> {
  const [services, ...listed] = await Promise.all([
    servicesOf(objects, bundles),
    ...rollingKinds.map(([, resource]) => listAll(objects, resource)),
  ])
  const excluded = inventory.workloads?.exclude ?? []
  return rollingKinds.flatMap(([kind], index) =>
    (listed[index] ?? []).map(({ metadata, spec }): WorkloadSnapshot => {
      const { namespace = '', name, resourceVersion = '', labels = {} } = metadata
      const template = spec?.template?.metadata
      const annotation = template?.annotations?.[rotationAnnotation]
      const isExcluded = excluded.some((one) => isSelected(one, { kind, namespace, name, labels }))
      return {
        id: `${kind} ${namespace}/${name}`,
        version: resourceVersion,
        ...(annotation === undefined ? {} : { annotation }),
        serves: services.flatMap(({ ids, object }) =>
          object.metadata.namespace === namespace && fits(object.spec?.selector, template?.labels) ? ids : [],
        ),
        // With OnDelete, a pod is replaced only when a user deletes it.
        mayRoll: !isExcluded && spec?.updateStrategy?.type !== 'OnDelete',
      }
    }),
  )
}

async function servicesOf(objects: Site['objects'], bundles: readonly CaBundleSnapshot[]) {
  const servers = Map.groupBy(bundles, ({ server }) => server)
  const found = await Promise.all(
    [...servers].map(async ([server, its]) => {
      const service = serviceNamed(server)
      if (service === undefined) return []
      const { namespace, name } = service
      const object = await getOne(objects, { ...resources.services, namespace, name })
      return object === undefined ? [] : [{ object, ids: its.map(({ id }) => id) }]
    }),
  )
  return found.flat()
}

function fits(
  selector: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  const wanted = Object.entries(selector ?? {})
  return wanted.length > 0 && wanted.every(([label, value]) => labels[label] === value)
}
