import { resources } from '../cluster/kinds.ts'
import { listAll, listEach } from '../cluster/readable.ts'
import { Inspection } from '../inspection/inspection.ts'
import { defaultThresholds } from '../inspection/thresholds.ts'
import type { FoundToken, ServiceAccountKeys } from '../rotation/service-account-key/observed.ts'
import { reading } from '../site/service-account-keys.ts'
import type { Site } from '../site/site.ts'
import { ownerOf } from './stored.ts'

const kinds = [
  // Bootstrap tokens are no JWTs, and releases of Helm are copies. A password for a registry may be a token.
  ['Secret', resources.secrets, 'type!=bootstrap.kubernetes.io/token,type!=helm.sh/release.v1'],
  ['ConfigMap', resources.configMaps, 'metadata.name!=kube-root-ca.crt'],
] as const

/** Returns the service account tokens in all Secrets and ConfigMaps, and the kinds that could not be read. */
export async function storedTokens({ objects, clock }: Site): Promise<ServiceAccountKeys['objects']> {
  const options = {
    now: clock(),
    thresholds: defaultThresholds,
    readReferencedFile: (name: string) => ({ name, reason: 'not-found', detail: 'in no object' }) as const,
  }
  const tokensOf = async (...[kind, resource, fieldSelector]: (typeof kinds)[number]) => {
    // A list that was restarted returns objects twice.
    const found = new Map<string, FoundToken[]>()
    for await (const object of listEach(objects, resource, { fieldSelector })) {
      const { metadata } = object
      const name = `${metadata.namespace}/${metadata.name}`
      const inspection = new Inspection(options)
      const { type: _, ...untyped } = object
      await inspection.addObject(name, untyped, kind)
      const owner = ownerOf(metadata)
      const tokens = inspection.tokens.map(({ entry, claims }) => ({
        ...{ kind, location: `${name} ${entry}`, claims },
        ...(owner !== undefined && { owner }),
      }))
      found.set(name, tokens)
    }
    return [...found.values()].flat()
  }
  const read: ServiceAccountKeys['objects'][number][] = []
  for (const one of kinds) {
    const [kind] = one
    read.push({ kind, tokens: await reading(() => tokensOf(...one)) })
  }
  return read
}

/** The lifetime of a token without expirationSeconds (pkg/apis/authentication/v1/defaults.go), and the longest one that the API accepts. */
const [defaultSeconds, mostSeconds] = [3600, 2 ** 32]

/** Returns the CSI drivers for which kubelets request tokens. */
export function tokenDrivers({ objects }: Site): Promise<ServiceAccountKeys['drivers']> {
  return reading(async () =>
    (await listAll(objects, resources.csiDrivers)).flatMap(({ metadata: { name }, spec }) => {
      const requests = spec?.tokenRequests ?? []
      if (requests.length === 0) return []
      const lifetimes = requests.map(({ expirationSeconds = defaultSeconds }) => expirationSeconds)
      return {
        name,
        audiences: requests.map(({ audience = '' }) => audience),
        lifetimeSeconds: Math.min(Math.max(...lifetimes), mostSeconds),
      }
    }),
  )
}
