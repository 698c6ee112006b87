import type { AuditEvent } from './event.ts'

// The use of each credential in a log of any size. Memory grows with the number of different credentials only, up to a limit.

/** The use of one credential since the start of the period. */
export interface Usage {
  /** In milliseconds since 1970; NaN if it was only issued. */
  firstMs: number
  lastMs: number
  /** Requests that ended. One that is still running, such as a watch, is not counted yet. */
  requests: number
  /** When the request that created it was received; undefined if it is not in the log. */
  issuedMs: number | undefined
  isStale: boolean
  /** True if one of the lists is not complete. */
  isCut: boolean
  /** In the order of appearance. */
  readonly lists: Record<ListName, readonly string[]>
}

type ListName = 'users' | 'sourceIPs' | 'forwardedFor' | 'userAgents' | 'pods' | 'nodes'

/** Values in each list. A client can send a different user agent with every request. */
const mostValues = 8
/** Different texts that are kept once for all credentials. */
const mostTexts = 100_000
/** Users without a credential ID that are named. */
const mostUsers = 1000
/** The key in `withoutId` of all others. */
export const otherUsers = 'other users'
/** Coverage of a log is recorded in slots of this length, for at most three years. */
const slotMs = 300_000
const mostSlots = 320_000
/** Differences between the clocks of machines in a cluster are smaller. */
const futureMs = 300_000

const none: readonly string[] = Object.freeze([])

/** A day of about 16,000 pods: each of them gets a new token every 48 minutes, at 80 % of 3,607 s. */
export const mostCredentials = 500_000

interface UsageOptions {
  /** Earlier events are only searched for issued tokens. */
  readonly sinceMs: number
  readonly nowMs: number
  readonly most?: number
}

export class UsageTable {
  readonly credentials = new Map<string, Usage>()
  /** Requests of authenticated users without a credential ID, by user name. */
  readonly withoutId = new Map<string, number>()
  events = 0
  /** Events in the period. */
  counted = 0
  firstMs = Number.POSITIVE_INFINITY
  lastMs = Number.NEGATIVE_INFINITY
  /** Events with a time in the future. */
  future = 0
  /** Events with a credential that is not in `credentials`, because the limit was reached. */
  leftOut = 0
  /** True if a request with a client certificate has a credential ID, as since Kubernetes 1.32. */
  hasCertificateIds = false
  /** By API server; '' for one that is not known. */
  private readonly slots = new Map<string, Set<number>>()
  private readonly options: Required<UsageOptions>
  private readonly texts = new Map<string, readonly string[]>()

  constructor(options: UsageOptions) {
    this.options = { most: mostCredentials, ...options }
  }

  add(event: AuditEvent, server = ''): void {
    const { atMs, issued, credentials, username } = event
    const { sinceMs, nowMs } = this.options
    this.events++
    if (atMs < this.firstMs) this.firstMs = atMs
    if (atMs > this.lastMs) this.lastMs = atMs
    if (atMs > nowMs + futureMs) this.future++
    if (issued !== undefined) {
      const usage = this.usageOf(issued)
      if (usage !== undefined) usage.issuedMs = Math.min(atMs, usage.issuedMs ?? atMs)
    }
    if (atMs < sinceMs) return
    this.counted++
    const slots = this.slotsOf(server)
    if (slots.size < mostSlots) slots.add(Math.floor(atMs / slotMs))
    for (const id of credentials) {
      if (id.startsWith('X509SHA256=')) this.hasCertificateIds = true
      const usage = this.usageOf(id)
      if (usage !== undefined) this.count(usage, event)
    }
    if (credentials.length === 0 && event.isLast && username !== '') this.addWithoutId(username)
  }

  /** Returns the times between `fromMs` and `toMs` in which an API server had no event for `longestMs` or more. */
  gaps(fromMs: number, toMs: number, longestMs: number, server = ''): { fromMs: number; toMs: number }[] {
    const found: { fromMs: number; toMs: number }[] = []
    let coveredMs = fromMs
    const checkUntil = (startMs: number) => {
      const endMs = Math.min(startMs, toMs)
      if (endMs - coveredMs >= longestMs) found.push({ fromMs: coveredMs, toMs: endMs })
    }
    for (const slot of [...this.slotsOf(server)].sort((one, other) => one - other)) {
      checkUntil(slot * slotMs)
      coveredMs = Math.max(coveredMs, (slot + 1) * slotMs)
    }
    checkUntil(toMs)
    return found
  }

  private slotsOf(server: string): Set<number> {
    const known = this.slots.get(server)
    if (known !== undefined) return known
    const slots = new Set<number>()
    this.slots.set(server, slots)
    return slots
  }

  private usageOf(id: string): Usage | undefined {
    const known = this.credentials.get(id)
    if (known !== undefined) return known
    if (this.credentials.size >= this.options.most) {
      this.leftOut++
      return undefined
    }
    const lists = {
      users: none,
      sourceIPs: none,
      forwardedFor: none,
      userAgents: none,
      pods: none,
      nodes: none,
    }
    const usage = {
      ...{ firstMs: Number.NaN, lastMs: Number.NaN, requests: 0, issuedMs: undefined },
      ...{ isStale: false, isCut: false, lists },
    }
    this.credentials.set(id, usage)
    return usage
  }

  private count(usage: Usage, event: AuditEvent): void {
    const { atMs, isLast, isStale } = event
    if (!(atMs >= usage.firstMs)) usage.firstMs = atMs
    if (!(atMs <= usage.lastMs)) usage.lastMs = atMs
    if (isLast) usage.requests++
    if (isStale) usage.isStale = true
    this.note(usage, 'users', event.username)
    this.note(usage, 'sourceIPs', event.sourceIp)
    this.note(usage, 'forwardedFor', event.forwardedFor)
    this.note(usage, 'userAgents', event.userAgent)
    this.note(usage, 'pods', event.pod)
    this.note(usage, 'nodes', event.node)
  }

  private note(usage: Usage, name: ListName, text: string): void {
    const list = usage.lists[name]
    if (text === '' || list.includes(text)) return
    if (list.length >= mostValues) usage.isCut = true
    else usage.lists[name] = list.length === 0 ? this.shared(text) : [...list, ...this.shared(text)]
  }

  /** Returns one list for equal texts: most credentials have one user, address and program, which others have, too. */
  private shared(text: string): readonly string[] {
    const known = this.texts.get(text)
    if (known !== undefined) return known
    const list = [text]
    if (this.texts.size < mostTexts) this.texts.set(text, list)
    return list
  }

  private addWithoutId(username: string): void {
    const count = this.withoutId.get(username)
    const name = count === undefined && this.withoutId.size >= mostUsers ? otherUsers : username
    this.withoutId.set(name, (this.withoutId.get(name) ?? 0) + 1)
  }
}
