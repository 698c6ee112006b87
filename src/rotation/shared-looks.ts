import type { Observer } from './ports.ts'
import type { Observed, SectionName } from './snapshot.ts'

interface Looking {
  readonly now: Promise<unknown>
  /** What is asked for meanwhile: one look for all who ask, begun when the one before has ended. */
  next?: Promise<unknown>
}

/**
 * One look for all lanes that wait for the same sections at a time. Every answer is of a look that was begun after it was asked
 * for, so that nobody is told of a time before their own act.
 */
export class SharedLooks {
  private readonly observer: Observer
  private readonly looking = new Map<string, Looking>()

  constructor(observer: Observer) {
    this.observer = observer
  }

  observe<Section extends SectionName>(sections: readonly Section[]): Promise<Observed<Section>> {
    const key = sections.toSorted().join()
    const looking = this.looking.get(key)
    if (looking === undefined) return this.begin(key, sections)
    looking.next ??= looking.now.catch(() => {}).then(() => this.begin(key, sections))
    return looking.next as Promise<Observed<Section>>
  }

  private begin<Section extends SectionName>(
    key: string,
    sections: readonly Section[],
  ): Promise<Observed<Section>> {
    const now = this.observer.observe(sections)
    const looking: Looking = { now }
    this.looking.set(key, looking)
    const end = (): void => {
      if (looking.next === undefined) this.looking.delete(key)
    }
    now.then(end, end)
    return now
  }
}
