import { type ObjectOf, resources } from '../cluster/kinds.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { watchEach } from '../cluster/readable.ts'
import { podsOfEveryNode } from './node-jobs-objects.ts'

/** The part of a pod that decides whether a shell can start in it. 5,000 whole pods would take much memory. */
export type SeenPod = Pick<ObjectOf<'pods'>, 'metadata' | 'status'> & { readonly nodeName?: string }

interface Watched {
  readonly objects: ObjectsApi
  readonly ending: AbortController
}

/** The pods of a run's Jobs. One watch reports all of them. A list for each waiting node would make the API server read all pods. */
export class RunPods {
  readonly #resource: typeof resources.pods & { readonly namespace: string }
  readonly #seen = new Map<string, SeenPod>()
  #watched: Watched | undefined
  #failure: { readonly error: unknown } | undefined

  constructor(namespace: string) {
    this.#resource = { ...resources.pods, namespace }
  }

  /**
   * Returns the pods on a node, as far as the watch has reported them. The node of a pod cannot change, unlike its labels. The first
   * call begins the watch, and so does one with other credentials. Throws the error that ended the watch; the next call begins it again.
   */
  on(node: string, objects: ObjectsApi): readonly SeenPod[] {
    if (this.#watched?.objects !== objects) this.#begin(objects)
    const failure = this.#failure
    if (failure !== undefined) {
      this.close()
      throw failure.error
    }
    return [...this.#seen.values()].filter(({ nodeName }) => nodeName === node)
  }

  close(): void {
    this.#watched?.ending.abort()
    this.#watched = undefined
    this.#failure = undefined
    this.#seen.clear()
  }

  #begin(objects: ObjectsApi): void {
    this.close()
    const watched: Watched = { objects, ending: new AbortController() }
    this.#watched = watched
    void this.#follow(watched).catch((error: unknown) => {
      if (this.#watched === watched) this.#failure = { error }
    })
  }

  async #follow({ objects, ending: { signal } }: Watched): Promise<void> {
    for await (const { type, object } of watchEach(objects, this.#resource, podsOfEveryNode, signal)) {
      if (signal.aborted) return
      const { metadata, status, spec: { nodeName } = {} } = object
      if (type === 'DELETED') this.#seen.delete(metadata.name)
      else
        this.#seen.set(metadata.name, { metadata, ...(status && { status }), ...(nodeName && { nodeName }) })
    }
  }
}
