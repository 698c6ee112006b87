import {
  type WatchLabels,
  type WatchMetricName,
  type WatchSamples,
  watchLabelText,
} from '../../../output/watch-metrics.ts'

/** A certificate, or the one that decides for several in one place. */
interface WatchedCertificate {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly entry: string
  readonly notBeforeMs: number
  readonly notAfterMs: number
}

/** Series with a value of their own, for each metric of a part. The largest clusters have 5,000 nodes. */
const mostSeries = 5_000
/** Certificates in objects: the ones that expire first. */
const mostCertificates = 2_000
/** A user who fills one namespace must not hide the certificates of others. */
const mostOfNamespace = 200

/** The samples of one part of a scan. Their number is bounded; `leftOut` counts the others. */
export class PartSamples {
  readonly samples: WatchSamples = new Map<WatchMetricName, Map<string, number>>()
  leftOut = 0
  private readonly now: Date
  private soonest: WatchedCertificate[] = []
  private isNamespaced = false

  constructor(now: Date) {
    this.now = now
  }

  set<Name extends WatchMetricName>(name: Name, labels: WatchLabels<Name>, value: number): void {
    const of = this.samplesOf(name)
    const text = watchLabelText(name, labels)
    if (of.size < mostSeries || of.has(text)) of.set(text, value)
    else this.leftOut++
  }

  /** For metrics whose labels have few values. */
  count<Name extends WatchMetricName>(name: Name, labels: WatchLabels<Name>, more = 1): void {
    const of = this.samplesOf(name)
    const text = watchLabelText(name, labels)
    of.set(text, (of.get(text) ?? 0) + more)
  }

  /** Counts a certificate, and keeps it if it is one of those that expire first. */
  add(certificate: WatchedCertificate, isNamespaced = false): void {
    const { kind, notBeforeMs, notAfterMs } = certificate
    const nowMs = this.now.getTime()
    const state = notAfterMs <= nowMs ? 'expired' : notBeforeMs > nowMs ? 'not-yet-valid' : 'valid'
    this.count('certificates', { kind, state })
    this.isNamespaced ||= isNamespaced
    this.soonest.push(certificate)
    if (this.soonest.length >= 2 * this.most) this.prune()
  }

  /** Returns the samples, with those of the certificates that `add` kept. */
  finish(): this {
    this.prune()
    // Cut labels may be the same. Then the certificate that expires first decides.
    for (const { kind, namespace, name, entry, notBeforeMs, notAfterMs } of this.soonest.toReversed()) {
      const labels = { kind, namespace, name, entry }
      this.set('certificate_remaining_seconds', labels, notAfterMs)
      this.set('certificate_lifetime_seconds', labels, Math.max(0, (notAfterMs - notBeforeMs) / 1000))
    }
    this.soonest = []
    return this
  }

  private get most(): number {
    return this.isNamespaced ? mostCertificates : mostSeries
  }

  private prune(): void {
    const before = this.soonest.length
    const inNamespace = new Map<string, number>()
    this.soonest = this.soonest
      .sort((a, b) => a.notAfterMs - b.notAfterMs)
      .filter(({ namespace }) => {
        const count = (inNamespace.get(namespace) ?? 0) + 1
        inNamespace.set(namespace, count)
        return namespace === '' || count <= mostOfNamespace
      })
      .slice(0, this.most)
    this.leftOut += before - this.soonest.length
  }

  private samplesOf(name: WatchMetricName): Map<string, number> {
    const all = this.samples as Map<WatchMetricName, Map<string, number>>
    const found = all.get(name) ?? new Map<string, number>()
    all.set(name, found)
    return found
  }
}
