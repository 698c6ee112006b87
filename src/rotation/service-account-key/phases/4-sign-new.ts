import type { Task } from '../../action.ts'
import type { Digest } from '../../certificate-record.ts'
import { definePhase, inParts } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { awaitLeader, leaderLast } from '../../restart.ts'
import {
  apiServers,
  type ComponentSnapshot,
  componentsNamed,
  fileAt,
  hasStartedSince,
  type Observed,
  onNode,
} from '../../snapshot.ts'
import type { KeyChange, Target } from '../../target.ts'
import { probe, rewrite } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import {
  apiServersBackTo,
  awaitServed,
  backToKeys,
  hasPublicKeys,
  hasReadKeys,
  isStarting,
  type KeySections,
  keyPart,
  keysIn,
  notAfterLeak,
  onlyApiServer,
  privatePath,
  publicKeysOf,
  restartedWith,
  signedSinceMs,
  verifiesWith,
  whyUnlike,
  writingPublicKeys,
} from '../keys.ts'
import { provenOn, restartingKubelets } from '../kubelets.ts'
import { keyRow } from '../phase-table.ts'
import { rejectedClients } from '../plan.ts'
import { nodesWithMounted } from '../tokens.ts'

type Sees = KeySections | 'nodes' | 'kubelets' | 'leases' | 'tokens' | 'evidence'

const manager = 'kube-controller-manager'

const api = keyPart<Sees>((observed, target, key) => {
  const keys = publicKeysWith(target, key)
  const open = apiServers(observed).flatMap((one) => {
    const what = whyOld(observed, one, target, key)
    return what === undefined ? [] : [{ one, what }]
  })
  const isAtOnce = target.reason === 'compromise'
  const proofs = (of: readonly ComponentSnapshot[]) =>
    of.map(({ id: at }) => probe({ kind: 'issued-token', at, keyId: keyIdFor(key.newKey) }))
  return {
    gaps: open.map(({ one: { id: at }, what }) => ({ at, what })),
    steps: [
      ...open.flatMap(({ one }) => {
        // Phase 7 removes the old key, so this phase must not add it again.
        const staysAsIs = !isAtOnce && hasNewKeyFirst(observed, one, key)
        const writes = [
          ...(staysAsIs ? [] : writingPublicKeys(observed, one, keys)),
          ...writingPrivateKey(observed, one, key),
        ]
        const isRead = writes.length === 0 && hasReadKeys(observed, one)
        return [
          ...writes,
          ...(isRead ? [] : restartedWith(observed, one)),
          ...(isRead && !isAtOnce
            ? []
            : [
                awaitServed(
                  one.id,
                  staysAsIs ? publicKeysOf(observed, one) : keys,
                  `verifies tokens of ${isAtOnce ? 'only the new key' : 'both keys'}`,
                ),
              ]),
          ...(isAtOnce ? [] : proofs([one])),
        ]
      }),
      // After a leak, an API server accepts the tokens of another one only when both have restarted.
      ...(isAtOnce ? proofs(open.map(({ one }) => one)) : []),
    ],
  }
})

/** After the API servers: controllers request tokens of an hour at their start, and these should have the new key. */
const managers = keyPart<Sees>((observed, _target, key) => {
  const all = leaderLast(observed, componentsNamed(observed, manager)).filter(
    (one) => privatePath(one) !== undefined,
  )
  const open = all.filter((one) => !signsNew(observed, one, key))
  const proofs = provingManagers(observed, all, key.newKey, open.length > 0)
  return {
    gaps: [
      ...open.map(({ id: at }) => ({ at, what: 'does not sign with the new key' })),
      ...(proofs.length > 0 && open.length === 0
        ? [{ at: manager, what: 'not yet proven to sign the tokens of Secrets with the new key' }]
        : []),
    ],
    steps: [
      ...open.flatMap((one) => [
        // The file is that of the API server on this node, unless its flag names another one.
        ...(fileOfApiServer(observed, one) ? [] : writingPrivateKey(observed, one, key)),
        ...restartedWith(observed, one),
      ]),
      ...(open.length > 0 ? [awaitLeader(manager)] : []),
      ...proofs,
    ],
  }
})

/** Returns the proof that controller managers sign with this key, unless they are proven to, and none is about to restart. */
function provingManagers(
  observed: Observed<Sees>,
  managers: readonly ComponentSnapshot[],
  key: Digest,
  isRestarting: boolean,
): readonly Task[] {
  const subject = { kind: 'token-secret', keyId: keyIdFor(key) } as const
  const signing = managers.filter((one) => privatePath(one) !== undefined)
  // A file that was not read may have just changed.
  const times = signing.map((one) => privateKeyOf(observed, one)?.changedAtMs ?? Number.POSITIVE_INFINITY)
  const sinceMs = Math.max(...times, 0)
  const isNeeded = signing.length > 0 && (isRestarting || !isProven(observed, subject, sinceMs))
  return isNeeded ? [probe(subject, 90_000)] : []
}

const parts = inParts(api, managers)

