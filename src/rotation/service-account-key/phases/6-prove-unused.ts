import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { apiServers, type Observed } from '../../snapshot.ts'
import type { KeyChange, Target } from '../../target.ts'
import { ask, inLanes, probe, wait } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import { keyPart } from '../keys.ts'
import { renewals } from '../kubelets.ts'
import { keyRow } from '../phase-table.ts'
import { tokenLifetimeSeconds } from '../plan.ts'
import { isDropped } from './5-renew-tokens.ts'

type Sees = 'components' | 'kubelets' | 'files' | 'servedKeys' | 'tokens' | 'pods' | 'evidence'

/** The ID with which the operator confirms the result of `kcert audit`. */
export const auditId = 'audit-log'

type Open = ReturnType<Part>

const nothing: Open = { gaps: [], steps: [] }

const proven = keyPart<Sees>((observed, target, key) => {
  // After a leak, the old key goes before anything is proven. Once it is dropped, restarts must not begin the proof again.
  if (target.reason === 'compromise' || isDropped(observed, key)) return nothing
  return proofs[target.proof](observed, target, key)
})

const proofs: Readonly<
  Record<Target['proof'], (observed: Observed<Sees>, target: Target, key: KeyChange) => Open>
> = {
  /**
   * A mounted token of the default volume is valid for a year, but counts as stale after 3,607 s. A client that read it once and never
   * again shows up in the counter from then on (pkg/serviceaccount/claims.go).
   */
  counters(observed, target, key) {
    const sinceMs = renewedSinceMs(observed, key)
    const lifetimeMs = tokenLifetimeSeconds * 1000
    const open = apiServers(observed).filter(
      ({ id: at }) =>
        sinceMs === undefined ||
        !isProven(observed, { kind: 'token-use', at, forMs: 0 }, sinceMs + lifetimeMs),
    )
    const untilMs = (sinceMs ?? observed.atMs) + lifetimeMs
    const { soakMs } = target
    return {
      gaps: open.map(({ id: at }) => ({
        at,
        what:
          observed.atMs < untilMs
            ? `tokens of the old key count as stale from ${new Date(untilMs).toISOString()}`
            : 'its counters of stale and legacy tokens are not yet watched',
      })),
      steps:
        open.length === 0
          ? []
          : [
              ...(observed.atMs < untilMs
                ? [
                    wait(
                      { kind: 'instant', atMs: untilMs },
                      'every client that still uses a token of the old key is counted',
                      lifetimeMs + 120_000,
                    ),
                  ]
                : []),
              ...inLanes(open.length, open, ({ id: at }) => [
                probe({ kind: 'token-use', at, forMs: soakMs }, soakMs + 60_000),
              ]),
            ],
    }
  },

  audit(_observed, { waivers }, { oldKey }) {
    if (waivers.has(auditId)) return nothing
    return {
      gaps: [{ at: 'audit log', what: 'not yet confirmed to show no use of the old key' }],
      steps: [
        ask(
          auditId,
          `Run kcert audit with --sa-key and the public key in kcert/old/sa.pub (key ID ${keyIdFor(oldKey)}); it must find no use since phase 5.`,
        ),
      ],
    }
  },

  /** A container that restarts before its kubelet reads the old token again. */
  pods(observed, { waivers }, key) {
    const sinceMs = renewedSinceMs(observed, key)
    const started = Map.groupBy(observed.pods, ({ id }) => id)
    const open = podsWithTokens(observed).flatMap((id) => {
      if (waivers.has(id)) return []
      const its = started.get(id) ?? []
      if (its.length === 0) return [{ id, what: 'its start time is not known' }]
      const isNew = its.every(({ startedAtMs }) => sinceMs !== undefined && startedAtMs > sinceMs)
      return isNew
        ? []
        : [{ id, what: 'started before every node was proven to have only tokens of the new key' }]
    })
    return {
      gaps: open.map(({ id, what }) => ({ at: `Pod ${id}`, what })),
      steps: open.map(({ id }) =>
        ask(id, `Restart Pod ${id}, or accept that it may still use a token of the old key.`),
      ),
    }
  },
}

export const proveUnused = definePhase<Sees>(keyRow('prove-unused'), {
  sees: ['components', 'kubelets', 'files', 'servedKeys', 'tokens', 'pods', 'evidence'],
  ...inParts(proven),

  remarks(_observed, { proof, reason }) {
    if (reason === 'compromise') return []
    const unseen = {
      counters:
        'the counters do not see tokens that a client requested for longer than an hour (kubectl create token --duration), and they count every legacy token, also of the new key; --proof audit distinguishes all of them',
      audit: 'the audit log must cover every API server, at level Metadata or higher, since phase 4',
      pods: 'this proof does not see clients outside of pods; --proof counters does, and takes an hour',
    }
    return [unseen[proof]]
  },

  undo: () => [],
})

/** Returns when the last node was proven to have no mounted token of the old key; undefined if one is not proven. */
function renewedSinceMs(
  observed: Observed<'kubelets' | 'evidence'>,
  { oldKey }: KeyChange,
): number | undefined {
  const times = renewals(observed, keyIdFor(oldKey))
  return times.length === 0 || times.length < observed.kubelets.length ? undefined : Math.max(...times)
}

/** Returns the pods with mounted tokens on all nodes. */
function podsWithTokens({ tokens }: Observed<'tokens'>): readonly string[] {
  const ids = tokens.nodes.flatMap(({ tokens: read }) => {
    const mounted = 'value' in read ? read.value.mounted : []
    return mounted.flatMap(({ namespace, boundTo }) => {
      const [, pod] = /^pod (.+)$/.exec(boundTo ?? '') ?? []
      return [pod === undefined ? `${namespace}/?` : `${namespace}/${pod}`]
    })
  })
  return [...new Set(ids)].sort()
}
