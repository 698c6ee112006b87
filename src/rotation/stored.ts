import { commandLine } from '../errors/command-line.ts'
import type { CertificateRecord } from './certificate-record.ts'
import type { PendingItem, Refusal } from './phase.ts'
import type { Observed, StoredKey, StoredSnapshot } from './snapshot.ts'
import type { Target } from './target.ts'

// Parts of the old CA in ConfigMaps and Secrets of other owners. kcert never changes them: the owner does, or a waiver names the
// object.

/** Maximum number of objects that are named individually. */
const mostNamed = 20

/** An object that contains an old CA or a certificate signed by one. */
export interface StoredWithOldCa extends PendingItem {
  /** `both`: clients that use the object also trust the new CA. */
  readonly contains: 'old' | 'leaf' | 'both'
  readonly stored: StoredSnapshot
}

/** Returns the objects that contain an old CA or a certificate signed by one, waived or not, sorted by name. */
export function storedWithOldCa(
  { stored }: Observed<'stored'>,
  { changes }: Target,
): readonly StoredWithOldCa[] {
  return stored.objects
    .flatMap((one): StoredWithOldCa[] => {
      const fieldOf = (keys: readonly StoredKey[], { spki }: CertificateRecord) =>
        keys.find((key) => key.spki === spki)?.at
      const old = changes.filter(({ oldCa }) => fieldOf(one.authorities, oldCa) !== undefined)
      const alone = old.find(({ newCa }) => fieldOf(one.authorities, newCa) === undefined)
      const leafAt = changes.flatMap(({ oldCa }) => fieldOf(one.signers, oldCa) ?? [])[0]
      const change = alone ?? old[0]
      const caAt = change && fieldOf(one.authorities, change.oldCa)
      const contains = alone !== undefined ? 'old' : leafAt !== undefined ? 'leaf' : 'both'
      const place = contains === 'leaf' ? leafAt : caAt
      if (place === undefined) return []
      return [{ at: one.id, what: `${words[contains]} (${place})`, contains, stored: one }]
    })
    .toSorted((a, b) => (a.at < b.at ? -1 : 1))
}

const words = {
  old: 'contains the old CA without the new CA',
  leaf: 'contains a certificate of the old CA',
  both: 'contains both CAs',
} as const

/** Returns the objects that block the removal of the old CA: clients that use them could no longer connect to API servers. */
export function storingOldAlone(observed: Observed<'stored'>, target: Target): readonly StoredWithOldCa[] {
  return storedWithOldCa(observed, target).filter(
    ({ at, contains }) => contains !== 'both' && !target.waivers.has(at),
  )
}

/** Returns why the old CA must not be removed yet. */
export function storedRefusals(observed: Observed<'stored'>, target: Target): readonly Refusal[] {
  const found = storingOldAlone(observed, target)
  const more = found.length - mostNamed
  const named = found.slice(0, mostNamed).map((one) => ({
    what: `${one.at} ${one.what}`,
    why: [
      one.contains === 'leaf'
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
export function cureOf({ at, contains, stored: { owner } }: StoredWithOldCa): string {
  const whose = owner === undefined ? 'its owner' : `its owner (${owner})`
  const deed = contains === 'leaf' ? 'must reissue it' : 'must add the new CA'
  return [`${whose} ${deed}`, commandLine`or accept the risk with --waive ${at}`].join(', ')
}

/**
 * Returns a command that shows the object. For a Secret, it shows only names and sizes, so that no key is printed on a terminal.
 */
function commandFor({ at }: StoredWithOldCa): string {
  const [kind = '', place = ''] = at.split(' ')
  const [namespace, name] = place.split('/')
  return kind === 'Secret'
    ? commandLine`kubectl -n ${namespace} describe secret ${name}`
    : commandLine`kubectl -n ${namespace} get configmap ${name} -o yaml`
}

/** Returns remarks on objects of other owners, before and after the removal of the old CA. */
export function storedRemarks(observed: Observed<'stored'>, target: Target): readonly string[] {
  const found = target.isDropping ? storedWithOldCa(observed, target) : storingOldAlone(observed, target)
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

/** Returns the kinds that kcert could not list. */
export function unreadKinds({ stored: { unread } }: Observed<'stored'>): readonly string[] {
  return unread.map((kind) => `${kind}s were not checked: kcert may not list them`)
}
