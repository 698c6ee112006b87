import type { Cluster } from '../../cluster/cluster.ts'
import { type ObjectOf, resources } from '../../cluster/kinds.ts'
import {
  readKubeconfigIn,
  type SelectedContext,
  selectContext,
  unusable,
} from '../../cluster/kubeconfig-files.ts'
import { objectIn } from '../../cluster/malformed.ts'
import { listEach } from '../../cluster/readable.ts'
import { onKcertError } from '../../errors/caught.ts'
import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { filledText, isObject } from '../../errors/is-object.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { requiredTrustedFile } from '../../system/trusted-file.ts'
import type { FleetSource } from './flags.ts'
import { add, type Members, refuseLocalNames } from './members.ts'

// The clusters that objects of a management cluster name. Other users may write these objects. Credentials in them are sent only to the
// server in the same object, and none of them makes kcert run a program or read a file of this machine.

type Fields = Readonly<Record<string, unknown>>
type Secret = ObjectOf<'secrets'>

/** The exec section of a kubeconfig for each access provider, by its name. */
export type Providers = ReadonlyMap<string, Fields>

/** Adds the clusters of one kind of object. Throws as `ObjectsApi.list` does. */
export async function addManaged(
  found: Members,
  source: FleetSource,
  { objects }: Pick<Cluster, 'objects'>,
  {
    namespace,
    providers,
    matches,
  }: {
    readonly namespace?: string | undefined
    readonly providers: Providers
    readonly matches: (cluster: string) => boolean
  },
): Promise<void> {
  const scope = given({ namespace })
  // A list that is restarted returns objects twice.
  const seen = new Set<string>()
  const addOne = async (kind: string, object: ObjectOf<string>, read: Reader): Promise<void> => {
    const name = `${kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
    if (seen.has(name) || !matches(read.cluster)) return
    seen.add(name)
    const { cluster, selected } = read
    const isRefused = onKcertError((error) => error)
    add(found, {
      cluster,
      source: name,
      selected: await selected(name).catch(isRefused),
      isObject: true,
    })
  }
  if (source === 'clusterprofile') {
    for await (const object of listEach(objects, { ...clusterProfiles, ...scope }))
      await addOne('clusterprofile', object, profileReader(object, providers))
    return
  }
  const secrets = { ...resources.secrets, ...scope }
  const { labelSelector, readerOf } = source === 'argocd' ? argocd : clusterApi
  for await (const object of listEach(objects, secrets, { labelSelector })) {
    const reader = readerOf(object)
    if (reader !== undefined) await addOne('secret', object, reader)
  }
}

interface Reader {
  readonly cluster: string
  /** `name` is that of the object, for messages. Throws KcertErrors. */
  readonly selected: (name: string) => Promise<SelectedContext | KcertError>
}

// v1alpha1 is the version that cluster managers serve. https://github.com/kubernetes-sigs/cluster-inventory-api
const clusterProfiles = {
  group: 'multicluster.x-k8s.io',
  version: 'v1alpha1',
  olderVersions: ['v1alpha2'],
  resource: 'clusterprofiles',
} as const

/** https://cluster-api.sigs.k8s.io: the Secret CLUSTER-kubeconfig beside each Cluster, with the kubeconfig of an administrator. */
const clusterApi = {
  labelSelector: 'cluster.x-k8s.io/cluster-name',
  readerOf({ metadata, data }: Secret): Reader | undefined {
    const cluster = metadata.labels?.['cluster.x-k8s.io/cluster-name'] ?? ''
    if (metadata.name !== `${cluster}-kubeconfig`) return undefined
    return {
      cluster,
      selected: async (name) => {
        const bytes = Buffer.from(data?.value ?? '', 'base64')
        return refuseLocalNames(inObject(selectContext(await readKubeconfigIn(name, bytes), {})))
      },
    }
  },
}

/** https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/#clusters */
const argocd = {
  labelSelector: 'argocd.argoproj.io/secret-type=cluster',
  readerOf({ metadata, data }: Secret): Reader {
    const text = (field: string): string => Buffer.from(data?.[field] ?? '', 'base64').toString('utf8')
    const cluster = text('name') || metadata.name
    return {
      cluster,
      selected: async (name) => {
        const config = objectIn(text('config') || '{}')
        if (config === undefined)
          throw unusable(`${name} cannot be used`, { why: 'its field config is not a JSON object' })
        const tls = isObject(config.tlsClientConfig) ? config.tlsClientConfig : {}
        const program = ['execProviderConfig', 'awsAuthConfig'].find((field) => isObject(config[field]))
        return refuseLocalNames(
          contextOf(name, cluster, {
            cluster: given({
              server: text('server'),
              'certificate-authority-data': filledText(tls.caData),
              'insecure-skip-tls-verify': tls.insecure === true || undefined,
              'tls-server-name': filledText(tls.serverName),
              'proxy-url': filledText(config.proxyUrl),
            }),
            user: given({
              exec: program,
              token: filledText(config.bearerToken),
              username: filledText(config.username),
              password: filledText(config.password),
              'client-certificate-data': filledText(tls.certData),
              'client-key-data': filledText(tls.keyData),
            }),
          }),
        )
      },
    }
  },
}

const textFields = ['server', 'certificate-authority-data', 'tls-server-name', 'proxy-url']

/** KEP-5339: the object has the server, and a file of this machine says which program returns the credential. */
function profileReader({ metadata, status }: ObjectOf<string>, providers: Providers): Reader {
  const cluster = metadata.name
  return {
    cluster,
    selected: async (name) => {
      const fields = isObject(status) ? status : {}
      // Earlier releases of v1alpha1 have credentialProviders.
      const listed = [fields.accessProviders, fields.credentialProviders].find(Array.isArray) ?? []
      const offered = listed.filter(isObject)
      const used = offered.find((one) => providers.has(String(one.name)))
      if (used === undefined || !isObject(used.cluster)) {
        const names = offered.map((one) => JSON.stringify(one.name)).join(', ')
        throw unusable(`${name} has no access provider that kcert may use`, {
          why: `its access providers: ${names || 'none'}; those of --clusterprofile-provider-file: ${[...providers.keys()].join(', ') || 'none'}`,
        })
      }
      const own = used.cluster
      return contextOf(name, cluster, {
        cluster: given({
          ...Object.fromEntries(textFields.map((field) => [field, filledText(own[field])])),
          'insecure-skip-tls-verify': own['insecure-skip-tls-verify'] === true || undefined,
          extensions: Array.isArray(own.extensions) ? own.extensions : undefined,
        }),
        // Extensions of the object that add arguments or environment variables are ignored.
        user: { exec: { ...providers.get(String(used.name)), provideClusterInfo: true } },
      })
    },
  }
}

/**
 * Returns the providers of a file of the form {"providers": [{"name": …, "execConfig": …}]}. Throws KCERT_FILE_UNTRUSTED, and
 * KCERT_MANIFEST_MALFORMED.
 */
export function readProviders(file: string | undefined): Providers {
  if (file === undefined) return new Map()
  const text = Buffer.from(requiredTrustedFile('provider file', file)).toString('utf8')
  const providers = objectIn(text)?.providers
  const entries = (Array.isArray(providers) ? providers : [undefined]).map((one: unknown) => {
    if (isObject(one) && filledText(one.name) && isObject(one.execConfig))
      return [String(one.name), { interactiveMode: 'Never', ...one.execConfig }] as const
    throw new KcertError('KCERT_MANIFEST_MALFORMED', `${file} is not a provider file`, {
      why: 'it needs a list "providers" of objects with "name" and "execConfig"',
      next: commandLine`cat ${file}`,
    })
  })
  return new Map(entries)
}

function contextOf(
  source: string,
  name: string,
  { cluster, user }: { readonly cluster: Fields; readonly user: Fields },
): SelectedContext {
  if (!filledText(cluster.server)) throw unusable(`${source} has no server`, {})
  const names = { contextName: name, clusterName: name, userName: name }
  return inObject({ ...names, cluster, user, files: [], source, kubectl: commandLine`kubectl` })
}

/** Commands cannot name a kubeconfig that is in an object. */
function inObject(selected: SelectedContext): SelectedContext {
  return { ...selected, files: [], kubectl: commandLine`kubectl` }
}
