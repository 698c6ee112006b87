import { commandLine } from '../../../errors/command-line.ts'
import type { Task } from '../../action.ts'
import { definePhase, inParts, type Part } from '../../phase.ts'
import { isProven } from '../../proof.ts'
import { apiServers, type Observed, type Snapshot } from '../../snapshot.ts'
import type { KeyChange, Target } from '../../target.ts'
import { ask, inLanes, probe, wait } from '../../tasks.ts'
import { keyIdFor } from '../key-id.ts'
import { keyPart } from '../keys.ts'
import { renewals } from '../kubelets.ts'
import { keyRow } from '../phase-table.ts'
import { tokenLifetimeSeconds } from '../plan.ts'
import { driverId, driversIn } from '../tokens.ts'
import { isDropped } from './5-renew-tokens.ts'

type Sees = 'components' | 'kubelets' | 'files' | 'servedKeys' | 'tokens' | 'pods' | 'evidence'

/** The ID with which the operator confirms the result of `kcert audit`. */
export const auditId = 'audit-log'

type Open = ReturnType<Part>

/** A key that no client may use any more: the old one before phase 7, the new one before phase 2 is rolled back. */
interface Unused {
  readonly keyId: string
  readonly name: 'old' | 'new'
  /** Since then, no node has a mounted token of the key; undefined if that is not proven for each of them. */
  readonly sinceMs: number | undefined
  /** Returns the ID of a confirmation. One about the old key does not count for the new one. */
  readonly idOf: (id: string) => string
}

const nothing: Open = { gaps: [], steps: [] }

const proven = keyPart<Sees>((observed, target, key) => {
  // After a leak, the old key goes before anything is proven. Once it is dropped, restarts must not begin the proof again.
  if (target.reason === 'compromise' || isDropped(observed, key)) return nothing
  return provingUnused(observed, target, key, 'old')
})

/** Returns what is missing to the proof that no client uses one of the two keys, and the steps of the proof. */
export function provingUnused(
  observed: Observed<Sees>,
  target: Target,
  { oldKey, newKey }: KeyChange,
  name: Unused['name'],
): Open {
  const keyId = keyIdFor(name === 'old' ? oldKey : newKey)
  const idOf = (id: string): string => (name === 'old' ? id : `rollback:${id}`)
  const unused = { keyId, name, sinceMs: renewedSinceMs(observed, keyId), idOf }
  const parts = [proofs[target.proof], expiredForDrivers].map((prove) => prove(observed, target, unused))
  return {
    gaps: parts.flatMap(({ gaps }) => [...gaps]),
    steps: parts.flatMap(({ steps }) => [...steps]),
  }
}

type Proof = (observed: Observed<Sees>, target: Target, unused: Unused) => Open

const proofs: Readonly<Record<Target['proof'], Proof>> = {
  /**
   * A mounted token of the default volume is valid for a year, but counts as stale after 3,607 s. A client that read it once and never
   * again shows up in the counter from then on (pkg/serviceaccount/claims.go).
   */
  counters(observed, target, { name, sinceMs }) {
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
            ? `tokens of the ${name} key count as stale from ${new Date(untilMs).toISOString()}`
            : 'its counters of stale and legacy tokens are not yet watched',
      })),
      steps:
        open.length === 0
          ? []
          : [
              ...awaiting(
                observed,
                untilMs,
                `every client that still uses a token of the ${name} key is counted`,
              ),
              ...inLanes(open.length, open, ({ id: at }) => [
                probe({ kind: 'token-use', at, forMs: soakMs }, soakMs + 60_000),
              ]),
            ],
    }
  },

  audit(_observed, { waivers }, { keyId, name, sinceMs, idOf }) {
    if (waivers.has(idOf(auditId))) return nothing
    const [file, phase] =
      name === 'old'
        ? ['the public key in kcert/old/sa.pub', 'phase 5']
        : ['the key in kcert/new/sa.key', 'the rollback of phase 4']
    const since = sinceMs === undefined ? phase : `${phase} (--since ${new Date(sinceMs).toISOString()})`
    return {
      gaps: [{ at: 'audit log', what: `not yet confirmed to show no use of the ${name} key` }],
      steps: [
        ask(
          idOf(auditId),
          `Run kcert audit with --sa-key and ${file} (key ID ${keyId}); it must find no use since ${since}.`,
        ),
      ],
    }
  },

  /** A container that restarts before its kubelet reads the old token again. */
  pods(observed, { waivers }, { name, sinceMs, idOf }) {
    const started = Map.groupBy(observed.pods, ({ id }) => id)
    const open = podsWithTokens(observed).flatMap((id) => {
      const its = started.get(id) ?? []
      const named = [id, ...its.flatMap(({ workload }) => workload ?? [])]
      if (named.some((one) => waivers.has(idOf(one)))) return []
      if (its.length === 0) return [{ id, what: 'its start time is not known' }]
      const isNew = its.every(({ startedAtMs }) => sinceMs !== undefined && startedAtMs > sinceMs)
      const other = name === 'old' ? 'new' : 'old'
      return isNew
        ? []
        : [{ id, what: `started before every node was proven to have only tokens of the ${other} key` }]
    })
    return {
      gaps: open.map(({ id, what }) => ({ at: `Pod ${id}`, what })),
      steps: open.map(({ id }) =>
        ask(idOf(id), `Restart Pod ${id}, or accept that it may still use a token of the ${name} key.`),
      ),
    }
  },
}

/**
 * Kubelets also request tokens for CSI drivers (tokenRequests of CSIDriver), in memory and with a lifetime of its own. Programs outside of
 * the cluster may verify them, so no log and no counter shows each use: they must expire.
 */
const expiredForDrivers: Proof = (observed, { waivers }, { name, sinceMs, idOf }) => {
  const open = driversIn(observed).flatMap((driver) => {
    const at = driverId(driver)
    const untilMs = (sinceMs ?? observed.atMs) + driver.lifetimeSeconds * 1000
    return observed.atMs < untilMs && !waivers.has(idOf(at)) ? [{ at, untilMs }] : []
  })
  const risk = open.map(({ at }) => commandLine`--waive ${idOf(at)}`).join(' ')
  return {
    gaps: open.map(({ at, untilMs }) => ({
      at,
      what: `its tokens of the ${name} key expire at ${new Date(untilMs).toISOString()}`,
    })),
    steps: awaiting(
      observed,
      Math.max(0, ...open.map(({ untilMs }) => untilMs)),
      `tokens of the ${name} key that CSI drivers have are expired (to accept the risk: ${risk})`,
    ),
  }
}

function awaiting({ atMs }: Pick<Snapshot, 'atMs'>, untilMs: number, because: string): readonly Task[] {
  if (atMs >= untilMs) return []
  return [wait({ kind: 'instant', atMs: untilMs }, because, untilMs - atMs + 120_000)]
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

/** Returns when the last node was proven to have no mounted token of the key; undefined if one is not proven. */
function renewedSinceMs(observed: Observed<'kubelets' | 'evidence'>, keyId: string): number | undefined {
  const times = renewals(observed, keyId)
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
