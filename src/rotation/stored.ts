import { commandLine } from '../errors/command-line.ts'
import type { CertificateRecord } from './certificate-record.ts'
import type { Gap, Refusal } from './phase.ts'
import type { Observed, StoredKey, StoredSnapshot } from './snapshot.ts'
import type { Target } from './target.ts'

// What others keep of the old CA in ConfigMaps and Secrets. kcert changes none of it: its owner does, or a waiver names it.

/** As many are named one by one. */
const mostNamed = 20

/** An object that holds something of an old CA. */
export interface Storing extends Gap {
  /** `both`: whoever goes by it trusts the new CA as well. */
  readonly holds: 'old' | 'leaf' | 'both'
  readonly stored: StoredSnapshot
}

/** Returns the objects that hold something of an old CA, waived or not, in the order of their names. */
export function storingOld({ stored }: Observed<'stored'>, { changes }: Target): readonly Storing[] {
  return stored.objects
    .flatMap((one): Storing[] => {
      const placeOf = (keys: readonly StoredKey[], { spki }: CertificateRecord) =>
        keys.find((key) => key.spki === spki)?.at
      const old = changes.filter(({ oldCa }) => placeOf(one.authorities, oldCa) !== undefined)
      const alone = old.find(({ newCa }) => placeOf(one.authorities, newCa) === undefined)
      const leafAt = changes.flatMap(({ oldCa }) => placeOf(one.signers, oldCa) ?? [])[0]
      const change = alone ?? old[0]
      const caAt = change && placeOf(one.authorities, change.oldCa)
      const holds = alone !== undefined ? 'old' : leafAt !== undefined ? 'leaf' : 'both'
      const place = holds === 'leaf' ? leafAt : caAt
      if (place === undefined) return []
      return [{ at: one.id, what: `${words[holds]} (${place})`, holds, stored: one }]
    })
    .toSorted((a, b) => (a.at < b.at ? -1 : 1))
}

const words = {
  old: 'stores the old CA without the new one',
  leaf: 'holds a certificate of the old CA',
  both: 'stores both CAs',
} as const

/** Returns those that must not be there when the old CA goes: what goes by them would lose its API servers. */
export function storingOldAlone(observed: Observed<'stored'>, target: Target): readonly Storing[] {
  return storingOld(observed, target).filter(({ at, holds }) => holds !== 'both' && !target.waivers.has(at))
}

/** Returns why the old CA must not go yet. */
export function storedRefusals(observed: Observed<'stored'>, target: Target): readonly Refusal[] {
  const found = storingOldAlone(observed, target)
  const more = found.length - mostNamed
  const named = found.slice(0, mostNamed).map((one) => ({
    what: `${one.at} ${one.what}`,
    why:
      one.holds === 'leaf'
        ? 'nobody would trust it any more'
        : 'whoever verifies by it alone loses its server in this phase',
    next: [commandFor(one), cureOf(one)].join('; '),
  }))
  if (more <= 0) return named
  return [
    ...named,
    {
      what: `${more} more ConfigMaps and Secrets of others hold something of the old CA alone`,
      why: 'as with those above',
      next: 'list them all: kcert rotate-ca verify',
    },
  ]
}

/** Returns what its owner does, and how the operator answers for it instead. */
export function cureOf({ at, holds, stored: { owner } }: Storing): string {
  const whose = owner === undefined ? 'its owner' : `its owner (${owner})`
  const deed = holds === 'leaf' ? 're-issues it' : 'puts the new CA there too'
  return [`${whose} ${deed}`, commandLine`or take it upon yourself: --waive ${at}`].join(', ')
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
    ...(more > 0 ? [`${more} more ConfigMaps and Secrets hold something of the old CA`] : []),
  ]
}

/** Returns what nobody knows of objects of others. */
export function unreadRemarks(observed: Observed<'stored'>): readonly string[] {
  return unreadKinds(observed).map((what) => `${what}: whether others store the old CA there is not known`)
}

/** Returns what could not be looked at. */
export function unreadKinds({ stored: { unread } }: Observed<'stored'>): readonly string[] {
  return unread.map((kind) => `${kind}s could not be looked at: kcert may not list them`)
}
