import { given } from '../../errors/given.ts'
import type { Digest } from '../certificate-record.ts'
import { type ComponentSnapshot, controlPlanes, fileAt, type Observed, onNode } from '../snapshot.ts'
import { keyIdFor } from './key-id.ts'
import { privatePath, publicPaths } from './keys.ts'
import type { ApiServerKeys, ControlPlaneKeys, KeyFile, Reading, ServiceAccountKeys } from './observed.ts'

// The service account keys in a snapshot of the rotation, in the form of the plan.

export type KeyObservation = Observed<
  'nodes' | 'components' | 'files' | 'servedKeys' | 'tokens' | 'kubeconfigs'
>

/** Returns the keys and tokens of a cluster. What cannot be read is `unread`. */
export function serviceAccountKeysOf(observed: KeyObservation): ServiceAccountKeys {
  const { atMs, tokens, kubeconfigs } = observed
  return {
    atMs,
    controlPlanes: controlPlanes(observed).map(({ name, unreachable }) => ({
      node: name,
      keys: unreachable === undefined ? { value: keysOn(observed, name) } : { unread: unreachable },
    })),
    ...tokens,
    otherKubeconfigs: kubeconfigs.flatMap(({ id, at }) => (at === undefined ? [id] : [])),
  }
}

function keysOn(observed: KeyObservation, node: string): ControlPlaneKeys {
  const on = onNode(observed.components, node)
  const api = on.find(({ name }) => name === 'kube-apiserver')
  const manager = on.find(({ name }) => name === 'kube-controller-manager')
  return {
    node,
    ...given({
      apiServer: api && apiServerKeys(observed, api),
      controllerManager: manager && { node, ...given({ signingKey: signingKeyOf(observed, manager) }) },
    }),
  }
}

function apiServerKeys(observed: KeyObservation, api: ComponentSnapshot): ApiServerKeys {
  const { id, node, flags } = api
  const issuers = valuesOf(api, 'service-account-issuer')
  const audiences = valuesOf(api, 'api-audiences').flatMap((list) => list.split(','))
  const served = observed.servedKeys.find(({ process }) => process === id)?.keyIds
  return {
    ...{ node, issuers },
    audiences: audiences.length > 0 ? audiences : issuers,
    keyFiles: publicPaths(api).map((path) => keyFile(observed, node, path)),
    served: served ?? { unread: 'the API server does not answer' },
    ...given({
      signingKey: signingKeyOf(observed, api),
      jwksUri: flags['service-account-jwks-uri'],
      signingEndpoint: flags['service-account-signing-endpoint'],
      shutdownDelay: flags['shutdown-delay-duration'],
    }),
  }
}

function valuesOf({ repeated, flags }: ComponentSnapshot, name: string): readonly string[] {
  return repeated?.[name] ?? (flags[name] === undefined ? [] : [flags[name]])
}

function signingKeyOf(observed: KeyObservation, one: ComponentSnapshot): KeyFile | undefined {
  const path = privatePath(one)
  if (path === undefined) return undefined
  const file = fileAt(observed, one.node, path)
  // With public keys alone, the process does not start.
  return file === undefined || file.contains.kind === 'key'
    ? keyFile(observed, one.node, path)
    : { path, keyIds: { unread: 'it does not contain one private key without a password in PEM' } }
}

function keyFile(observed: KeyObservation, node: string, path: string): KeyFile {
  const digests = keysAt(observed, node, path)
  return { path, keyIds: 'unread' in digests ? digests : { value: digests.value.map(keyIdFor) } }
}

function keysAt(observed: KeyObservation, node: string, path: string): Reading<readonly Digest[]> {
  const file = fileAt(observed, node, path)
  if (file === undefined) return { unread: 'it does not exist, or cannot be read' }
  const { contains } = file
  if (contains.kind === 'key') return { value: [contains.spki] }
  if (contains.kind === 'public-keys') return { value: contains.keys }
  if (contains.kind !== 'certificates')
    return { unread: 'it contains no key in PEM that Kubernetes reads, or several kinds of keys' }
  const keys = contains.certificates.flatMap((digest) => observed.certificates.get(digest)?.spki ?? [])
  return keys.length === contains.certificates.length
    ? { value: keys }
    : { unread: 'a certificate was not read' }
}
