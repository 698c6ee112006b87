import { shortList } from '../../errors/short-list.ts'
import type { Phase, Refusal } from '../phase.ts'
import { unreachableNodes, unservedLayouts, when, withoutApiServer } from '../refusals.ts'
import {
  apiServerOn,
  apiServers,
  controlPlanes,
  fileAt,
  fileKey,
  type Observed,
  type Snapshot,
} from '../snapshot.ts'
import { hasBegun, type Target } from '../target.ts'
import { keyTestedMinors, untestedVersions } from '../tested-versions.ts'
import { upgradeInProgress } from '../upgrades.ts'
import { keyPaths, keysIn, privatePath, publicPaths, signers } from './keys.ts'
import { blockersIn, externalSigner } from './plan.ts'

// Clusters and states in which kcert does not rotate the service account key.

const next = 'kcert rotate-sa-key plan'
const plan = 'kcert rotate-sa-key --phase 1 --dry-run'

/** Returns why a phase is refused for this cluster in its current state; empty when the phase may start. */
export function keyPreflight(
  observed: Snapshot,
  target: Target,
  { number }: Pick<Phase, 'number'>,
): readonly Refusal[] {
  const unreachable = unseenNodes(observed)
  if (target.isDropping) return unreachable
  const external = apiServers(observed).filter(
    ({ flags }) => flags['service-account-signing-endpoint'] !== undefined,
  )
  if (external.length > 0) return [externalSigner(external)]
  return [
    ...unreachable,
    ...unservedLayouts(observed),
    ...untestedVersions(observed, target, keyTestedMinors, plan),
    ...withoutApiServer(observed),
    ...withoutKeyFiles(observed),
    ...otherFiles(observed),
    ...otherKeys(observed, target),
    // Once phase 1 has begun, API servers may verify two keys, and it may run again for a node that joined.
    ...(number === 1 && !hasBegun(target) ? blockersIn(observed) : []),
    ...(number === 1 ? upgradeInProgress(observed, target, plan) : []),
  ]
}

/**
 * Returns why no phase can start or be complete: a kubelet that kcert cannot see may have mounted tokens of the old key, and an API server
 * that is not defined now may come back with the old files.
 */
export function unseenNodes(observed: Observed<'nodes' | 'components'>): readonly Refusal[] {
  const why =
    'tokens of the old key may be mounted there; repair the node, or delete its Node object if it is gone'
  const missing = controlPlanes(observed).filter(
    ({ name, unreachable }) => unreachable === undefined && apiServerOn(observed, name) === undefined,
  )
  return [
    ...unreachableNodes(observed, why),
    ...when(missing.length > 0, {
      what: `no kube-apiserver is defined on control-plane nodes: ${shortList(missing.map(({ name }) => name))}`,
      why: 'when it starts again, it would verify and sign with the keys of its own files; put its manifest back, or delete the Node object if the node is gone',
      next,
    }),
  ]
}

function withoutKeyFiles(observed: Observed<'components'>): readonly Refusal[] {
  const incomplete = apiServers(observed).filter(
    (api) => publicPaths(api).length === 0 || privatePath(api) === undefined,
  )
  return when(incomplete.length > 0, {
    what: `--service-account-signing-key-file or --service-account-key-file is not set: ${shortList(incomplete.map(({ id }) => id))}`,
    why: 'without both flags, kcert does not know which files have the key',
    next,
  })
}

/** kcert replaces whole files, so each must contain nothing but what kcert writes: public keys, or one private key. */
function otherFiles(observed: Observed<'components' | 'files'>): readonly Refusal[] {
  const asPublic = apiServers(observed).flatMap((api) =>
    publicPaths(api).flatMap((path) => {
      const kind = fileAt(observed, api.node, path)?.contains.kind
      return kind === 'public-keys' ? [] : [fileKey(api.node, path)]
    }),
  )
  const asPrivate = signers(observed).flatMap((one) => {
    const path = privatePath(one)
    if (path === undefined) return []
    return fileAt(observed, one.node, path)?.contains.kind === 'key' ? [] : [fileKey(one.node, path)]
  })
  return [
    ...when(asPublic.length > 0, {
      what: `not readable, or not only public keys in PEM: ${shortList(asPublic)}`,
      why: 'kcert writes the public keys of --service-account-key-file; a private key or a certificate there would be lost. Put the public key alone into the file (openssl pkey -pubout), and restart the API server',
      next,
    }),
    ...when(asPrivate.length > 0, {
      what: `not readable, or not one private key without a password in PEM: ${shortList([...new Set(asPrivate)])}`,
      why: 'kcert replaces the key of API servers and controller managers',
      next,
    }),
  ]
}

/** A third key was added by hand, or belongs to a rotation that is not finished: kcert would remove it. */
function otherKeys(observed: Observed<'components' | 'files'>, { key }: Target): readonly Refusal[] {
  if (key === undefined) return []
  const own = new Set([key.oldKey, key.newKey])
  const files = signers(observed).flatMap((one) =>
    keyPaths(one).flatMap((path) => fileAt(observed, one.node, path) ?? []),
  )
  const found = files.filter((file) => keysIn(file).some((digest) => !own.has(digest)))
  return when(found.length > 0, {
    what: `keys other than the old and the new one: ${shortList([...new Set(found.map(({ node, path }) => fileKey(node, path)))])}`,
    why: 'kcert would remove them, and API servers would reject the tokens that they signed. Remove keys that signed no token from the files first',
    next,
  })
}
