import { type Check, check, finding } from '../checks.ts'
import type { PendingItem } from '../phase.ts'
import { apiServers, type Snapshot } from '../snapshot.ts'
import type { KeyChange, Target } from '../target.ts'
import { keyIdFor } from './key-id.ts'
import { hasPublicKeys, signers, whyUnlike } from './keys.ts'
import { signsNew } from './phases/4-sign-new.ts'
import { holderOf, nodesWithMounted, oldTokens, tokenId, unreadTokens } from './tokens.ts'

/** Returns who still signs or verifies tokens with the old key, and who has one. This also sees what appears after phases 5 to 8. */
export function keyChecks(observed: Snapshot, target: Target): Check[] {
  const { key } = target
  const nodes = observed.nodes.flatMap(({ name, unreachable }) =>
    unreachable === undefined ? [] : [finding(name, unreachable)],
  )
  const reached = check('nodes', 'every node answers', observed.nodes.length, nodes)
  if (key === undefined)
    return [reached, check('key', 'the key was found', 0, [finding('service account key', 'was not found')])]
  const signing = signers(observed)
  const verifying = apiServers(observed)
  return [
    reached,
    check('signers', 'no process signs with the old key', signing.length, [
      ...noneOf(signing),
      ...signing
        .filter((one) => !signsNew(observed, one, key))
        .map(({ id }) => finding(id, 'may sign with the old key', 'kcert rotate-sa-key --phase 4')),
    ]),
    check('verifiers', 'no API server verifies tokens of the old key', verifying.length, [
      ...noneOf(verifying),
      ...verifying.flatMap((api) => {
        const isOnDisk = hasPublicKeys(observed, api, [key.newKey])
        const why = whyUnlike(observed, api.id, [key.newKey])
        const what = why ?? (isOnDisk ? undefined : 'its public key files do not contain only the new key')
        return what === undefined ? [] : [finding(api.id, what, 'kcert rotate-sa-key --phase 7')]
      }),
    ]),
    tokensCheck(observed, target, key),
  ]
}

function noneOf(found: readonly unknown[]): readonly PendingItem[] {
  return found.length > 0 ? [] : [finding('kube-apiserver', 'no API server was found')]
}

function tokensCheck(observed: Snapshot, { waivers }: Target, { oldKey }: KeyChange): Check {
  const keyId = keyIdFor(oldKey)
  const held = [
    ...oldTokens(observed, keyId).map((one) => ({ at: tokenId(one), what: `token (${holderOf(one)})` })),
    ...observed.kubeconfigs.flatMap(({ id, at }) =>
      at === undefined ? [{ at: id, what: 'kubeconfig, not read because it is on no node' }] : [],
    ),
  ]
  const accepted = held.filter(({ at }) => waivers.has(at))
  const { nodes, objects } = observed.tokens
  return {
    ...check('tokens', 'no token of the old key is mounted or stored', nodes.length + objects.length, [
      ...unreadTokens(observed),
      ...[...nodesWithMounted(observed, keyId)].map(([at, count]) => finding(at, `mounted tokens: ${count}`)),
      ...held.filter(({ at }) => !waivers.has(at)),
    ]),
    ...(accepted.length > 0 && { accepted }),
  }
}
