import { KcertError, wordsOf } from '../errors/kcert-error.ts'
import type { Certificate } from '../x509/certificate.ts'
import type {
  CertificateEntry,
  Group,
  KeyEntry,
  KubeconfigEntry,
  ObjectEntry,
  Origin,
  Owner,
  RequestEntry,
  TokenEntry,
  UnseenForm,
} from './entries.ts'
import { type Place, type ProblemCode, problemAt } from './problems.ts'
import type { InspectionReport, Problem } from './report.ts'

/** The location that is currently being read. */
export interface Location {
  readonly origin: Origin
  /** Location in the source; empty for the source itself. */
  readonly entry: string
  readonly owner: Owner
}

/** Everything that was found in the sources, in reading order. */
export class Collection {
  readonly groups: Group[] = []
  readonly certificates: CertificateEntry[] = []
  readonly keys: KeyEntry[] = []
  readonly requests: RequestEntry[] = []
  readonly tokens: TokenEntry[] = []
  readonly kubeconfigs: KubeconfigEntry[] = []
  readonly objects: ObjectEntry[] = []
  readonly origins: Origin[] = []
  readonly withoutCertificate: InspectionReport['withoutCertificate'] = []
  readonly problems: Problem[] = []
  /** Certificates and keys that are not in the PEM form that Kubernetes reads. Legitimate inputs have almost none. */
  readonly unseen = new Map<CertificateEntry | KeyEntry, UnseenForm>()
  private readonly byTail = new Map<number, Certificate>()
  private readonly bySignature = new Map<string, Certificate>()

  /** The number of entries so far. A source that does not change it contains nothing of interest. */
  get size(): number {
    const { certificates, keys, requests, tokens, kubeconfigs, objects, withoutCertificate, problems } = this
    const lists = [certificates, keys, requests, tokens, kubeconfigs, objects, withoutCertificate, problems]
    return lists.reduce((sum, { length }) => sum + length, 0)
  }

  group({ origin, entry, owner }: Location): Group {
    const group = { source: origin.source, entry, origin, owner, certificates: none, keys: none }
    this.groups.push(group)
    return group
  }

  addCertificate(group: Group, entry: string, read: Certificate): CertificateEntry {
    const certificate = this.interned(read)
    const found: CertificateEntry = {
      source: group.source,
      entry,
      certificate,
      group,
      position: group.certificates.length + (group.leafFault === undefined ? 0 : 1),
      role: undefined,
      status: undefined,
    }
    group.certificates = withOneMore(group.certificates, found)
    this.certificates.push(found)
    return found
  }

  addKey(
    group: Group,
    entry: string,
    key: Pick<KeyEntry, 'kind' | 'format' | 'encrypted' | 'publicKey'>,
  ): KeyEntry {
    const found = { ...key, source: group.source, entry, group }
    group.keys = withOneMore(group.keys, found)
    this.keys.push(found)
    return found
  }

  addProblem(place: Place, code: ProblemCode, said: Parameters<typeof problemAt>[2]): void {
    this.problems.push(problemAt(place, code, said))
  }

  /** Removes the entries from these origins. */
  leaveOut(origins: ReadonlySet<Origin>): void {
    const sources = new Set([...origins].map(({ source }) => source))
    const stays = ({ group }: { readonly group: Group }) => !origins.has(group.origin)
    keep(this.certificates, stays)
    keep(this.keys, stays)
    keep(this.groups, ({ origin }) => !origins.has(origin))
    keep(this.problems, ({ source }) => !sources.has(source))
  }

  /** Records an input that could not be read: with the error's message, or as a kcert defect for an unexpected error. */
  addFailure(place: Place, error: unknown, code: ProblemCode, fix: string, where = ''): void {
    const at = where === '' ? '' : `${where}: `
    if (error instanceof KcertError)
      this.addProblem(place, code, {
        message: at + wordsOf(error),
        fix: error.fix ?? (error.next === undefined ? fix : undefined),
        next: error.next,
      })
    else {
      const message = `kcert failed on this input: ${wordsOf(error)}`
      this.addProblem(place, 'KCERT_DEFECT', {
        message,
        fix: 'this is a bug in kcert; please report it, with the file if you may share it',
      })
    }
  }

  /** Returns one object for the same certificate in several places, so that its derived values are computed once. */
  private interned(certificate: Certificate): Certificate {
    const { tail } = certificate
    const sameTail = this.byTail.get(tail)
    if (sameTail === undefined) {
      this.byTail.set(tail, certificate)
      return certificate
    }
    if (sameTail.equals(certificate)) return sameTail
    // Four bytes collide occasionally, and an attacker can make them collide. Signatures differ.
    const signature = Buffer.from(certificate.signature).toString('latin1')
    const sameSignature = this.bySignature.get(signature)
    if (sameSignature?.equals(certificate)) return sameSignature
    this.bySignature.set(signature, certificate)
    return certificate
  }
}

const none: readonly never[] = Object.freeze([])

/** Most groups have one certificate, and a growing array allocates room for 17. */
function withOneMore<Item>(list: readonly Item[], item: Item): readonly Item[] {
  if (list.length === 0) return [item]
  ;(list as Item[]).push(item)
  return list
}

function keep<Item>(list: Item[], stays: (item: Item) => boolean): void {
  const kept = list.filter(stays)
  list.length = 0
  for (const item of kept) list.push(item)
}
