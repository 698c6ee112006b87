import type { Observer } from './ports.ts'
import type { Observed, SectionName } from './snapshot.ts'

interface Observing {
  readonly now: Promise<unknown>
  /** The next observation, shared by all lanes that request it in the meantime. It starts when the previous one finishes. */
  next?: Promise<unknown>
}

/**
 * Runs one observation at a time for all lanes that wait for the same sections. Every result comes from an observation that
 * started after the request, so no lane gets a state from before its own action.
 */
export class SharedObservations {
  private readonly observer: Observer
  private readonly observing = new Map<string, Observing>()

  constructor(observer: Observer) {
    this.observer = observer
  }

  observe<Section extends SectionName>(sections: readonly Section[]): Promise<Observed<Section>> {
    const key = sections.toSorted().join()
    const observing = this.observing.get(key)
    if (observing === undefined) return this.begin(key, sections)
    observing.next ??= observing.now.catch(() => {}).then(() => this.begin(key, sections))
    return observing.next as Promise<Observed<Section>>
  }

  private begin<Section extends SectionName>(
    key: string,
    sections: readonly Section[],
  ): Promise<Observed<Section>> {
    const now = this.observer.observe(sections)
    const observing: Observing = { now }
    this.observing.set(key, observing)
    const end = (): void => {
      if (observing.next === undefined) this.observing.delete(key)
    }
    now.then(end, end)
    return now
  }
}
