import { commandLine } from '../../../errors/command-line.ts'
import { shortList } from '../../../errors/short-list.ts'
import { definePhase, inParts } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { apiServers, type CopySnapshot, fileAt, type Observed, onNode } from '../../snapshot.ts'
import type { Target } from '../../target.ts'
import { inLanes, probe } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import {
  apiServersBackTo,
  awaitServed,
  delayFor,
  hasReadKeys,
  isStarting,
  type KeySections,
  keyPart,
  keysIn,
  onlyApiServer,
  privatePath,
  publicKeysOf,
  restartedWith,
  signedSinceMs,
  verifiesWith,
  writingPublicKeys,
} from '../keys.ts'
import { awaitReread, provenOn, renewals } from '../kubelets.ts'
import { keyRow } from '../phase-table.ts'
import { heldTokens, nodesWithMounted, unreadTokens } from '../tokens.ts'
import { provingUnused } from './6-prove-unused.ts'

type Sees = KeySections | 'leases' | 'tokens' | 'pods' | 'kubelets' | 'copies' | 'evidence'

const both = keyPart<Sees>((observed, { reason }, { oldKey, newKey }) => {
  // After a leak, no API server verifies both.
  const open =
    reason === 'compromise'
      ? []
      : apiServers(observed).flatMap((api) => {
          if (!verifiesWith(observed, api.id, newKey))
            return [{ api, what: 'does not verify tokens of the new key' }]
          // Another program restored the file: after its next start, the API server would reject tokens of the new key.
          const isOnDisk = publicKeysOf(observed, api).includes(newKey)
          return isOnDisk ? [] : [{ api, what: 'its public key files do not contain the new key' }]
        })
  return {
    gaps: open.map(({ api: { id: at }, what }) => ({ at, what })),
    steps: open.flatMap(({ api }) => {
      const now = publicKeysOf(observed, api)
      const signing = keysIn(fileAt(observed, api.node, privatePath(api)))
      // Later phases change the order and remove the old key: an API server that is only down keeps its files.
      const isLater = now.includes(newKey) && (now.includes(oldKey) || signing.join() === newKey)
      const keys = isLater ? now : [oldKey, newKey]
      const writes = isLater ? [] : writingPublicKeys(observed, api, keys)
      const isRead = writes.length === 0 && (isStarting(observed, api) || hasReadKeys(observed, api))
      return [
        ...writes,
        ...(isRead ? [] : restartedWith(observed, api, delayFor(api))),
        awaitServed(api.id, keys, 'verifies tokens of the new key'),
      ]
    }),
  }
})

const parts = inParts(both)

export const verifyBoth = definePhase<Sees>(keyRow('verify-both'), {
  // A rollback observes all sections of the playbook. Only it needs pods.
  sees: ['components', 'files', 'servedKeys', 'leases', 'tokens', 'kubelets', 'copies', 'evidence'],
  ...parts,
  refusals: (observed, target) =>
    onlyApiServer(observed, target, keyRow('verify-both').number, parts.plan(observed, target)),

  remarks(observed, { reason }) {
    const open = apiServers(observed).filter((api) => Object.keys(delayFor(api)).length > 0)
    if (open.length === 0 || reason === 'compromise') return []
    const names = shortList(open.map(({ id }) => id))
    return [
      `no --shutdown-delay-duration: ${names}; kcert sets 15s until phase 7. In this first restart, requests that are in flight may fail (up to 3 on the lab)`,
    ]
  },

  undo(copies, now, target) {
    const refusal = whyNewKeyIsUsed(now, target)
    if (refusal !== undefined) return refusal
    const { key } = target
    const steps = apiServersBackTo(copies, now, key && [key.oldKey], 'verifies only tokens of the old key')
    if (key === undefined || steps.length === 0) return steps
    if (!hasSigned(now)) return steps
    const proof = [...provingUnused(now, target, key, 'new').steps]
    const asked = proof.flatMap((step) => (step.kind === 'confirm' ? [step] : []))
    const [first] = asked
    if (first !== undefined)
      return {
        // All of them: no other command lists them.
        what: `not proven that no client uses a token of the new key: ${asked.map(({ id }) => id).join(', ')}`,
        why: first.question,
        // The journal has the --proof of phase 6, which may be another one.
        next: commandLine`kcert rotate-sa-key rollback --proof ${target.proof} --waive ${first.id}`,
      }
    // The rollback of phase 4 renewed mounted tokens, and proved it. It has no proof of a node that did not respond, or joined since then.
    const lacks = keyIdFor(key.newKey)
    const sinceMs = signedSinceMs(now)
    const unproven = now.kubelets.filter(({ node }) => !isProven(now, provenOn(node, lacks), sinceMs))
    const renewedMs = unproven.length > 0 ? now.atMs : Math.max(...renewals(now, lacks), 0)
    return [
      ...inLanes(target.atOnce, unproven, ({ node }) => [probe(provenOn(node, lacks), 180_000)]),
      ...awaitReread(now, renewedMs),
      ...proof,
      ...steps,
    ]
  },
})

/**
 * Returns true if an API server may have signed tokens with the new key, which clients may have in memory: phase 4 copied its old key, or
 * its copies are not known.
 */
function hasSigned(observed: Observed<'components' | 'copies'>): boolean {
  return apiServers(observed).some((api) => {
    const its = onNode(observed.copies, api.node)
    const isSigningKey = ({ phase, of }: CopySnapshot): boolean =>
      phase === keyRow('sign-new').number && 'path' in of && of.path === privatePath(api)
    return its.length === 0 || its.some(isSigningKey)
  })
}

/** Tokens of the new key become invalid when no API server verifies it any more. */
function whyNewKeyIsUsed(observed: Observed<'tokens'>, { key }: Target) {
  const keyId = key && keyIdFor(key.newKey)
  if (keyId === undefined) return undefined
  const places = [
    ...nodesWithMounted(observed, keyId).keys(),
    ...heldTokens(observed, keyId).map(({ location }) => location),
    ...unreadTokens(observed).map(({ at, what }) => `${at} (${what})`),
  ]
  if (places.length === 0) return undefined
  return {
    what: `phase 2 cannot be rolled back while tokens of the new key may be in use: ${shortList(places)}`,
    why: 'API servers would reject them. Mounted tokens are renewed in the rollback of phase 4; replace the others',
    next: 'kcert rotate-sa-key status',
  }
}
