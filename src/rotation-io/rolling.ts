import { setTimeout as sleep } from 'node:timers/promises'
import { type ObjectOf, resources } from '../cluster/kinds.ts'
import type { ObjectsApi } from '../cluster/objects.ts'
import { getOne, listEach } from '../cluster/readable.ts'
import type { Resource } from '../cluster/resource.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { RollWorkload } from '../rotation/action.ts'
import { rotationAnnotation } from '../rotation/restart.ts'
import { rollingKinds } from '../site/workloads.ts'

// A PodDisruptionBudget that allows no eviction now may allow it once the previous pod is Ready again.
const evictionPatienceMs = 300_000
const evictionPauseMs = 2_000

/** Rolls out workloads. Their own controllers replace the pods, at their own pace and within their own budgets. */
export class Rolling {
  private readonly objects: ObjectsApi
  private readonly now: () => number

  constructor(objects: ObjectsApi, now: () => number) {
    this.objects = objects
    this.now = now
  }

  async roll({ workload, annotation, phase }: RollWorkload): Promise<void> {
    const resource = workloadResource(workload)
    const object = await getOne(this.objects, resource)
    // The workload was deleted in the meantime, and its pods with it.
    if (object === undefined) return
    const { spec = {} } = object
    if (spec.paused) {
      throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `${workload} is paused`, {
        why: 'the controller of a paused workload replaces no pods',
        next: commandLine`kubectl -n ${resource.namespace} rollout resume ${resource.resource} ${resource.name} && kcert rotate-ca --phase ${phase}`,
      })
    }
    if (spec.template?.metadata?.annotations?.[rotationAnnotation] === annotation) return
    const annotations = { [rotationAnnotation]: annotation }
    await this.objects.patch(
      resource,
      { spec: { template: { metadata: { annotations } } } },
      'strategic-merge',
    )
    const isOnDelete = (spec.updateStrategy?.type ?? spec.strategy?.type) === 'OnDelete'
    if (isOnDelete) await this.evictAll(resource.namespace, spec, annotation)
  }

  /** With OnDelete, a controller creates new pods but removes none. kcert evicts each one, which its budget may refuse. */
  private async evictAll(namespace: string, { selector }: WorkloadSpec, annotation: string): Promise<void> {
    const labels = Object.entries(selector?.matchLabels ?? {}).map(([label, value]) => `${label}=${value}`)
    const pods = { ...resources.pods, namespace } as const
    const found = await Array.fromAsync(listEach(this.objects, pods, { labelSelector: labels.join(',') }))
    for (const { metadata } of found)
      if (metadata.annotations?.[rotationAnnotation] !== annotation)
        await this.evict({ ...pods, name: metadata.name })
  }

  private async evict(pod: Resource): Promise<void> {
    const begun = this.now()
    const { name, namespace } = pod
    for (;;) {
      try {
        await this.objects.create(
          { ...pod, subresource: 'eviction' },
          { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } },
        )
        return
      } catch (error) {
        if (!(error instanceof KcertError)) throw error
        if (error.code === 'KCERT_API_NOT_FOUND') return
        if (this.now() - begun > evictionPatienceMs) {
          throw new KcertError('KCERT_ROTATION_CHECK_FAILED', `pod ${namespace}/${name} cannot be evicted`, {
            why: error.why ?? error.message,
            next: commandLine`kubectl -n ${namespace} get poddisruptionbudgets`,
            cause: error,
          })
        }
        await sleep(evictionPauseMs)
      }
    }
  }
}

type WorkloadSpec = NonNullable<ObjectOf<'deployments'>['spec']>

function workloadResource(workload: string) {
  const [, kind = '', namespace = '', name = ''] = /^(\w+) ([^/]+)\/(.+)$/.exec(workload) ?? []
  const rolling = rollingKinds.find(([known]) => known === kind)
  if (rolling === undefined) throw new TypeError(`${workload} cannot be rolled out`)
  return { ...rolling[1], namespace, name }
}
