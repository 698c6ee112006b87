import type { Part } from '../../phase.ts'
import { probe } from '../../tasks.ts'
import {
  awaitExtension,
  forgetting,
  knowsByConfigMap,
  publishes,
  unprovenSchedulers,
} from '../../verifying.ts'

const place = 'ConfigMap kube-system/extension-apiserver-authentication'

/** API servers never remove a CA from extension-apiserver-authentication. Schedulers and aggregated API servers read it. */
export const publishedClientCas: Part = (observed, target) => {
  const extension = observed.extensionAuthentication
  if (extension === undefined) {
    // This phase deleted the object and no API server has created it again yet. Components that use it are checked afterwards.
    if (!observed.components.some(knowsByConfigMap)) return { gaps: [], steps: [] }
    return { gaps: [{ at: place, what: 'not found' }], steps: [awaitExtension(target, 'newCa')] }
  }
  const olds = target.changes.map(({ oldCa }) => oldCa.digest)
  if (!publishes(extension, olds)) {
    const unproven = unprovenSchedulers(observed, target)
    return {
      gaps: unproven.map(({ at }) => ({ at, what: 'not yet seen to reject the old CA' })),
      steps: unproven.map((subject) => probe(subject)),
    }
  }
  return {
    gaps: [{ at: place, what: 'publishes the old CA' }],
    steps: [
      forgetting(extension.version),
      awaitExtension(target, 'newCa'),
      ...unprovenSchedulers({ ...observed, evidence: new Map() }, target).map((subject) => probe(subject)),
    ],
  }
}
