import { commandLine } from '../errors/command-line.ts'
import type { CertificateRecord } from './certificate-record.ts'
import type { PendingItem, Refusal } from './phase.ts'
import type { Observed, StoredKey, StoredSnapshot } from './snapshot.ts'
import type { Target } from './target.ts'

// What others keep of the old CA in ConfigMaps and Secrets. kcert changes none of it: its owner does, or a waiver names it.

/** As many are named one by one. */
const mostNamed = 20

/** An object that holds something of an old CA. */
export interface Storing extends PendingItem {
  /** `both`: clients that use it trust the new CA as well. */
  readonly holds: 'old' | 'leaf' | 'both'
  readonly stored: StoredSnapshot
}

/** Returns the objects that hold something of an old CA, waived or not, in the order of their names. */
export function storingOld({ stored }: Observed<'stored'>, { changes }: Target): readonly Storing[] {
  return stored.objects
    .flatMap((one): Storing[] => {
      const fieldOf = (keys: readonly StoredKey[], { spki }: CertificateRecord) =>
        keys.find((key) => key.spki === spki)?.at
      const old = changes.filter(({ oldCa }) => fieldOf(one.authorities, oldCa) !== undefined)
      const alone = old.find(({ newCa }) => fieldOf(one.authorities, newCa) === undefined)
      const leafAt = changes.flatMap(({ oldCa }) => fieldOf(one.signers, oldCa) ?? [])[0]
      const change = alone ?? old[0]
      const caAt = change && fieldOf(one.authorities, change.oldCa)
      const holds = alone !== undefined ? 'old' : leafAt !== undefined ? 'leaf' : 'both'
      const place = holds === 'leaf' ? leafAt : caAt
      if (place === undefined) return []
      return [{ at: one.id, what: `${words[holds]} (${place})`, holds, stored: one }]
    })
    .toSorted((a, b) => (a.at < b.at ? -1 : 1))
}

const words = {
  old: 'contains the old CA without the new CA',
  leaf: 'contains a certificate of the old CA',
  both: 'contains both CAs',
} as const

/** Returns the objects that block the removal of the old CA: clients that use them would lose their API servers. */
export function storingOldAlone(observed: Observed<'stored'>, target: Target): readonly Storing[] {
  return storingOld(observed, target).filter(({ at, holds }) => holds !== 'both' && !target.waivers.has(at))
}

/** Returns why the old CA must not go yet. */
export function storedRefusals(observed: Observed<'stored'>, target: Target): readonly Refusal[] {
  const found = storingOldAlone(observed, target)
  const more = found.length - mostNamed
  const named = found.slice(0, mostNamed).map((one) => ({
    what: `${one.at} ${one.what}`,
    why: [
      one.holds === 'leaf'
        ? 'no client would trust it any more'
        : 'clients that trust only this CA would lose their server in this phase',
      cureOf(one),
    ].join('; '),
    next: commandFor(one),
  }))
  if (more <= 0) return named
  return [
    ...named,
    {
      what: `${more} more ConfigMaps and Secrets of other applications contain only the old CA or its certificates`,
      why: 'the reasons are the same; kcert rotate-ca verify lists all of them',
      next: 'kcert rotate-ca verify',
    },
  ]
}

/** Returns what the owner must do, and how the operator accepts the risk instead. */
export function cureOf({ at, holds, stored: { owner } }: Storing): string {
  const whose = owner === undefined ? 'its owner' : `its owner (${owner})`
  const deed = holds === 'leaf' ? 'must reissue it' : 'must add the new CA'
  return [`${whose} ${deed}`, commandLine`or accept the risk with --waive ${at}`].join(', ')
}

/** Of a Secret the names and sizes of what is in it: its keys belong on no terminal. */
function commandFor({ at }: Storing): string {
  const [kind = '', place = ''] = at.split(' ')
  const [namespace, name] = place.split('/')
  return kind === 'Secret'
    ? commandLine`kubectl -n ${namespace} describe secret ${name}`
    : commandLine`kubectl -n ${namespace} get configmap ${name} -o yaml`
}

/** Returns what the operator should know of objects of others, before the old CA goes and after it. */
export function storedRemarks(observed: Observed<'stored'>, target: Target): readonly string[] {
  const found = target.isDropping ? storingOld(observed, target) : storingOldAlone(observed, target)
  const more = found.length - mostNamed
  const still = target.isDropping ? 'still ' : ''
  const named = found.slice(0, mostNamed).map(({ at, what, stored: { owner } }) => {
    return `${at} ${still}${what}${owner === undefined ? '' : `, of ${owner}`}`
  })
  return [
    ...unreadRemarks(observed),
    ...named,
    ...(more > 0 ? [`${more} more ConfigMaps and Secrets contain the old CA or its certificates`] : []),
  ]
}

/** Returns remarks on kinds that kcert could not read. */
export function unreadRemarks(observed: Observed<'stored'>): readonly string[] {
  return unreadKinds(observed).map((what) => `${what}, so they may contain the old CA`)
}

/** Returns what could not be looked at. */
export function unreadKinds({ stored: { unread } }: Observed<'stored'>): readonly string[] {
  return unread.map((kind) => `${kind}s were not checked: kcert may not list them`)
}