export const signNew = definePhase<Sees>(keyRow('sign-new'), {
  sees: ['nodes', 'components', 'kubelets', 'files', 'servedKeys', 'leases', 'tokens', 'evidence'],
  ...parts,

  refusals(observed, target) {
    const { key, reason } = target
    const refusals = onlyApiServer(observed, target, keyRow('sign-new').number, parts.plan(observed, target))
    if (key === undefined || reason === 'compromise') return refusals
    const late = apiServers(observed).filter(({ id }) => !verifiesWith(observed, id, key.newKey))
    if (late.length === 0) return refusals
    return [
      ...refusals,
      {
        what: `not proven to verify tokens of the new key: ${late.map(({ id }) => id).join(', ')}`,
        why: 'it would reject the tokens that the others issue; its /openid/v1/jwks must show the new key',
        next: 'kcert rotate-sa-key --phase 2',
      },
    ]
  },

  remarks: (observed, { key, reason }) =>
    reason === 'compromise' ? rejectedClients(observed, key && keyIdFor(key.oldKey)) : [],

  /** Tokens of the new key stay valid until phase 2 is rolled back, and kubelets renew theirs at once. */
  undo(copies, now, target) {
    const { key, reason } = target
    if (reason === 'compromise') return notAfterLeak(keyRow('sign-new').number)
    const keys = key && [key.oldKey, key.newKey]
    const apis = apiServersBackTo(copies, now, keys, 'verifies tokens of both keys')
    const own = leaderLast(now, componentsNamed(now, manager))
    // Files that the API server of a node shares with its controller manager are restored above.
    const back = own.flatMap((one) => {
      const shared = fileOfApiServer(now, one)
      const isWritten =
        shared &&
        apis.some(
          (step) => step.kind === 'write-file' && step.node === one.node && step.path === privatePath(one),
        )
      return isWritten ? restartedWith(now, one) : backToKeys(copies, now, [one])
    })
    const renewing = key && mountedBack(now, target, key)
    return [
      ...apis,
      ...back,
      ...(back.length > 0 ? [awaitLeader(manager)] : []),
      // The probe also deletes the Secret that a killed run left, with its token of the new key.
      ...(key && copies.length > 0 ? provingManagers(now, own, key.oldKey, back.length > 0) : []),
      ...(renewing ?? []),
    ]
  },
})

function mountedBack(now: Observed<Sees>, target: Target, { newKey }: KeyChange) {
  const lacks = keyIdFor(newKey)
  const nodes = nodesWithMounted(now, lacks)
  const sinceMs = signedSinceMs(now)
  const readable = new Set(now.tokens.nodes.flatMap(({ node, tokens }) => ('value' in tokens ? [node] : [])))
  return restartingKubelets(
    now,
    target,
    ({ node }) => nodes.has(node),
    lacks,
    // The rollback of phase 2 waits for clients from the last proof on, and refuses while a node cannot be read.
    ({ node }) => readable.has(node) && !isProven(now, provenOn(node, lacks), sinceMs),
  )
}

/** Returns the public keys with which API servers verify tokens from this phase on; the one of the signing key first. */
function publicKeysWith({ reason }: Target, { oldKey, newKey }: KeyChange) {
  return reason === 'compromise' ? [newKey] : [newKey, oldKey]
}

function hasNewKeyFirst(observed: Observed<'files'>, one: ComponentSnapshot, key: KeyChange): boolean {
  return hasPublicKeys(observed, one, [key.newKey, key.oldKey]) || hasPublicKeys(observed, one, [key.newKey])
}

function whyOld(
  observed: Observed<Sees>,
  one: ComponentSnapshot,
  { reason }: Target,
  key: KeyChange,
): string | undefined {
  const { id } = one
  const isLeaked = reason === 'compromise'
  if (isLeaked && !hasPublicKeys(observed, one, [key.newKey])) return 'verifies tokens of the old key'
  if (!hasNewKeyFirst(observed, one, key)) return 'its public keys do not begin with the new one'
  if (!signsNew(observed, one, key)) return 'does not sign with the new key'
  if (isLeaked && whyUnlike(observed, id, [key.newKey]) !== undefined) return 'verifies tokens of the old key'
  const sinceMs = privateKeyOf(observed, one)?.changedAtMs
  const subject = { kind: 'issued-token', at: id, keyId: keyIdFor(key.newKey) } as const
  return isProven(observed, subject, sinceMs) ? undefined : 'not yet proven to issue tokens of the new key'
}

function privateKeyOf(observed: Observed<'files'>, one: ComponentSnapshot) {
  return fileAt(observed, one.node, privatePath(one))
}

/** The public keys do not count: an API server that phase 7 has not restarted yet still signs with the new key. */
export function signsNew(
  observed: Observed<'files'>,
  one: ComponentSnapshot,
  { newKey }: KeyChange,
): boolean {
  const file = privateKeyOf(observed, one)
  return keysIn(file).join() === newKey && (isStarting(observed, one) || hasStartedSince(one.process, file))
}

function writingPrivateKey(observed: Observed<'files'>, one: ComponentSnapshot, { newKey }: KeyChange) {
  const file = privateKeyOf(observed, one)
  if (file === undefined || keysIn(file).join() === newKey) return []
  return [rewrite(file, { kind: 'service-account-key' })]
}

/** Returns true when the API server of the node signs with the same file. */
function fileOfApiServer(observed: Observed<'components'>, one: ComponentSnapshot): boolean {
  return onNode(observed.components, one.node).some(
    (other) => other.name === 'kube-apiserver' && privatePath(other) === privatePath(one),
  )
}
